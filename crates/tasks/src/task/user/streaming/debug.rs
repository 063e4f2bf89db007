//! What Hadoop calls a debug script: a program of the user's that looks at an attempt that failed.
//!
//! ```text
//!   SCRIPT  stdout  stderr  syslog  job.xml     in the attempt's working directory, with its variables
//!           empty   the     the     the job's
//!                   last    error   properties
//!                   lines
//! ```
//!
//! What it writes, on both of its outputs, goes with the error to the job's report. It decides nothing: whatever becomes
//! of it, the attempt has failed as it did. Hadoop gives a script's own standard output; here that is records, which
//! are gone with the attempt, so that the file `stdout` is empty.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ScriptAttempt;
use crate::hadoop::script::exit::Exit;
use crate::hadoop::script::pipes::{ScriptDeadline, Stdout};
use crate::hadoop::script::process::{ScriptOutcome, run};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_words;

/// Most bytes of what it writes that are kept, the last ones.
const KEPT_BYTES: usize = 32 << 10;

/// How long it may do nothing where the job sets no limit: an error must come to an end.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The name of the detail that its output becomes.
const DETAIL: &str = "debug script";

impl ScriptAttempt<'_> {
    /// The error of this attempt, with what the job's debug script says of it, if it has one.
    pub(super) fn debugged(&self, error: Error) -> Error {
        let debug = &self.definition.debug;
        let script = if self.is_map {
            &debug.map
        } else {
            &debug.reduce
        };
        let Some(argv) = script.as_ref().filter(|_| error.kind() != Kind::Cancelled) else {
            return error;
        };
        let said = self
            .ask(argv, &error)
            .unwrap_or_else(|failure| failure.to_string());
        error.detail(DETAIL, said)
    }

    /// Runs the script; what it wrote, and how it ended if that was not well.
    fn ask(&self, argv: &[OsString], error: &Error) -> Result<String> {
        let mut words = argv.to_vec();
        words.extend(self.write_files(error)?.map(OsString::from));
        let program = self.program(&words, None);
        let limit = Duration::from_millis(self.definition.timeout_ms);
        let limit = if limit.is_zero() { TIMEOUT } else { limit };
        let watch = ScriptDeadline::new(&self.attempt.stop, Some(limit));
        let prefix = &self.definition.reporter_prefix;
        let ended = run(&program, prefix, &watch, |_| Ok(()), last_of)?;
        Ok(told(ended, argv))
    }

    /// Writes the four files that its arguments name.
    fn write_files(&self, error: &Error) -> Result<[PathBuf; 4]> {
        let folder = self.folder.join("tmp").join("debug");
        let failed = |path: &Path, error: &std::io::Error| {
            Error::from_io("run the debug script", path, error)
        };
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        let stderr = error.detail_of("stderr").map(|text| format!("{text}\n"));
        let files = [
            ("stdout", String::new()),
            ("stderr", stderr.unwrap_or_default()),
            ("syslog", format!("{error}\n")),
            ("job.xml", configuration(&self.definition.debug.properties)),
        ];
        let paths = files.each_ref().map(|(name, _)| folder.join(name));
        for ((_, text), path) in files.iter().zip(&paths) {
            fs::write(path, text).map_err(|error| failed(path, &error))?;
        }
        Ok(paths)
    }
}

/// The last bytes of an output.
fn last_of(stdout: &mut Stdout<'_>) -> Result<Vec<u8>> {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        match stdout.read(&mut buffer) {
            0 => return Ok(kept),
            count => {
                kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
                kept.drain(..kept.len().saturating_sub(KEPT_BYTES));
            }
        }
    }
}

fn told(ended: ScriptOutcome<Vec<u8>, ()>, argv: &[OsString]) -> String {
    let mut said = ended
        .stdout
        .map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned())
        .unwrap_or_default();
    let mut add = |line: &str| {
        let gap = if said.is_empty() { "" } else { "\n" };
        let _ = write!(said, "{gap}{line}"); // text grows, and cannot fail
    };
    for line in ended.stderr.tail() {
        add(&line);
    }
    let script = show_words(argv);
    match (ended.halt, ended.exit) {
        (Some(_), _) => add(&format!("(`{script}` was ended: it took too long)")),
        (None, Exit::Code(0)) => {}
        (None, Exit::Code(code)) => add(&format!("(`{script}` ended with exit code {code})")),
        (None, Exit::Signal(signal)) => add(&format!("(`{script}` was killed by signal {signal})")),
    }
    said
}

/// Properties as Hadoop's configuration files have them.
fn configuration(properties: &[(OsString, OsString)]) -> String {
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n<configuration>\n"
            .to_owned();
    for (name, value) in properties {
        let (name, value) = (
            escaped(&name.to_string_lossy()),
            escaped(&value.to_string_lossy()),
        );
        let _ = writeln!(
            text,
            "<property><name>{name}</name><value>{value}</value></property>"
        ); // text grows, and cannot fail
    }
    text.push_str("</configuration>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
