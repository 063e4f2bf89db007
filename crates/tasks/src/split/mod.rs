//! Split: from the names a user gave to input files, and from those to splits, one for each map task.
//!
//! ```text
//!   data/        ──▶  data/a  ──▶  | split 0 | split 1 | split 2
//!   more.dat          data/b                           | (small files share one)
//!                     more.dat                                  | split 3 | ...
//! ```
//!
//! Both steps are functions of names, sizes and options alone. Splits tile the input: every byte is in one.

pub mod csv_rows;
pub mod lines;
pub mod pattern;
pub mod records;
pub mod several_lines;
pub mod text;

use std::collections::BTreeSet;
use std::path::Path;

use self::pattern::PatternMatch;
use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::show_path;
use gristmill_storage::input::{InputFile, InputRange};
use gristmill_storage::io::at_once::{SHORT_AT_ONCE, at_once};
use gristmill_storage::local::{dangling, no_input, not_there};
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_storage::{BLOCK_BYTES, Caching, FileKind};

/// The files that `names` stand for: a file is itself; a directory is the files in it, in the order of their
/// names, without those that begin with `_` or `.`; a pattern in a store is what it matches ([`pattern`]).
///
/// ```
/// use gristmill_storage::{LocalDisk as _, OutputStore as _};
/// use gristmill_storage::{Caching, memory::Memory, stores::Stores};
/// use gristmill_tasks::split::input_files;
/// let store = Memory::with_room_for(100);
/// store.create_directory("/in".as_ref())?;
/// for name in ["/in/b", "/in/a", "/in/_SUCCESS"] {
///     store.create(name.as_ref(), 1, Caching::Cached)?;
/// }
/// let files = input_files(&Stores::new(std::sync::Arc::new(store)), &["/in".into()])?;
/// assert_eq!(files.iter().map(|file| file.path.to_string()).collect::<Vec<_>>(), ["/in/a", "/in/b"]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn input_files(stores: &Stores, names: &[Location]) -> Result<Vec<InputFile>> {
    let most = names.first().map_or(1, asked_at_once);
    let found = at_once(names, most, |name| match files_of(stores, name)? {
        ResolvedInput::Files(found) => Ok(found),
        ResolvedInput::Other => Err(not_a_file(name)),
    })?;
    let mut files = Vec::new();
    for found in found {
        append(&mut files, found);
    }
    Ok(files)
}

/// What a name stands for.
#[derive(Debug)]
pub enum ResolvedInput {
    /// A file, or those of a directory, or of what a pattern matches.
    Files(Vec<InputFile>),
    /// Something that is neither.
    Other,
}

/// The files that one name stands for: each is asked once for its state.
///
/// ```
/// use gristmill_tasks::split::{ResolvedInput, files_of};
/// use gristmill_storage::{Caching, LocalDisk, OutputStore, memory::Memory, stores::Stores};
/// let store = Memory::with_room_for(1 << 20);
/// store.create_directory("/in".as_ref())?;
/// for name in ["/in/a", "/in/_b"] {
///     store.create(name.as_ref(), 1, Caching::Cached)?;
/// }
/// let stores = Stores::new(std::sync::Arc::new(store));
/// assert!(matches!(files_of(&stores, &"/in".into())?, ResolvedInput::Files(files) if files.len() == 1));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn files_of(stores: &Stores, name: &Location) -> Result<ResolvedInput> {
    let mut files = Vec::new();
    for found in pattern::found(stores, name)? {
        match files_at(stores, &found)? {
            ResolvedInput::Files(found) => append(&mut files, found),
            ResolvedInput::Other => return Ok(ResolvedInput::Other),
        }
    }
    Ok(ResolvedInput::Files(files))
}

/// Puts files behind others; a million of them are not there twice.
fn append(files: &mut Vec<InputFile>, mut more: Vec<InputFile>) {
    if files.is_empty() {
        *files = more;
    } else {
        files.append(&mut more);
    }
}

