//! Where an output of uploads goes: whether it may be written there, and where its job folder lies.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::SUCCESS;
use super::directory::{check_target, is_listed, is_output};
use super::file::FileStaging;
use super::job_folder::no_parent;
use super::listed::listed;
use gristmill_base::error::{Error, JobOption, Kind, Result};
use gristmill_storage::FileKind;
use gristmill_storage::location::{Location, parent_of};
use gristmill_storage::stores::Stores;

/// Bytes of the name of an output that its job folders have in theirs: stores have longer names than disks.
const NAME_BYTES: usize = 150;

/// The name by which the job folders of an output lie beside it: the output itself, or a name in the first of
/// `spill_dirs` where its files appear one by one.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_tasks::commit::home_of;
/// use gristmill_storage::{local::Local, stores::Stores};
/// let (stores, spill) = (Stores::new(Arc::new(Local)), ["/tmp".into()]);
/// assert_eq!(home_of(&stores, &"data/out".into(), &spill).to_str(), Some("data/out"));
/// assert_eq!(home_of(&stores, &"s3://b/out".into(), &spill).to_str(), Some("/tmp/out-6f423417"));
/// ```
pub fn home_of(stores: &Stores, target: &Location, spill_dirs: &[PathBuf]) -> PathBuf {
    let path = target.local();
    if let Some(path) = path.filter(|_| stores.publisher(target).is_none()) {
        return path.to_owned();
    }
    let name = target.name().unwrap_or_default().as_bytes();
    let begins = name.get(..NAME_BYTES).unwrap_or(name);
    let crc = crc32fast::hash(target.as_typed().as_os_str().as_encoded_bytes());
    let name = [begins, format!("-{crc:08x}").as_bytes()].concat();
    spill_dirs
        .first()
        .map_or(Path::new("."), PathBuf::as_path)
        .join(OsString::from_vec(name))
}

/// The file that is meant, where a link of this machine leads to it; any other output as it is.
pub(super) fn file_meant(
    stores: &Stores,
    (target, is_file): (&Location, bool),
) -> Result<Location> {
    match target.local().filter(|_| is_file) {
        Some(path) => {
            let (path, _) = FileStaging::names(&**stores.disk(), path)?;
            Ok(path.into())
        }
        None => Ok(target.clone()),
    }
}

/// Whether an output may be written there.
pub(super) fn check(
    stores: &Stores,
    target: &Location,
    overwrite: bool,
    is_file: bool,
) -> Result<()> {
    stores.check_writable(target)?;
    let refuse =
        |kind, what: &str| Error::new(kind, "write the output", what).with_path(target.as_typed());
    if target.name().is_none() {
        return Err(refuse(Kind::BadOption, "it has no name of its own").advise("name an output"));
    }
    if let Some(path) = target.local() {
        let parent = parent_of(path);
        if stores.disk().stat(parent)?.is_none() {
            return Err(no_parent(parent));
        }
        if !is_file && stores.stat(target)?.is_some() {
            check_target(&**stores.disk(), path, overwrite)?;
        }
    }
    // A listing may be late: an output is there where its `_SUCCESS` is.
    let has_proof = || Ok::<_, Error>(stores.stat(&target.join(SUCCESS))?.is_some());
    let kind = match stores.stat(target)? {
        Some(found) => found.kind,
        None if !is_file && has_proof()? => FileKind::Directory,
        None => return Ok(()),
    };
    if is_file {
        return match kind {
            FileKind::File => Ok(()),
            _ => Err(refuse(Kind::BadOption, "it is a directory").advise("name a file")),
        };
    }
    if kind == FileKind::File {
        let advice = "name an output that does not exist yet";
        return Err(refuse(Kind::Exists, "there is an object of this name").advise(advice));
    }
    if !overwrite {
        return Err(refuse(Kind::Exists, "the output exists").advise_options(
            "name another output, or give {} to replace it",
            [JobOption::Overwrite.named()],
        ));
    }
    let entries = stores.list(target)?;
    let foreign = entries.iter().filter(|path| !is_output(path.as_typed()));
    let mut foreign = foreign.peekable();
    let listed = match foreign.peek() {
        Some(_) => listed(stores, target)?,
        None => BTreeSet::new(),
    };
    if let Some(foreign) = foreign.find(|path| !is_listed(path.as_typed(), &listed)) {
        let what = "the directory holds more than a job's output, and overwriting would remove it";
        return Err(refuse(Kind::Exists, what)
            .with("for example", foreign)
            .advise("name another output, or remove the directory yourself"));
    }
    Ok(())
}
