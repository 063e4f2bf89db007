//! One error type: what kind of thing went wrong, whether trying again can help, during which operation,
//! and where (file, offset, record, task).
//!
//! The kind is what programs look at; the text is for people and is never matched. Four families are kept
//! apart: the input or the command is wrong (`BadInput`, `BadOption`, ...), a resource is missing (`Memory`,
//! `DiskFull`), the code that the user brought is wrong (`UserCode`), and we are wrong (`Proof`, `Bug`).
//!
//! `Display` prints one paragraph: operation, what happened, where, and what to do about it, with options as they are
//! on the command line.

mod advice;
mod details;
mod units;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;

use serde::de::IntoDeserializer;
use serde::de::value::Error as UnknownName;
use serde::{Deserialize, Serialize};

use crate::names::show_path;

pub use advice::{Advice, JobOption, NamedOption, Spelling};
pub use details::Details;
pub use units::show_bytes;

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong. Stable names: `Kind::name` is part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The input's bytes are not what the job was told they are.
    BadInput,
    /// An option's value makes no sense. The command line is wrong: exit code 2.
    BadOption,
    /// Something named does not exist.
    NotFound,
    /// Something exists that must not.
    Exists,
    /// The operating system does not permit it (permissions, read-only file systems).
    Permission,
    /// The memory budget is too small for the job.
    Memory,
    /// The disk is too small for the job, or became full.
    DiskFull,
    /// A device or file system failed.
    Io,
    /// The input changed while the job read it.
    InputChanged,
    /// The output is not in order: what a validator finds.
    Disorder,
    /// The job was cancelled.
    Cancelled,
    /// The reader of the output has gone away.
    ReaderGone,
    /// User code failed: it raised an exception, crashed or hung.
    UserCode,
    /// The job's output could not be proved equal to its input.
    Proof,
    /// Gristmill is wrong.
    Bug,
}

impl Kind {
    /// The kind's stable name, as it stands in JSON reports.
    ///
    /// ```
    /// assert_eq!(gristmill_base::Kind::DiskFull.name(), "disk_full");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Kind::BadInput => "bad_input",
            Kind::BadOption => "bad_option",
            Kind::NotFound => "not_found",
            Kind::Exists => "exists",
            Kind::Permission => "permission",
            Kind::Memory => "memory",
            Kind::DiskFull => "disk_full",
            Kind::Io => "io",
            Kind::InputChanged => "input_changed",
            Kind::Disorder => "disorder",
            Kind::Cancelled => "cancelled",
            Kind::ReaderGone => "reader_gone",
            Kind::UserCode => "user_code",
            Kind::Proof => "proof",
            Kind::Bug => "bug",
        }
    }

    /// The kind of this name, if there is one.
    ///
    /// ```
    /// use gristmill_base::Kind;
    /// assert_eq!(Kind::from_name("disk_full"), Some(Kind::DiskFull));
    /// assert_eq!(Kind::from_name("disk full"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        let name = IntoDeserializer::<UnknownName>::into_deserializer(name);
        Kind::deserialize(name).ok()
    }
}

/// What to do about a disk that is full.
pub const MAKE_ROOM: &str = "free some space there, or write to another file system";

/// What to do about a file that its server does not know any more.
const STALE: &str = "check that no other machine removes or replaces it, then run again";

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// What went wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    kind: Kind,
    retryable: bool,
    own_work: bool,
    leaves_work: bool,
    operation: Cow<'static, str>,
    message: String,
    context: Vec<(Cow<'static, str>, String)>,
    /// What is not in the paragraph. Apart, as the advice: every result would be the larger for it.
    pub details: Box<Details>,
    advice: Option<Box<Advice>>,
}

impl Error {
    /// An error of `kind` during `operation` (a verb with its object, such as "read input").
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let error = Error::new(Kind::BadInput, "read input", "its length is not a multiple of 100")
    ///     .with("file", "data/a")
    ///     .advise("cut the file");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "cannot read input: its length is not a multiple of 100 (file data/a). What to do: cut the file."
    /// );
    /// ```
    pub fn new(
        kind: Kind,
        operation: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Error {
            kind,
            retryable: false,
            own_work: false,
            leaves_work: false,
            operation: operation.into(),
            message: message.into(),
            context: Vec::new(),
            details: Box::default(),
            advice: None,
        }
    }