/// The files that something found stands for: it is asked for its state, unless that was seen.
///
/// # Errors
/// It is not there, or is something else; or the store's.
///
/// ```
/// use gristmill_tasks::split::{ResolvedInput, files_at, pattern::found};
/// use gristmill_storage::{Caching, OutputStore, memory::Memory, stores::Stores};
/// let store = Memory::with_room_for(1 << 20);
/// store.create("/a".as_ref(), 1, Caching::Cached)?;
/// let stores = Stores::new(std::sync::Arc::new(store));
/// let found = found(&stores, &"/a".into())?;
/// assert!(matches!(files_at(&stores, &found[0])?, ResolvedInput::Files(files) if files.len() == 1));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn files_at(stores: &Stores, found: &PatternMatch) -> Result<ResolvedInput> {
    let name = &found.path;
    let stat = |path: &Location| {
        let found = stores.stat(path)?;
        found.ok_or_else(|| no_input(path.as_typed()))
    };
    let found = found.stat.map_or_else(|| stat(name), Ok)?;
    match found.kind {
        FileKind::Other => return Ok(ResolvedInput::Other),
        FileKind::File | FileKind::DanglingLink => {
            let file = InputFile {
                path: name.clone(),
                stat: found,
            };
            check_file(&file)?;
            return Ok(ResolvedInput::Files(vec![file]));
        }
        FileKind::Directory => {}
    }
    let (mut listed, mut unknown) = (Vec::new(), Vec::new());
    stores.list_each(name, |path, stat| {
        match stat {
            _ if is_hidden(path.path()) => {}
            Some(stat) => listed.push(InputFile { path, stat }),
            None => unknown.push(path),
        }
        Ok(())
    })?;
    let asked = at_once(&unknown, asked_at_once(name), |path| stat(path));
    let asked = unknown.iter().zip(asked?).map(|(path, stat)| InputFile {
        path: path.clone(),
        stat,
    });
    listed.extend(asked);
    // A name that is both a file and the beginning of others is the file.
    if !listed.is_sorted_by(|a, b| a.path <= b.path) {
        listed.sort_by(|a, b| a.path.cmp(&b.path));
    }
    listed.dedup_by(|after, before| after.path == before.path);
    listed.iter().try_for_each(check_file)?;
    Ok(ResolvedInput::Files(listed))
}

/// How many files that lie with this one are looked at at once: a disk answers at once.
pub fn asked_at_once(path: &Location) -> usize {
    if path.is_remote() { SHORT_AT_ONCE } else { 1 }
}

/// The error of an input that is neither file nor directory.
///
/// ```
/// let error = gristmill_tasks::split::not_a_file(&"/dev/tty".into());
/// assert!(error.to_string().starts_with("cannot read the input: it is not a regular file"));
/// ```
pub fn not_a_file(path: &Location) -> Error {
    Error::new(Kind::BadInput, "read the input", "it is not a regular file")
        .with_path(path.as_typed())
        .advise("copy its bytes to a file first")
}

/// Whether a file in a directory is passed over, as Hadoop does: its name begins with `_` or `.`.
pub fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        let first = name.as_encoded_bytes().first();
        matches!(first, Some(b'_' | b'.'))
    })
}

/// Fails where an input is not a file.
fn check_file(InputFile { path, stat }: &InputFile) -> Result<()> {
    match stat.kind {
        FileKind::File => Ok(()),
        FileKind::Directory => {
            let what = "it is a directory inside an input directory";
            let around = path.as_typed().parent().unwrap_or(path.as_typed());
            let all = show_path(around.join("*"));
            let advice =
                format!("name all that is in it, as with {all}, or let its name begin with \"_\"");
            Err(Error::new(Kind::BadInput, "read the input", what)
                .with_path(path.as_typed())
                .advise(advice))
        }
        FileKind::DanglingLink => {
            let error = dangling("read the input", path.as_typed());
            Err(error.advise("mend the link, or name another file"))
        }
        FileKind::Other => Err(not_a_file(path)),
    }
}

/// Fails where an output directory would lie in a directory that is an input, and the next job would find it there: names that begin
/// with `_` or `.` are passed over.
///
/// # Errors
/// It does; or a pattern cannot be looked for.
///
/// ```
/// use gristmill_storage::{local::Local, stores::Stores};
/// use gristmill_tasks::split::check_outside;
/// let stores = Stores::new(std::sync::Arc::new(Local));
/// let check = |input: &str, output: &str| check_outside(&stores, &[input.into()], &output.into());
/// assert!(check("/data/in", "/data/out").is_ok());
/// assert!(check("/data/in", "/data/in/_out").is_ok());
/// assert!(check("/data/in", "/data/in/out").is_err());
/// assert!(check("s3://b/in/", "s3://b/in/a/out").is_err());
/// ```
pub fn check_outside(stores: &Stores, inputs: &[Location], output: &Location) -> Result<()> {
    for name in inputs {
        let found = match pattern::is_pattern(name) {
            true => pattern::matching(stores, name)?,
            false => vec![PatternMatch {
                path: name.clone(),
                stat: None,
            }],
        };
        if let Some(input) = found.iter().find(|found| is_found_in(output, &found.path)) {
            let what =
                "the output directory lies in an input directory, and the next job would read it";
            return Err(Error::new(Kind::BadOption, "write the output", what)
                .with_path(output.as_typed())
                .with("input", &input.path)
                .advise("name an output elsewhere, or one whose name begins with \"_\""));
        }
    }
    Ok(())
}

