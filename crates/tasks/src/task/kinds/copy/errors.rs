//! What is wrong with a file that cannot be copied.

use super::item::CopyItem;
use gristmill_base::error::{Error, JobOption, Kind};
use gristmill_storage::location::Location;

pub(super) const OPERATION: &str = "copy a file";

pub(super) fn changed(path: &Location) -> Error {
    Error::new(
        Kind::InputChanged,
        OPERATION,
        "it changed while it was read",
    )
    .with_path(path.as_typed())
    .advise("let no program write to the source, then run again")
    .final_error()
}

/// The error of a file whose length is not that of its bytes, as of those that the kernel makes while they are read.
pub(super) fn of_unknown_length(path: &Location, read: u64) -> Error {
    let message = format!("its length is not that of its bytes, of which {read} were read");
    Error::new(Kind::BadInput, OPERATION, message)
        .with_path(path.as_typed())
        .advise("read it with cat, if it is a file of the kernel, as in /proc")
        .final_error()
}

/// The error of a target that files cannot be written to so: it was refused before.
pub(super) fn takes_no_files(path: &Location) -> Error {
    Error::bug(OPERATION, "its place takes no files").with_path(path.as_typed())
}

pub(super) fn not_proved(path: &Location) -> Error {
    let message = "the bytes there are not those that were written";
    Error::new(Kind::Proof, OPERATION, message)
        .with_path(path.as_typed())
        .advise("let no other program write to the target, check the device, then run again")
}

/// The error of a name that the target does not take: it comes from the source, and not from an option.
pub(super) fn unusable(item: &CopyItem, error: &Error) -> Error {
    Error::new(Kind::BadInput, OPERATION, error.what())
        .with_path(item.to.as_typed())
        .with("source", &item.from)
        .advise("rename the file, or leave it out with --exclude")
}

pub(super) fn has_name(path: &Location, what: &str) -> Error {
    Error::new(Kind::Exists, OPERATION, what)
        .with_path(path.as_typed())
        .advise("remove it, or name another target")
        .final_error()
}

/// The error of a target that no copy replaces: `/dev/null` is one.
pub(super) fn special(path: &Location) -> Error {
    let message = "a pipe, a socket or a device has its name";
    Error::new(Kind::Exists, OPERATION, message)
        .with_path(path.as_typed())
        .advise("name another target")
        .final_error()
}

pub(super) fn differs(item: &CopyItem) -> Error {
    let message = "a file that has its name has other bytes";
    Error::new(Kind::Exists, OPERATION, message)
        .with_path(item.to.as_typed())
        .with("source", &item.from)
        .advise_options(
            "give {} to replace all files, or --update to replace those that differ",
            [JobOption::Overwrite.named()],
        )
        .final_error()
}