    /// An operating-system error on a file. Whether a retry can help follows from its code. Where a disk is full, that is
    /// what is advised, unless who calls knows better.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let full = std::io::Error::from_raw_os_error(28); // ENOSPC
    /// let error = Error::from_io("write output", "out/part-r-00000".as_ref(), &full);
    /// assert_eq!((error.kind(), error.retryable()), (Kind::DiskFull, false));
    /// ```
    pub fn from_io(operation: &'static str, path: &Path, error: &io::Error) -> Self {
        let (kind, retryable) = match error.kind() {
            io::ErrorKind::NotFound => (Kind::NotFound, false),
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                (Kind::Exists, false)
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                (Kind::Permission, false)
            }
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => (Kind::DiskFull, false),
            io::ErrorKind::OutOfMemory => (Kind::Memory, false),
            io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => (Kind::BadInput, false),
            _ => (Kind::Io, true),
        };
        let mut made = Error::new(kind, operation, describe(error)).with_path(path);
        made.retryable = retryable;
        if is_full(error) {
            made = made.advise(MAKE_ROOM);
        }
        if error.kind() == io::ErrorKind::StaleNetworkFileHandle {
            made = made.advise(STALE);
        }
        made
    }

    /// A bug of Gristmill's: a state that cannot be.
    pub fn bug(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Error::new(Kind::Bug, operation, message)
            .advise("report this as a defect of Gristmill, with the command that led here")
    }

    /// The error of a cancelled job.
    pub fn cancelled() -> Self {
        Error::new(Kind::Cancelled, "finish the job", "it was cancelled")
    }

    /// Adds where it happened: one name and its value. What has been said already is not said again.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let error = Error::new(Kind::BadInput, "read", "it is damaged").with("file", "a.gz").with("file", "a.gz");
    /// assert_eq!(error.to_string(), "cannot read: it is damaged (file a.gz).");
    /// ```
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl fmt::Display) -> Self {
        let said = (name.into(), value.to_string());
        if !self.context.contains(&said) {
            self.context.push(said);
        }
        self
    }

    /// The same error of another operation: that of whoever asked for what failed.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let error = Error::new(Kind::Memory, "sort the input", "64M is too small").during("run the job");
    /// assert_eq!(error.to_string(), "cannot run the job: 64M is too small.");
    /// ```
    #[must_use]
    pub fn during(mut self, operation: impl Into<Cow<'static, str>>) -> Self {
        self.operation = operation.into();
        self
    }

    /// The same error where something has another name for people: a file that was made for a pipe, say.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let error = Error::new(Kind::BadInput, "read the input", "/tmp/x is empty").with("file", "/tmp/x");
    /// assert_eq!(error.renamed("/tmp/x", "a pipe").to_string(), "cannot read the input: a pipe is empty (file a pipe).");
    /// ```
    #[must_use]
    pub fn renamed(mut self, from: &str, to: &str) -> Self {
        let texts = self.context.iter_mut().map(|(_, text)| text);
        for text in texts.chain([&mut self.message]) {
            *text = text.replace(from, to);
        }
        self
    }

    /// Adds what does not belong in a paragraph; `Display` leaves it out.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let error = Error::new(Kind::UserCode, "map a record", "it raised").detail("traceback", "line 1\nline 2");
    /// assert_eq!(error.detail_of("traceback"), Some("line 1\nline 2"));
    /// assert_eq!(error.to_string(), "cannot map a record: it raised.");
    /// ```
    #[must_use]
    pub fn detail(mut self, name: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        self.details.texts.push((name.into(), text.into()));
        self
    }

    /// The same of what the program itself looks at.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let error = Error::new(Kind::Memory, "sort", "64M is too small");
    /// let error = error.noting(|details| details.needed_bytes = Some(80_000_000));
    /// assert_eq!(error.details.needed_bytes, Some(80_000_000));
    /// ```
    #[must_use]
    pub fn noting(mut self, note: impl FnOnce(&mut Details)) -> Self {
        note(&mut self.details);
        self
    }

    /// With what is equal if the same thing fails in the same way again: a third attempt would not help then.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let mut error = Error::new(Kind::UserCode, "map a record", "it raised").recurring("record 7");
    /// assert_eq!(error.take_fingerprint().as_deref(), Some("record 7"));
    /// assert_eq!(error.take_fingerprint(), None);
    /// ```
    #[must_use]
    pub fn recurring(self, fingerprint: impl Into<String>) -> Self {
        self.noting(|details| details.fingerprint = Some(fingerprint.into()))
    }

    /// Takes what was given to [`Error::recurring`]; nothing where that was empty.
    pub fn take_fingerprint(&mut self) -> Option<String> {
        let found = self.details.fingerprint.take();
        found.filter(|fingerprint| !fingerprint.is_empty())
    }

    /// The first text that was added under this name.
    pub fn detail_of(&self, name: &str) -> Option<&str> {
        let mut texts = self.details.texts.iter();
        let found = texts.find(|(known, _)| known == name);
        found.map(|(_, text)| text.as_str())
    }

    /// Names the option whose value is wrong, for those who know where the value came from: the command line says so of
    /// a variable in the environment.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let error = Error::new(Kind::BadOption, "read the options", "memory is 0").of_option("memory");
    /// assert_eq!(error.details.option.as_deref(), Some("memory"));
    /// ```
    #[must_use]
    pub fn of_option(self, name: &str) -> Self {
        self.noting(|details| details.option = Some(name.to_owned()))
    }

    /// Adds the file it happened in.
    #[must_use]
    pub fn with_path(self, path: &Path) -> Self {
        self.with("file", show_path(path))
    }

    /// Adds what a person can do about it (an imperative without a full stop).
    #[must_use]
    pub fn advise(self, advice: impl Into<String>) -> Self {
        self.advise_options(advice, [])
    }

    /// The same, where options of the job are advised: each `{}` stands for one, spelled for who reads it.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind, error::{JobOption, Spelling}};
    /// let error = Error::new(Kind::Exists, "write the output", "it exists")
    ///     .advise_options("give {} to replace it", [JobOption::Overwrite.named()]);
    /// assert!(error.to_string().ends_with("What to do: give --overwrite to replace it."));
    /// assert!(error.spelled(Spelling::Python).ends_with("What to do: give overwrite=True to replace it."));
    /// ```
    #[must_use]
    pub fn advise_options(
        self,
        advice: impl Into<String>,
        options: impl IntoIterator<Item = NamedOption>,
    ) -> Self {
        self.with_advice(Advice::new(advice.into(), options.into_iter().collect()))
    }

    /// Takes over the advice of another error.
    #[must_use]
    pub fn with_advice(mut self, advice: Advice) -> Self {
        self.advice = Some(Box::new(advice));
        self
    }

    /// What a person can do about it.
    pub fn advice(&self) -> Option<&Advice> {
        self.advice.as_deref()
    }

    /// What happened and what to do about it, without what was being done: for an error that becomes a part of another.
    ///
    /// ```
    /// use gristmill_base::{Error, Kind};
    /// let error = Error::new(Kind::BadOption, "read the options", "\"x\" is not a size").advise("write it like 8G");
    /// assert_eq!(error.says(), "\"x\" is not a size. What to do: write it like 8G");
    /// ```
    pub fn says(&self) -> String {
        match &self.advice {
            Some(advice) => {
                let advice = advice.spelled(Spelling::CommandLine);
                format!("{}. What to do: {advice}", self.message)
            }
            None => self.message.clone(),
        }
    }

    /// What was being done, and what happened, without the rest.
    pub fn what(&self) -> String {
        format!("{}: {}", self.operation, self.message)
    }

    /// The paragraph, with options spelled for who reads it.
    pub fn spelled(&self, spelling: Spelling) -> String {
        let mut paragraph = format!("cannot {}", self.what());
        for (i, (name, value)) in self.context.iter().enumerate() {
            let before = if i == 0 { " (" } else { ", " };
            paragraph.extend([before, name.as_ref(), " ", value.as_str()]);
        }
        if !self.context.is_empty() {
            paragraph.push(')');
        }
        paragraph.push('.');
        if let Some(advice) = &self.advice {
            paragraph.extend([" What to do: ", advice.spelled(spelling).as_str(), "."]);
        }
        paragraph
    }

    /// The error of an output whose reader has gone away: no fault of the job's, which ends quietly.
    pub fn reader_gone() -> Self {
        Error::new(Kind::ReaderGone, "write the output", "its reader has gone")
    }

    /// Marks that trying the same task again cannot help.
    #[must_use]
    pub fn final_error(mut self) -> Self {
        self.retryable = false;
        self
    }

    /// Marks that trying the same task again can help.
    #[must_use]
    pub fn retryable_error(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Marks that what is wrong is a file that the job had made itself, and can make anew.
    #[must_use]
    pub fn of_own_work(mut self) -> Self {
        self.own_work = true;
        self
    }

    /// Whether what is wrong is a file that the job had made itself, and can make anew.
    pub fn is_of_own_work(&self) -> bool {
        self.own_work
    }

    /// Marks that nothing is wrong with what the job has made: it stays for those who resume the job.
    #[must_use]
    pub fn leaving_work(mut self) -> Self {
        self.leaves_work = true;
        self
    }

    /// Whether what the job has made stays for those who resume it.
    pub fn leaves_work(&self) -> bool {
        self.leaves_work
    }

    /// The kind of error.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether trying the same task again can help.
    pub fn retryable(&self) -> bool {
        self.retryable
    }

    /// Where it happened, in the order in which it was said.
    pub fn context(&self) -> &[(Cow<'static, str>, String)] {
        &self.context
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(Spelling::CommandLine))
    }
}

impl std::error::Error for Error {}

/// The system's words for an error, without Rust's "(os error 28)".
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}