/// Whether a list of `outer` has `inner`, or what holds it.
fn is_found_in(inner: &Location, outer: &Location) -> bool {
    let below = inner.below(outer);
    let first = below.as_deref().and_then(|below| below.iter().next());
    first.is_some_and(|first| !is_hidden(first.as_ref()))
}

/// Fails unless every file holds whole records of `record_bytes` bytes.
pub fn check_whole_records(files: &[InputFile], record_bytes: usize) -> Result<()> {
    for InputFile { path, stat } in files {
        let rest = stat.bytes % record_bytes as u64;
        if rest != 0 {
            let message = format!(
                "its length of {} bytes is not a multiple of the record length {record_bytes}: behind {} whole \
                 record(s), {rest} bytes are left at offset {}",
                stat.bytes,
                stat.bytes / record_bytes as u64,
                stat.bytes - rest
            );
            return Err(Error::new(Kind::BadInput, "read the input", message)
                .with_path(path.as_typed())
                .advise("check that the file was copied whole, and that it holds such records"));
        }
    }
    Ok(())
}

/// Fails where a file has not the bytes that it says it has, as those of /proc and /sys: splits are cut by what files say.
///
/// ```
/// use gristmill_storage::{local::Local, stores::Stores};
/// use gristmill_tasks::split::{check_length, input_files};
/// let stores = Stores::new(std::sync::Arc::new(Local));
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("empty");
/// std::fs::write(&path, "")?;
/// let files = input_files(&stores, &[path.into()])?;
/// assert!(check_length(&stores, &files[0].path, files[0].stat.bytes).is_ok());
/// # #[cfg(target_os = "linux")]
/// assert!(check_length(&stores, &"/proc/version".into(), 0).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_length(stores: &Stores, path: &Location, bytes: u64) -> Result<()> {
    if !states_another_length(stores, path, bytes)? {
        return Ok(());
    }
    let message = match bytes {
        0 => "it says that it is empty, and it is not, like the files of /proc".to_owned(),
        _ => format!("it says that it has {bytes} bytes, and it has less, like the files of /sys"),
    };
    Err(Error::new(Kind::BadInput, "read the input", message)
        .with_path(path.as_typed())
        .advise("copy its bytes to a file first"))
}

/// Whether a file ends before the bytes that it says it has, as those of /sys do: they say that they have a page, or nothing.
///
/// ```
/// use gristmill_storage::{local::Local, stores::Stores};
/// use gristmill_tasks::split::states_another_length;
/// let stores = Stores::new(std::sync::Arc::new(Local));
/// # #[cfg(target_os = "linux")]
/// assert!(states_another_length(&stores, &"/proc/version".into(), 0)?);
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("a page");
/// std::fs::write(&path, [b'x'; 4096]).unwrap();
/// assert!(!states_another_length(&stores, &path.into(), 4096)?);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
pub fn states_another_length(stores: &Stores, path: &Location, bytes: u64) -> Result<bool> {
    const PAGES: [u64; 3] = [4 << 10, 16 << 10, 64 << 10];
    if path.is_remote() || !(bytes == 0 || PAGES.contains(&bytes)) {
        return Ok(false);
    }
    let file = stores.open(path, Caching::Cached)?;
    let is_there = file.read_at(&mut [0], bytes.saturating_sub(1))? > 0;
    Ok(is_there == (bytes == 0))
}

/// The folders of files that lie on mounts which several machines share.
fn folders_on_mounts(stores: &Stores, files: &[InputFile]) -> BTreeSet<Location> {
    let mut folders: Vec<_> = files.iter().filter_map(|file| file.path.parent()).collect();
    folders.dedup(); // files of one directory follow each other
    let is_mounted = |folder: &Location| {
        let path = folder.local();
        path.is_some_and(|path| stores.disk().shared_mount(path).is_some())
    };
    folders.into_iter().filter(is_mounted).collect()
}

