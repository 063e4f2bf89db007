//! A script that failed, in one paragraph: which, how, at what, what it said last, and how to see it again.
//!
//! It ran: that it cannot be run is said only of what could not be started (`hadoop/script/`).

use std::ffi::OsString;

use super::ScriptAttempt;
use crate::hadoop::script::exit::Exit;
use crate::hadoop::script::pipes::Halt;
use crate::hadoop::script::process::ScriptOutcome;
use gristmill_base::error::{Error, Kind};
use gristmill_base::names::show_words;
use gristmill_base::sys::signals;
use gristmill_storage::input::FileRange;

/// What is to be said of an attempt.
pub(super) struct Failing<'a> {
    pub attempted: &'a ScriptAttempt<'a>,
    /// The mapper, the combiner, the reducer.
    pub what: &'static str,
    pub argv: &'a [OsString],
    pub piece: Option<&'a FileRange>,
    /// Records that were written to it.
    pub fed: u64,
}

impl Failing<'_> {
    /// The error of a run, if it failed.
    pub fn of<T, F>(&self, ended: &ScriptOutcome<T, F>) -> Option<Error> {
        // What the job itself could not do comes first. Feeding may have ended because the script has: that says nothing.
        if let Err(error) = &ended.stdin
            && error.kind() != Kind::Cancelled
        {
            return Some(error.clone());
        }
        match ended.halt {
            Some(Halt::Stopped) => return Some(Error::cancelled()),
            Some(Halt::TimedOut) => {
                let (message, advice) = self.silence(ended.exit);
                return Some(
                    self.told(message, &ended.stderr.tail())
                        .advise(advice)
                        .retryable_error(),
                );
            }
            _ => {}
        }
        if let Err(error) = &ended.stdout {
            return Some(self.located(error.clone()));
        }
        let how = match ended.exit {
            Exit::Code(0) => return None,
            _ if !self.attempted.definition.exit_matters => return None,
            Exit::Code(code) => format!("ended with exit code {code}"),
            Exit::Signal(signal) => format!("was killed by signal {signal}{}", signal_name(signal)),
        };
        let message = format!("{} {how}", self.command());
        let told = self.told(message, &ended.stderr.tail()).retryable_error();
        Some(match self.attempted.rerun_command() {
            Some(again) => told.detail("again", again),
            None => told.advise("see what the script said on its standard error"),
        })
    }

    /// What is to be said of a script that was silent for too long, and what to do.
    fn silence(&self, exit: Exit) -> (String, &'static str) {
        let seconds = self.attempted.definition.timeout_ms as f64 / 1000.0;
        let command = self.command();
        match exit {
            Exit::Signal(_) => (
                format!(
                    "{command} read nothing, wrote nothing and said nothing for {seconds} s, and was killed"
                ),
                "give it more time with -D mapreduce.task.timeout=MILLISECONDS (0: for ever), or let it report its status",
            ),
            Exit::Code(_) => (
                format!(
                    "{command} has ended, but something that it began holds its pipes open, and moved nothing for {seconds} s"
                ),
                "let the script wait for what it begins, or begin that with </dev/null >/dev/null 2>&1",
            ),
        }
    }

    /// The script, by its command line.
    fn command(&self) -> String {
        format!("the {} `{}`", self.what, show_words(self.argv))
    }

    fn told(&self, message: String, tail: &[String]) -> Error {
        let operation = match self.what {
            "mapper" => "map a split",
            "combiner" => "combine what the mapper wrote",
            _ => "reduce a partition",
        };
        let message = match tail.last() {
            Some(last) => format!("{message}; its last line on standard error: {last}"),
            None => message,
        };
        let error = self.located(Error::new(Kind::UserCode, operation, message));
        if tail.is_empty() {
            error
        } else {
            error.detail("stderr", tail.join("\n"))
        }
    }

    fn located(&self, error: Error) -> Error {
        let error = match self.piece {
            Some(piece) => error
                .with_path(piece.file.path.as_typed())
                .with("offset", piece.offset)
                .with("bytes", piece.bytes),
            None => error,
        };
        let kind = if self.attempted.is_map {
            "split"
        } else {
            "partition"
        };
        error
            .with(kind, self.attempted.number)
            .with("records written to it", self.fed)
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        signals::SIGKILL => " (KILL: by another program, or by the system for lack of memory)",
        signals::SIGSEGV => " (SEGV)",
        signals::SIGABRT => " (ABRT)",
        signals::SIGPIPE => " (PIPE)",
        signals::SIGTERM => " (TERM)",
        _ => "",
    }
}
