//! An object store kept in a directory: a stand-in with the semantics of one, for tests and for trying.
//!
//! ```text
//!   objects:///DIR/a                      the object, a file:  DIR/a
//!   DIR/.objects/a.version                its version, and of which file that is
//!   DIR/.objects/a.upload-ID/00001-CRC    a part of an upload to it
//! ```
//!
//! There is no rename, no append and no writing but by uploads. A file that was put there by other means is an object,
//! too. Names that begin with `.objects` are the store's own. (Two things differ from a real one: "a" and "a/b" cannot
//! both be objects, and who can write to the directory can do as they like.)

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::retry::replaced;
use super::{
    DIRECTORY, KeptPart, Object, ObjectStore, Objects, Page, Part, SourceRange, StoreCopies,
    Upload, UploadPart, faults,
};
use crate::ListingEntry;
use crate::local::not_there;
use crate::location::{Location, parent_of};
use crate::store_kind::StoreKind;
use crate::version::ReadVersion;
use gristmill_base::error::{Error, Kind, Result};

/// This kind of store.
pub static KIND: StoreKind = StoreKind {
    name: "objects in a directory",
    schemes: &["objects"],
    has_authority: false,
    has_patterns: true,
    advised: None,
    variables: &[faults::VARIABLE],
    options: &[],
    credentials: None,
    is_durable: Some(false),
    sends_parts: true,
    open: |setup| ObjectStore::open(DirectoryStore, setup),
};

/// The folder of what is not an object, beside the objects that it is about.
const OWN: &str = ".objects";

/// Uploads of this process.
static UPLOADS: AtomicU64 = AtomicU64::new(0);

/// The stand-in.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectoryStore;

/// What is noted of an object, and of which file.
#[derive(Debug, Serialize, Deserialize)]
struct ObjectRecord {
    inode: u64,
    bytes: u64,
    version: String,
    crc: u32,
}

/// Where a location's object is.
fn file_of(path: &Path) -> PathBuf {
    Location::from(path).path().to_owned()
}

/// A file of the store's own that is about an object.
fn own_file(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    parent_of(file).join(OWN).join(name)
}

fn upload_folder(path: &Path, id: &str) -> PathBuf {
    own_file(&file_of(path), &format!(".upload-{id}"))
}

/// What a call found, or nothing where nothing is.
fn found<T>(operation: &'static str, path: &Path, done: io::Result<T>) -> Result<Option<T>> {
    match done {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(Error::from_io(operation, path, &error)),
    }
}

/// The names in a directory; none where it is not there.
fn names_in(directory: &Path) -> Result<Vec<String>> {
    const OPERATION: &str = "list a directory";
    let Some(entries) = found(OPERATION, directory, fs::read_dir(directory))? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Error::from_io(OPERATION, directory, &error))?;
        names.extend(entry.file_name().into_string()); // no object store takes other names
    }
    names.sort_unstable();
    Ok(names)
}

fn object_of(file: &Path, metadata: &Metadata) -> Object {
    let noted = fs::read(own_file(file, ".version")).ok();
    let noted = noted.and_then(|text| serde_json::from_slice::<ObjectRecord>(&text).ok());
    let noted =
        noted.filter(|noted| (noted.inode, noted.bytes) == (metadata.ino(), metadata.len()));
    let modified_ns =
        i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    Object {
        bytes: metadata.len(),
        modified_ns,
        version: match &noted {
            Some(noted) => noted.version.clone(),
            None => format!("{}-{modified_ns}", metadata.ino()),
        },
        crc: noted.as_ref().map(|noted| noted.crc),
        sum: noted.map(|noted| format!("{:08x}", noted.crc)),
    }
}

impl Objects for DirectoryStore {
    fn head(&self, path: &Path) -> Result<Option<Object>> {
        let file = file_of(path);
        let metadata = found("look at a file", path, fs::metadata(&file))?;
        let metadata = metadata.filter(Metadata::is_file);
        Ok(metadata.map(|metadata| object_of(&file, &metadata)))
    }

