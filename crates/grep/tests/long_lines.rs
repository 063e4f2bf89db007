//! Lines that are longer than a search may hold: an error for their file alone, whatever is searched for, and however it is read.

#![expect(clippy::unwrap_used, reason = "a test ends by a panic")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use gristmill_grep::{
    Data, InputError, MemoryUse, Note, Options, Pattern, PatternOptions, RangeSource, SearchInput,
    SearchSettings, Show, Style, Summary, TooLarge, search,
};

/// Longer than what a worker alone may hold at any time, so that turns are waited for.
const LINE_BYTES_MAX: usize = 9 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Stream,
    Ranges,
    Mapped,
}

struct File(Vec<u8>, bool);

impl RangeSource for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = &self.0[(offset as usize).min(self.0.len())..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        Ok(count)
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.1.then_some(&self.0)
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Searched {
    summary: Summary,
    written: Vec<u8>,
    troubles: Vec<(Vec<u8>, InputError)>,
}

fn searched(way: Way, texts: &[&[u8]], pattern: &Pattern, options: &Options) -> Searched {
    let inputs: Vec<SearchInput> = (texts.iter().enumerate())
        .map(|(number, text)| {
            let (text, bytes) = (text.to_vec(), text.len() as u64);
            SearchInput {
                name: number.to_string().into_bytes(),
                open: Box::new(move || {
                    Ok(match way {
                        Way::Stream => Data::Stream(Box::new(io::Cursor::new(text))),
                        _ => Data::Ranges(Arc::new(File(text, way == Way::Mapped)), bytes),
                    })
                }),
            }
        })
        .collect();
    let run = SearchSettings {
        workers: 3,
        line_bytes_max: LINE_BYTES_MAX,
        stop: Arc::default(),
    };
    let (out, notes) = (Written::default(), Arc::new(Mutex::new(Vec::new())));
    let told = Arc::clone(&notes);
    let note = move |note| match note {
        Note::Trouble(name, trouble) => told.lock().unwrap().push((name, trouble)),
        other => panic!("{other:?}"),
    };
    let (pattern, options) = (pattern.clone(), options.clone());
    let summary = search(
        inputs.into_iter(),
        pattern,
        options,
        &run,
        out.clone(),
        note,
    )
    .unwrap();
    Searched {
        summary,
        written: out.0.lock().unwrap().clone(),
        troubles: notes.lock().unwrap().clone(),
    }
}

fn pattern(text: &str, null_data: bool) -> Pattern {
    let options = PatternOptions {
        null_data,
        ..PatternOptions::default()
    };
    Pattern::new(&[text], options).unwrap()
}

/// Lines of `before` bytes altogether, a line of `length`, and one more.
fn text(before: usize, length: usize, end: u8) -> Vec<u8> {
    let mut text = b"fish\n".repeat(before / 5);
    text.resize(text.len() + length, b'a');
    text.extend_from_slice(b"\nfish\n");
    for byte in &mut text {
        *byte = if *byte == b'\n' { end } else { *byte };
    }
    text
}

fn too_long(offset: usize) -> InputError {
    InputError::TooLarge(TooLarge {
        what: MemoryUse::Line,
        offset: offset as u64,
        bytes_max: LINE_BYTES_MAX as u64,
    })
}

#[test]
fn a_line_may_have_so_many_bytes_and_no_more() {
    let counts = Options {
        show: Show::Count,
        ..Options::default()
    };
    let fish = pattern("fish", false);
    for begins in [0, 3_000_000] {
        let fits = text(begins, LINE_BYTES_MAX, b'\n');
        let large = text(begins, LINE_BYTES_MAX + 1, b'\n');
        let unended = &large[..large.len() - b"\nfish\n".len()];
        for way in [Way::Stream, Way::Ranges] {
            let found = searched(way, &[&fits, &fits[..fits.len() - 6]], &fish, &counts);
            assert_eq!(found.troubles, [], "{way:?} {begins}");
            assert_eq!(found.summary.lines, (begins / 5 * 2 + 1) as u64, "{way:?}");

            let found = searched(way, &[&large, &fits, unended], &fish, &counts);
            let wanted = ["0", "2"].map(|name| (name.into(), too_long(begins)));
            assert_eq!(found.troubles, wanted, "{way:?} {begins}");
            assert_eq!(found.written, format!("{}\n", begins / 5 + 1).into_bytes());
        }
        let found = searched(Way::Mapped, &[&large], &fish, &counts);
        assert_eq!(
            (found.troubles, found.summary.lines),
            (vec![], (begins / 5 + 1) as u64)
        );
    }
}

#[test]
fn whatever_is_searched_for_the_other_files_are_searched() {
    let shows = [
        Show::Lines,
        Show::Matches,
        Show::Count,
        Show::Names,
        Show::NamesWithout,
        Show::Quiet,
    ];
    for (end, way) in [
        (b'\n', Way::Stream),
        (b'\n', Way::Ranges),
        (0, Way::Stream),
        (0, Way::Ranges),
    ] {
        let large = text(0, LINE_BYTES_MAX + 1, end);
        let small = [b"a fish".as_slice(), &[end], b"none", &[end]].concat();
        for (show, invert) in shows.iter().flat_map(|&show| [(show, false), (show, true)]) {
            let options = Options {
                show,
                invert,
                text: true,
                ..Options::default()
            };
            let pattern = pattern("fish", end == 0);
            let alone = searched(way, &[&small], &pattern, &options);
            let both = searched(way, &[&large, &small], &pattern, &options);
            assert_eq!(
                both.troubles,
                [(b"0".to_vec(), too_long(0))],
                "{show:?} {invert}"
            );
            let beside = String::from_utf8(alone.written)
                .unwrap()
                .replace("0\n", "1\n");
            assert_eq!(
                String::from_utf8(both.written).unwrap(),
                beside,
                "{show:?} {invert}"
            );
            assert_eq!(both.summary.troubles, 1);
        }
    }
}

/// The places of matches would take many times the memory of the line.
#[test]
fn the_matches_in_a_long_line_are_all_written() {
    let line = b"ab\xff".repeat(1 << 20);
    let text = [b"b\n".as_slice(), &line, b"\nb"].concat();
    for (way, numbers) in [(Way::Stream, false), (Way::Mapped, true)] {
        let options = Options {
            show: Show::Matches,
            numbers,
            offsets: true,
            ..Options::default()
        };
        let found = searched(way, &[&text], &pattern("b", false), &options);
        let places = std::iter::once((1, 0))
            .chain((0..1 << 20).map(|number| (2, number * 3 + 3)))
            .chain([(3, text.len() - 1)]);
        let mut wanted = String::new();
        for (number, offset) in places {
            let number = if numbers {
                format!("{number}:")
            } else {
                String::new()
            };
            wanted += &format!("{number}{offset}:b\n");
        }
        assert!(found.written == wanted.as_bytes(), "{way:?}");
    }
}

#[test]
fn a_coloured_long_line_is_as_a_short_one() {
    let options = Options {
        style: Style {
            colour: true,
            ..Style::default()
        },
        ..Options::default()
    };
    let found = |text: &[u8]| searched(Way::Stream, &[text], &pattern("b+", false), &options);
    let short = String::from_utf8(found(b"xbx\n").written).unwrap();
    let (x, b) = ("x".repeat(1 << 20), "b".repeat(1 << 20));
    let long = found(format!("{x}{b}{x}\n").as_bytes()).written;
    assert!(long == short.replace('b', &b).replace('x', &x).into_bytes());
}

#[test]
fn lines_before_a_selected_one_have_the_bound_of_a_line() {
    let options = Options {
        context: Some((1000, 0)),
        ..Options::default()
    };
    let line = [&b"a".repeat((1 << 20) - 1)[..], b"\n"].concat();
    let text = line.repeat(10);
    for way in [Way::Stream, Way::Ranges, Way::Mapped] {
        let found = searched(
            way,
            &[&text, b"a\nfish\n"],
            &pattern("fish", false),
            &options,
        );
        let [(name, InputError::TooLarge(large))] = &found.troubles[..] else {
            panic!("{:?}", found.troubles);
        };
        assert_eq!(
            (&name[..], large.what),
            (&b"0"[..], MemoryUse::Before),
            "{way:?}"
        );
        assert_eq!(found.written, b"a\nfish\n");
    }
}

/// A program is told where each match is.
#[test]
fn the_places_of_matches_for_a_program_have_a_bound() {
    let options = Options {
        style: Style {
            framed: true,
            ..Style::default()
        },
        ..Options::default()
    };
    let most = LINE_BYTES_MAX / 64;
    for (count, fits) in [(most, true), (most + 1, false)] {
        let text = [&b"c\n"[..], &b"ab".repeat(count)].concat();
        let found = searched(Way::Mapped, &[&text], &pattern("a", false), &options);
        let wanted = InputError::TooLarge(TooLarge {
            what: MemoryUse::Matches,
            offset: 2,
            bytes_max: LINE_BYTES_MAX as u64,
        });
        let troubles: Vec<_> = (!fits)
            .then(|| (b"0".to_vec(), wanted))
            .into_iter()
            .collect();
        assert_eq!(found.troubles, troubles);
    }
}

/// A line of a mapped file is copied for a program.
#[test]
fn a_line_for_a_program_has_the_bound() {
    let options = Options {
        style: Style {
            framed: true,
            ..Style::default()
        },
        ..Options::default()
    };
    for (length, troubles) in [
        (LINE_BYTES_MAX, vec![]),
        (LINE_BYTES_MAX + 1, vec![too_long(5)]),
    ] {
        let text = text(5, length, b'\n');
        let found = searched(Way::Mapped, &[&text], &pattern("a$", false), &options);
        let found: Vec<InputError> = found
            .troubles
            .into_iter()
            .map(|(_, trouble)| trouble)
            .collect();
        assert_eq!(found, troubles);
    }
}
