//! One run of a script: begun, fed and read at the same time, and gone at the end, with whatever it began.
//!
//! ```text
//!   feed  ──(thread)──▶ stdin  ┐
//!   take  ◀──(caller)── stdout ├ script, in a process group of its own
//!   tail  ◀──(thread)── stderr ┘
//! ```
//!
//! Both directions move independently, so that a script may read all before it writes, write before it reads, or do
//! neither. Its program is started as it is, without a shell. When it is over, whatever of its process group is left is
//! killed. If we are killed, the kernel kills it.
//!
//! The rule that must hold: the group is killed while its leader is not reaped, on every path. The number of the group may
//! be another's afterwards.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::exit::Exit;
use super::pipes::{Halt, Pipe, ScriptDeadline, Stdin, Stdout};
use super::reporter::Reporter;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_base::sys::death::Death;
use gristmill_base::sys::files::make_executable;
use gristmill_base::sys::processes::{kill_group, look, reap};
use gristmill_base::sys::threads::begin_in;
use gristmill_base::sys::{codes, lifeline, signals};

/// How long to wait for a process that has closed its output, between looks.
const LOOK: Duration = Duration::from_millis(2);

/// How long standard error may stay open behind the script's end, in looks of 50 ms.
const ERRORS_LEFT: u32 = 4;

/// How long and in how many pieces it may go on then: what the script itself said lies in the pipe and is read in fewer,
/// however late; somebody whom it left behind may speak for ever.
const ERRORS_LAST: Duration = Duration::from_secs(1);
const ERRORS_PIECES: u32 = 64;

/// How long a process that was killed may take to be gone.
const REAPING: Duration = Duration::from_secs(5);

/// What to run, and where.
#[derive(Debug, Clone)]
pub struct ScriptProgram {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Variables of its environment, beside those of ours.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub folder: PathBuf,
    /// Where programs are looked for that are not in `folder`: directories, separated by colons.
    pub search: OsString,
}

/// What came of a run.
#[derive(Debug)]
pub struct ScriptOutcome<T, F> {
    /// What reading its output gave.
    pub stdout: Result<T>,
    /// What feeding it gave.
    pub stdin: Result<F>,
    /// Why it was ended, if it was.
    pub halt: Option<Halt>,
    /// How it ended.
    pub exit: Exit,
    /// What it said on standard error.
    pub stderr: Reporter,
}