    /// All on one page.
    fn list(&self, directory: &Path, _from: Option<&str>) -> Result<Page> {
        let folder = file_of(directory);
        let mut names = names_in(&folder)?;
        names.retain(|name| name != OWN && holds_objects(&folder.join(name)));
        let listed = |name: &String| {
            let path = directory.join(name);
            let object = self.head(&path)?;
            let stat = Some(object.map_or(DIRECTORY, |object| object.stat()));
            Ok(ListingEntry { path, stat })
        };
        let found = names.iter().map(listed).collect::<Result<_>>()?;
        Ok(Page { found, next: None })
    }

    fn get(
        &self,
        path: &Path,
        version: &ReadVersion,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize> {
        let failed = |error| Error::from_io("read the input", path, &error).with("offset", offset);
        let place = file_of(path);
        let file = File::open(&place).map_err(failed)?;
        if !version.is(&object_of(&place, &file.metadata().map_err(failed)?).version) {
            return Err(replaced(path).with("offset", offset));
        }
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + done as u64).map_err(failed)? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }

    fn delete(&self, path: &Path) -> Result<()> {
        let file = file_of(path);
        found("remove", path, fs::remove_file(own_file(&file, ".version")))?;
        found("remove", path, fs::remove_file(&file))?;
        remove_empty(parent_of(&file));
        Ok(())
    }

    fn begin(&self, path: &Path) -> Result<String> {
        let number = UPLOADS.fetch_add(1, Ordering::Relaxed);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now_ns = now.unwrap_or_default().as_nanos();
        let id = format!("{now_ns:x}-{:x}-{number:x}", std::process::id());
        let made = fs::create_dir_all(upload_folder(path, &id));
        made.map_err(|error| Error::from_io("create the output", path, &error))?;
        Ok(id)
    }

    fn put_part(&self, path: &Path, id: &str, number: u32, part: &Part) -> Result<UploadPart> {
        let folder = upload_folder(path, id);
        let failed = |error| Error::from_io("write the output", path, &error).with("part", number);
        let crc = crc32fast::hash(&part.data);
        let name = format!("{number:05}-{crc:08x}");
        let unfinished = folder.join(format!("new-{number}"));
        let mut file = File::create(&unfinished).map_err(failed)?;
        file.write_all(&part.data).map_err(failed)?;
        let beginning = format!("{number:05}-");
        for old in names_in(&folder)? {
            if old.starts_with(&beginning) {
                fs::remove_file(folder.join(old)).map_err(failed)?;
            }
        }
        fs::rename(unfinished, folder.join(name)).map_err(failed)?;
        Ok(part_of(crc, part.data.len() as u64))
    }

    /// In parts, however short: so what is tried here is what real stores do with long ones.
    fn copies(&self, _from: &Path, _to: &Path) -> Option<StoreCopies> {
        Some(StoreCopies {
            whole_bytes: 0,
            takes_sums: true,
        })
    }

    fn copy_part(
        &self,
        to: &Path,
        id: &str,
        number: u32,
        of: SourceRange<'_>,
    ) -> Result<UploadPart> {
        let mut data = vec![0; of.bytes() as usize];
        let version = ReadVersion::new(&of.object.version);
        let read = self.get(of.path, &version, &mut data, of.start)?;
        data.truncate(read);
        self.put_part(to, id, number, &Part::new(data.into()))
    }

    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        let folder = upload_folder(path, id);
        if !folder.is_dir() {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for (crc, file) in part_files(&folder)? {
            let bytes = fs::metadata(&file)
                .map_err(|error| Error::from_io("look at an upload", path, &error))?
                .len();
            let etag = part_of(crc, bytes).etag;
            parts.push(KeptPart { bytes, etag });
        }
        Ok(Some(parts))
    }