/// Fails if a file is not what it was when the job began. Where a store gives what was found or nothing, it was that.
pub fn check_unchanged(stores: &Stores, files: &[InputFile]) -> Result<()> {
    let most = files.first().map_or(1, |file| asked_at_once(&file.path));
    let mounted = folders_on_mounts(stores, files);
    at_once(files, most, |InputFile { path, stat }| {
        if stores.pins_versions(path) {
            return Ok(());
        }
        if !mounted.is_empty()
            && path
                .parent()
                .is_some_and(|folder| mounted.contains(&folder))
        {
            stores.open(path, Caching::Cached)?; // which asks the server: what is known of a file may be a minute old
        }
        let now = stores
            .stat(path)?
            .ok_or_else(|| not_there("read the input", path.as_typed()))?;
        if (now.bytes, now.modified_ns) != (stat.bytes, stat.modified_ns) {
            let message = format!(
                "it changed while the job ran: it had {} bytes and has {} now",
                stat.bytes, now.bytes
            );
            return Err(Error::new(Kind::InputChanged, "read the input", message)
                .with_path(path.as_typed())
                .advise("let no program write to the input, then run again"));
        }
        Ok(())
    })
    .map(drop)
}

/// What one map task reads: a range of one large file, or several small files.
pub type Split = Vec<InputRange>;

/// Its bytes.
pub fn bytes_of(split: &[InputRange]) -> u64 {
    split.iter().map(|range| range.bytes).sum()
}

/// The largest stride by which splits are aligned; odd record lengths beyond it give up block alignment.
const STRIDE_MAX: u64 = 4 << 20;

/// The bytes after which a record border and a block border meet again, or the record's length where that is far.
///
/// ```
/// use gristmill_tasks::split::stride;
/// assert_eq!((stride(100), stride(4096), stride(1_000_003)), (102_400, 4096, 1_000_003));
/// ```
pub fn stride(record_bytes: u64) -> u64 {
    let block = BLOCK_BYTES as u64;
    let twos = record_bytes.trailing_zeros().min(block.trailing_zeros());
    let common = (record_bytes >> twos).saturating_mul(block);
    if common <= STRIDE_MAX {
        common
    } else {
        record_bytes
    }
}

/// Cuts the files into splits of about `target_bytes`, at multiples of `stride` within a file.
///
/// A last piece of up to a tenth of the target stays with the split before it; files smaller than the target are
/// put together with their neighbours.
///
/// ```
/// use gristmill_storage::input::InputRange;
/// use gristmill_tasks::split::splits;
/// let piece = |file, offset, bytes| InputRange { file, offset, bytes };
/// assert_eq!(splits(&[210, 0, 30, 40], 100, 10), [
///     vec![piece(0, 0, 100)],
///     vec![piece(0, 100, 110)],
///     vec![piece(2, 0, 30), piece(3, 0, 40)],
/// ]);
/// ```
pub fn splits(file_bytes: &[u64], target_bytes: u64, stride: u64) -> Vec<Split> {
    let step = (target_bytes / stride).max(1) * stride;
    let slop = step + step / 10;
    let mut splits = Vec::new();
    let mut shared: Split = Vec::new();
    let mut shared_bytes = 0;
    for (file, &bytes) in file_bytes
        .iter()
        .enumerate()
        .filter(|(_, bytes)| **bytes > 0)
    {
        let alone = bytes >= step;
        if !shared.is_empty() && (alone || shared_bytes + bytes > slop) {
            splits.push(std::mem::take(&mut shared));
            shared_bytes = 0;
        }
        if !alone {
            shared.push(InputRange {
                file,
                offset: 0,
                bytes,
            });
            shared_bytes += bytes;
            continue;
        }
        let mut offset = 0;
        while offset < bytes {
            let left = bytes - offset;
            let bytes = if left <= slop { left } else { step };
            splits.push(vec![InputRange {
                file,
                offset,
                bytes,
            }]);
            offset += bytes;
        }
    }
    if !shared.is_empty() {
        splits.push(shared);
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn splits_tile_every_file(
            records in proptest::collection::vec(0_u64..5_000, 0..12),
            target in 1_u64..100_000,
        ) {
            let sizes: Vec<u64> = records.iter().map(|records| records * 100).collect();
            let pieces: Vec<InputRange> = splits(&sizes, target, 1_000).concat();
            let mut next = vec![0; sizes.len()];
            for piece in &pieces {
                prop_assert_eq!(piece.offset, next[piece.file]);
                prop_assert!(piece.bytes > 0 && piece.offset % 1_000 == 0 && piece.bytes % 100 == 0);
                next[piece.file] += piece.bytes;
            }
            prop_assert_eq!(next, sizes);
            prop_assert!(pieces.windows(2).all(|p| p[0].file <= p[1].file));
        }
    }
}
