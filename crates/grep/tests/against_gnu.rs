//! The search against GNU grep, in the C locale: options, patterns and texts are drawn at random from a fixed seed.
//!
//! Blocks of a few bytes, as streams that give a few bytes at a time, and files in ranges: the same bytes come out.

#![expect(
    clippy::unwrap_used,
    reason = "a test that unwraps fails with a backtrace, which is what a test is for"
)]

use std::io::{self, Read, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use gristmill_grep::{
    Data, Options, Pattern, PatternOptions, SearchInput, SearchSettings, Show, Style, search,
};

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most as u64) as usize
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// A stream that gives a few bytes at a time.
struct Slow(Vec<u8>, usize, Random);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.0.len() - self.1;
        let count = (1 + self.2.below(40)).min(left).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[self.1..self.1 + count]);
        self.1 += count;
        Ok(count)
    }
}

/// What was written, shared with the search.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Case {
    pattern: String,
    patterns: PatternOptions,
    options: Options,
    texts: Vec<Vec<u8>>,
}

impl Case {
    fn drawn(random: &mut Random) -> Self {
        let whole_line = random.chance(8);
        let patterns = PatternOptions {
            fixed: random.chance(4),
            ignore_case: random.chance(4),
            word: !whole_line && random.chance(5), // GNU grep 3.8 writes empty lines for -wxo '^a'
            whole_line,
            crlf: false,
            null_data: random.chance(5),
        };
        let pattern = if patterns.fixed {
            random
                .one(&["a", "ab", "b a", "", "a\nb", "ba", "zz", "A"])
                .to_owned()
        } else {
            let atoms = [
                "a", "b", "[ab]", ".", "a+", "(a|b)", "b*", "^a", "b$", "[^a]", " ", "(ab)+", "x",
            ];
            (0..1 + random.below(3))
                .map(|_| random.one(&atoms))
                .collect()
        };
        let show = [
            Show::Lines,
            Show::Lines,
            Show::Lines,
            Show::Count,
            Show::Names,
            Show::NamesWithout,
            Show::Matches,
        ];
        let show = show[random.below(show.len())];
        let numbers = random.chance(3);
        let options = Options {
            show,
            conditions: Vec::new(),
            invert: show != Show::Matches && random.chance(4),
            numbers,
            offsets: random.chance(6),
            names: random.chance(3),
            context: (matches!(show, Show::Lines | Show::Matches) && random.chance(2))
                .then(|| (random.below(4), random.below(4))),
            max: random.chance(4).then(|| 1 + random.below(4) as u64),
            text: true,
            skip_binary: false,
            style: Style {
                colour: random.chance(4),
                null_names: random.chance(6),
                separator: match random.below(6) {
                    0 => None,
                    1 => Some(b"==".to_vec()),
                    _ => Some(b"--".to_vec()),
                },
                framed: false,
            },
        };
        // With -v and a pattern that is empty GNU grep ends before it has written that it counts none.
        let pattern = if options.invert && pattern.is_empty() {
            "b".to_owned()
        } else {
            pattern
        };
        let end = if patterns.null_data { 0 } else { b'\n' };
        let texts = (0..1 + random.below(3))
            .map(|_| text(random, end))
            .collect();
        Case {
            pattern,
            patterns,
            options,
            texts,
        }
    }

    /// As GNU grep is asked for it.
    fn words(&self) -> Vec<String> {
        let (of, how) = (&self.options, &self.patterns);
        let flags = [
            ("-F", how.fixed),
            ("-E", !how.fixed),
            ("-i", how.ignore_case),
            ("-w", how.word),
            ("-x", how.whole_line),
            ("-v", of.invert),
            ("-n", of.numbers),
            ("-b", of.offsets),
            ("-H", of.names),
            ("-h", !of.names),
            ("-c", of.show == Show::Count),
            ("-l", of.show == Show::Names),
            ("-L", of.show == Show::NamesWithout),
            ("-o", of.show == Show::Matches),
            ("-a", true),
            ("-z", how.null_data),
            ("-Z", of.style.null_names),
            ("--color=always", of.style.colour),
        ];
        let given = flags.iter().filter(|(_, given)| *given);
        let mut words: Vec<String> = given.map(|(flag, _)| (*flag).to_owned()).collect();
        if let Some((before, after)) = of.context {
            words.extend([format!("-B{before}"), format!("-A{after}")]);
        }
        words.extend(of.max.map(|max| format!("-m{max}")));
        words.push(match &of.style.separator {
            Some(line) => format!("--group-separator={}", String::from_utf8_lossy(line)),
            None => "--no-group-separator".to_owned(),
        });
        words.extend(["-e".to_owned(), self.pattern.clone()]);
        words
    }

    fn found(&self, random: &mut Random, workers: usize) -> (Vec<u8>, bool) {
        let pattern = Pattern::new(&[&self.pattern], self.patterns).unwrap();
        let inputs: Vec<SearchInput> = (self.texts.iter().enumerate())
            .map(|(number, text)| {
                let stream = Slow(text.clone(), 0, Random(random.below(1 << 30) as u64));
                SearchInput {
                    name: number.to_string().into_bytes(),
                    open: Box::new(move || Ok(Data::Stream(Box::new(stream)))),
                }
            })
            .collect();
        let (out, run) = (
            Written::default(),
            SearchSettings {
                workers,
                line_bytes_max: 1 << 20,
                stop: Arc::default(),
            },
        );
        let done = search(
            inputs.into_iter(),
            pattern,
            self.options.clone(),
            &run,
            out.clone(),
            |note| {
                panic!("{note:?}");
            },
        );
        let lines = done.unwrap().lines > 0;
        let written = out.0.lock().unwrap().clone();
        (written, lines)
    }
}

/// Lines of few letters; at times without a last line feed, with CR, NUL, what is no UTF-8.
fn text(random: &mut Random, end: u8) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..random.below(30) {
        for _ in 0..random.below(6) {
            text.extend_from_slice(random.one(&[&b"a"[..], b"b", b"A", b" ", b"_", b"ab"]));
        }
        if random.chance(20) {
            text.extend_from_slice(random.one(&[&b"\r"[..], b"\t"]));
        }
        text.push(end);
    }
    if random.chance(4) {
        text.pop();
    }
    text
}

#[test]
fn it_writes_what_gnu_grep_writes() {
    let mut random = Random(5);
    let folder = tempfile::tempdir().unwrap();
    for number in 0..1500 {
        let case = Case::drawn(&mut random);
        for (name, text) in case.texts.iter().enumerate() {
            std::fs::File::create(folder.path().join(name.to_string()))
                .and_then(|mut file| file.write_all(text))
                .unwrap();
        }
        let gnu = Command::new("grep")
            .args(case.words())
            .args((0..case.texts.len()).map(|name| name.to_string()))
            .current_dir(folder.path())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output();
        let gnu = gnu.expect("GNU grep is a part of every system that this is built on");
        let (found, selected) = case.found(&mut random, 1 + number % 3);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(
            (shown(&found), selected),
            (shown(&gnu.stdout), gnu.status.code() == Some(0)),
            "case {number}: grep {:?} of {:?}",
            case.words(),
            case.texts
                .iter()
                .map(|text| shown(text))
                .collect::<Vec<_>>(),
        );
    }
}