    fn complete(&self, upload: &Upload) -> Result<()> {
        const OPERATION: &str = "publish the output";
        let (path, id) = (upload.path.as_typed(), &upload.id);
        let there = self.parts(path, id)?;
        let there = there.ok_or_else(|| not_there(OPERATION, path).with("upload", id))?;
        if !upload.is_kept(&there) {
            let message = "the upload has other parts than were sent";
            return Err(Error::new(Kind::Io, OPERATION, message)
                .with_path(path)
                .with("upload", id));
        }
        let failed = |error| Error::from_io(OPERATION, path, &error);
        let (file, folder) = (file_of(path), upload_folder(path, id));
        let whole = folder.join("whole");
        let made = join(&folder, &whole)?;
        let noted = ObjectRecord {
            inode: made.ino(),
            bytes: made.len(),
            version: format!("{:08x}-{}", upload.crc(), upload.parts.len()),
            crc: upload.crc(),
        };
        let text = serde_json::to_vec(&noted).map_err(|error| failed(error.into()))?;
        fs::write(own_file(&file, ".version"), text).map_err(failed)?;
        fs::rename(whole, &file).map_err(failed)?;
        fs::remove_dir_all(&folder).map_err(failed)
    }

    fn abort(&self, path: &Path, id: &str) -> Result<()> {
        let folder = upload_folder(path, id);
        found("end an upload", path, fs::remove_dir_all(&folder))?;
        remove_empty(parent_of(&file_of(path)));
        Ok(())
    }

    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        let mut uploads = Vec::new();
        let location = Location::from(path);
        if let (Some(parent), Some(name)) = (location.parent(), location.name()) {
            let beside = uploads_in(&file_of(path), parent.as_typed())?.into_iter();
            uploads.extend(beside.filter(|(of, _)| of.file_name() == Some(name)));
        }
        below(&file_of(path), path, &mut uploads)?;
        Ok(uploads)
    }
}

fn part_of(crc: u32, bytes: u64) -> UploadPart {
    let etag = format!("{crc:08x}");
    UploadPart { bytes, crc, etag }
}

/// The files of the parts that an upload has, in order, with their CRCs.
fn part_files(folder: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let names = names_in(folder)?;
    let part = |name: &String| {
        let (number, crc) = name.split_once('-')?;
        number.parse::<u32>().ok()?;
        Some((u32::from_str_radix(crc, 16).ok()?, folder.join(name)))
    };
    Ok(names.iter().filter_map(part).collect())
}

/// Puts the parts together.
fn join(folder: &Path, whole: &Path) -> Result<Metadata> {
    let failed = |error| Error::from_io("publish the output", whole, &error);
    let mut file = File::create(whole).map_err(failed)?;
    for (_, part) in part_files(folder)? {
        let mut part = File::open(part).map_err(failed)?;
        io::copy(&mut part, &mut file).map_err(failed)?;
    }
    file.metadata().map_err(failed)
}

/// Whether something is an object, or a directory with one in it: others do not exist in an object store.
fn holds_objects(path: &Path) -> bool {
    if !path.is_dir() {
        return path.is_file();
    }
    let names = names_in(path).unwrap_or_default();
    names
        .iter()
        .any(|name| name != OWN && holds_objects(&path.join(name)))
}

/// The uploads to objects beside `file`, whose locations lie in `parent`.
fn uploads_in(file: &Path, parent: &Path) -> Result<Vec<(PathBuf, String)>> {
    let names = names_in(&parent_of(file).join(OWN))?;
    let upload = |name: &String| {
        let (object, id) = name.rsplit_once(".upload-")?;
        Some((parent.join(object), id.to_owned()))
    };
    Ok(names.iter().filter_map(upload).collect())
}

/// The uploads to objects below a directory.
fn below(folder: &Path, at: &Path, uploads: &mut Vec<(PathBuf, String)>) -> Result<()> {
    uploads.extend(uploads_in(&folder.join("any"), at)?);
    for name in names_in(folder)? {
        let inner = folder.join(&name);
        if name != OWN && inner.is_dir() {
            below(&inner, &at.join(&name), uploads)?;
        }
    }
    Ok(())
}

/// An object store has no directories: those that nothing is in any more go.
fn remove_empty(folder: &Path) {
    let _ = fs::remove_dir(folder.join(OWN)); // refused where something is in it
    let _ = fs::remove_dir(folder);
}
