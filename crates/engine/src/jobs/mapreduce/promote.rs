//! From the files of attempts to those of the output: only attempts that count have theirs published.

use std::path::Path;
use std::path::PathBuf;

use super::outcome::Outcome;
use crate::commit::{Committer, check_file_name, make_above};
use crate::error::{Error, Kind, Result};
use crate::names::show_path;
use crate::storage::FileKind;

/// Moves the files of the attempts that count to where the output is made; gives their names, in order.
pub(super) fn promote(
    committer: &dyn Committer,
    attempts: &Path,
    outcome: &Outcome,
) -> Result<Vec<PathBuf>> {
    let store = committer.disk();
    let mut names = Vec::new();
    for (folder, file) in outcome.files() {
        check_file_name(&file.name)?;
        if folder.parent() != Some(attempts) {
            return Err(
                Error::bug("collect the output", "an attempt wrote elsewhere").with_path(folder),
            );
        }
        let path = folder.join(&file.name);
        let found = store
            .stat(&path)?
            .filter(|stat| stat.kind == FileKind::File);
        if found.map(|stat| stat.bytes) != Some(file.bytes) {
            return Err(changed(&path, file.bytes, found.map(|stat| stat.bytes)));
        }
        let to = committer.staged().join(&file.name);
        make_above(store, &to)?;
        store
            .rename(&path, &to)
            .map_err(|error| match error.kind() {
                Kind::Exists => Error::new(
                    Kind::BadInput,
                    "collect the output",
                    "two tasks wrote a file of this name",
                )
                .with("name", show_path(&file.name))
                .advise("put the task's number into the name"),
                _ => error,
            })?;
        names.push(file.name.clone());
    }
    names.sort();
    Ok(names)
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
