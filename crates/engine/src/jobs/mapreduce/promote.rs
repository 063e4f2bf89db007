//! From the files of attempts to those of the output: only attempts that count have theirs published.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::outcome::MapReduceOutcome;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_storage::FileKind;
use gristmill_storage::location::Location;
use gristmill_storage::objects::Upload;
use gristmill_tasks::commit::{Committer, check_file_name, make_above};
use gristmill_tasks::task::UserTaskFile;

/// Moves the files of the attempts that count to where the output is made, but those that are uploaded; gives the names
/// of all, in order.
pub(super) fn promote(
    committer: &dyn Committer,
    attempts: &Path,
    (outcome, uploads): (&MapReduceOutcome, &[Upload]),
) -> Result<Vec<PathBuf>> {
    let sent: BTreeSet<&Location> = uploads.iter().map(|upload| &upload.path).collect();
    let mut names = BTreeSet::new();
    for (folder, file) in outcome.files() {
        check_file_name(&file.name)?;
        if !names.insert(file.name.clone()) {
            return Err(same_name(&file.name));
        }
        if sent.contains(&committer.path_of(&file.name)) {
            continue;
        }
        check_folder(folder, attempts)?;
        stage_file(committer, folder, file)?;
    }
    Ok(names.into_iter().collect())
}

/// Fails unless a folder is that of an attempt.
pub(super) fn check_folder(folder: &Path, attempts: &Path) -> Result<()> {
    match folder.parent() == Some(attempts) {
        true => Ok(()),
        false => {
            let error = Error::bug("collect the output", "an attempt wrote elsewhere");
            Err(error.with_path(folder))
        }
    }
}

/// The error of two tasks that wrote a file of one name.
pub(super) fn same_name(name: &Path) -> Error {
    let message = "two tasks wrote a file of this name";
    Error::new(Kind::BadInput, "collect the output", message)
        .with("name", show_path(name))
        .advise("put the task's number into the name")
}

/// Moves a file of an attempt to where the output is made.
fn stage_file(committer: &dyn Committer, folder: &Path, file: &UserTaskFile) -> Result<()> {
    let store = committer.folder().disk();
    let path = folder.join(&file.name);
    let found = store
        .stat(&path)?
        .filter(|stat| stat.kind == FileKind::File);
    if found.map(|stat| stat.bytes) != Some(file.bytes) {
        return Err(changed(&path, file.bytes, found.map(|stat| stat.bytes)));
    }
    let to = committer.folder().staged().join(&file.name);
    make_above(store, &to)?;
    store.rename(&path, &to)
}

/// A file that is no more what its task wrote.
fn changed(path: &Path, wrote: u64, found: Option<u64>) -> Error {
    let message = match found {
        Some(bytes) => format!("a task wrote {wrote} bytes, and now the file has {bytes}"),
        None => format!("a task wrote {wrote} bytes, and now there is no file"),
    };
    Error::new(Kind::Proof, "collect the output", message)
        .with_path(path)
        .advise(
            "let no script or function write to the task's own part, or remove it: files that it makes beside it \
             need other names",
        )
}