/// Runs a program: `feed` writes its input, in a thread, while `take` reads its output.
///
/// # Errors
/// Only where it could not be begun; everything else is in [`ScriptOutcome`].
pub fn run<T, F: Send>(
    program: &ScriptProgram,
    prefix: &str,
    watch: &ScriptDeadline<'_>,
    feed: impl FnOnce(&mut Stdin<'_>) -> Result<F> + Send,
    take: impl FnOnce(&mut Stdout<'_>) -> Result<T>,
) -> Result<ScriptOutcome<T, F>> {
    let mut child = Group::new(spawn(program)?);
    let (input, output, errors) = child.pipes()?;
    let mut said = Reporter::new(prefix);
    let over = std::sync::atomic::AtomicBool::new(false);
    let (taken, fed, halt) = thread::scope(|scope| {
        let feed = || {
            let mut stdin = Stdin::new(input, watch);
            let fed = feed(&mut stdin);
            match fed {
                Ok(_) => {
                    stdin.flush();
                }
                Err(_) => watch.fail(),
            }
            (fed, stdin.halt())
        };
        let listener = begin_in(scope, "errors", || listen(errors, &mut said, watch, &over));
        let threads = listener.and_then(|listener| Ok((begin_in(scope, "feed", feed)?, listener)));
        let (feeder, listener) = threads.inspect_err(|_refused| child.kill())?;
        let mut stdout = Stdout::new(output, watch);
        let taken = take(&mut stdout);
        let mut halt = stdout.halt();
        drop(stdout);
        if taken.is_err() {
            watch.fail();
        }
        if halt.is_none() && taken.is_ok() {
            match child.wait(watch) {
                Ok(exit) if watch.is_failure(exit) => watch.fail(), // there is nobody left to be fed
                Ok(_) => {}
                Err(reason) => halt = Some(reason),
            }
        }
        if halt.is_some() || taken.is_err() {
            child.kill();
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        let panicked = |_panic| {
            (
                Err(Error::bug("feed a script", "its thread panicked")),
                None,
            )
        };
        let (fed, fed_halt) = feeder.join().unwrap_or_else(panicked);
        let _ = listener.join(); // a panic there loses what the script said, and nothing else
        Ok((taken, fed, halt.or(fed_halt)))
    })?;
    let exit = child.end();
    said.end();
    Ok(ScriptOutcome {
        stdout: taken,
        stdin: fed,
        halt,
        exit,
        stderr: said,
    })
}

/// Reads standard error to its end, or to a while after the script's.
fn listen(
    mut errors: Pipe<PipeReader>,
    said: &mut Reporter,
    watch: &ScriptDeadline<'_>,
    over: &std::sync::atomic::AtomicBool,
) {
    let mut buffer = vec![0; 16 << 10];
    let (mut left, mut pieces, mut ended) = (ERRORS_LEFT, 0, None);
    loop {
        let halt = || {
            if !over.load(std::sync::atomic::Ordering::Relaxed) {
                return None;
            }
            left = left.saturating_sub(1);
            (left == 0).then_some(Halt::Failed)
        };
        match errors.read(&mut buffer, halt) {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                watch.moved();
                said.take(buffer.get(..count).unwrap_or_default());
                if over.load(std::sync::atomic::Ordering::Relaxed) {
                    pieces += 1;
                    let ended = ended.get_or_insert_with(Instant::now);
                    if pieces > ERRORS_PIECES && ended.elapsed() > ERRORS_LAST {
                        return;
                    }
                }
            }
        }
    }
}

/// A process and those that it began. Killed when it is dropped.
struct Group {
    leader: Child,
    reaped: bool,
}

impl Group {
    fn new(leader: Child) -> Self {
        Group {
            leader,
            reaped: false,
        }
    }

    fn pipes(&mut self) -> Result<(Pipe<PipeWriter>, Pipe<PipeReader>, Pipe<PipeReader>)> {
        let missing = || Error::bug("begin a script", "it has no pipes");
        let leader = &mut self.leader;
        let input = leader.stdin.take().map(OwnedFd::from).ok_or_else(missing)?;
        let output = leader.stdout.take().map(OwnedFd::from);
        let errors = leader.stderr.take().map(OwnedFd::from);
        let (output, errors) = (output.ok_or_else(missing)?, errors.ok_or_else(missing)?);
        Ok((Pipe::new(input), Pipe::new(output), Pipe::new(errors)))
    }

    /// How the process ended, if it has; it stays to be reaped.
    fn death(&self) -> Option<Death> {
        look(self.leader.id())
    }

    /// Waits for the process to end by itself; how it did, if the system knows.
    fn wait(&self, watch: &ScriptDeadline<'_>) -> Result<Option<Exit>, Halt> {
        loop {
            if let Some(death) = self.death() {
                return Ok(Exit::of(death));
            }
            if let Some(halt) = watch.check() {
                return Err(halt);
            }
            thread::sleep(LOOK);
        }
    }

    /// Kills the process and what it left behind.
    fn kill(&self) {
        // Of one that somebody else reaped, the number may be another's by now.
        if !self.reaped && self.death() != Some(Death::Unknown) {
            kill_group(self.leader.id());
        }
    }

    fn end(mut self) -> Exit {
        self.kill_and_reap()
    }

    fn kill_and_reap(&mut self) -> Exit {
        self.kill();
        self.reaped = true;
        let (pid, began) = (self.leader.id(), Instant::now());
        let killed = Exit::Signal(signals::SIGKILL);
        while began.elapsed() < REAPING {
            if let Some(death) = self.death() {
                reap(pid);
                return Exit::of(death).unwrap_or(killed);
            }
            thread::sleep(LOOK);
        }
        // It hangs in the kernel (a dead network file system, for one): it is dead when it comes back.
        let waiting = thread::Builder::new().spawn(move || reap(pid));
        drop(waiting);
        killed
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill_and_reap();
        }
    }
}

fn spawn(program: &ScriptProgram) -> Result<Child> {
    let Some((name, arguments)) = program.argv.split_first() else {
        return Err(Error::new(
            Kind::BadOption,
            "begin a script",
            "its command line is empty",
        ));
    };
    let found = find(name, program)?;
    let mut command = Command::new(&found);
    command
        .args(arguments)
        .envs(
            program
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .current_dir(&program.folder);
    lifeline::bind(&mut command); // this thread stays with the script: see `run`
    command.spawn().map_err(|error| not_begun(&found, &error))
}

/// The program as Hadoop finds it: in the working directory, where it is made executable; else in the search path.
fn find(name: &OsStr, program: &ScriptProgram) -> Result<PathBuf> {
    let path = Path::new(name);
    if path.is_absolute() {
        return if path.is_dir() {
            Err(no_program(path))
        } else if path.exists() {
            Ok(path.to_owned())
        } else {
            Err(not_found(name))
        };
    }
    let here = program.folder.join(path);
    if here.is_file() {
        make_executable(&here);
        return Ok(here);
    }
    let directories = std::env::split_paths(&program.search);
    let found = directories
        .filter(|directory| !directory.as_os_str().is_empty())
        .map(|directory| directory.join(path))
        .find(|file| file.is_file());
    found.ok_or_else(|| not_found(name))
}

fn not_found(name: &OsStr) -> Error {
    let path = Path::new(name);
    let (is_whole, last) = (path.is_absolute(), path.file_name().unwrap_or(name));
    let (name, last) = (show_path(name), show_path(last));
    if is_whole {
        let message = format!("there is no program `{name}`");
        return Error::new(Kind::NotFound, "begin a script", message).advise(format!(
            "ship it with the job, as in -file {name}, and call it {last}"
        ));
    }
    let message = format!(
        "there is no program `{name}`, neither in the task's working directory nor on the PATH"
    );
    let file = if name.contains('/') {
        name
    } else {
        format!("path/to/{name}")
    };
    Error::new(Kind::NotFound, "begin a script", message).advise(format!(
        "ship it with the job, as in -file {file}, or name its whole path"
    ))
}

fn no_program(directory: &Path) -> Error {
    Error::new(
        Kind::BadInput,
        "begin a script",
        "it is a directory, not a program",
    )
    .with_path(directory)
    .advise("name the program itself, and its arguments after it")
}

fn not_begun(path: &Path, error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(codes::ENOEXEC) => Error::new(Kind::BadInput, "begin a script", "it is not a program that the system can run")
            .with_path(path)
            .advise("begin it with a line such as #!/usr/bin/env python3, or name its interpreter in the command"),
        Some(codes::ENOENT) => Error::new(Kind::NotFound, "begin a script", "the interpreter of its first line is not there")
            .with_path(path)
            .advise("install the interpreter, or name another one in the script's first line"),
        Some(codes::E2BIG) => Error::new(Kind::BadOption, "begin a script", "its environment and arguments are too long for the system")
            .with_path(path)
            .advise("cut long properties with -D stream.jobconf.truncate.limit=20000"),
        Some(codes::EACCES) => Error::from_io("begin a script", path, error).advise(
            "make it executable with chmod +x, or name its interpreter in the command, as in -mapper 'python3 mapper.py'",
        ),
        _ => Error::from_io("begin a script", path, error),
    }
}

#[cfg(test)]
mod tests;
