//! A small grep of local files, to measure the search alone: `cargo run --release --example grep -- PATTERN FILE... [-c]`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::thread;

use gristmill_grep::{Data, Input, Options, Pattern, PatternOptions, Ranges, Run, Show, search};

struct Local(File);

impl Ranges for Local {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.starts_with('-'));
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let pattern = PatternOptions {
        ignore_case: has("-i"),
        fixed: has("-F"),
        ..PatternOptions::default()
    };
    let pattern = Pattern::new(&words[..1], pattern)?;
    let options = Options {
        show: if has("-c") { Show::Count } else { Show::Lines },
        invert: has("-v"),
        numbers: has("-n"),
        ..Options::default()
    };
    let inputs = words[1..].to_vec().into_iter().map(|path| Input {
        name: path.clone().into_bytes(),
        open: Box::new(move || {
            let open = || {
                let file = File::open(path)?;
                let bytes = file.metadata()?.len();
                Ok(Data::Ranges(Arc::new(Local(file)), bytes))
            };
            open().map_err(|error: io::Error| error.to_string())
        }),
    });
    let run = Run {
        workers: thread::available_parallelism()?.get(),
        stop: Arc::default(),
    };
    search(inputs, pattern, options, &run, io::stdout(), |_| {})?;
    Ok(())
}
