//! A file that a task left on the local disk, on its way to an object store.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::storage::Caching;
use crate::storage::location::Location;
use crate::storage::objects::Upload;
use crate::storage::objects::sending::Sending;
use crate::storage::overlap::TRANSFER_BYTES;
use crate::storage::stores::Stores;

/// Uploads the file `from` to the object `to`, and gives what completes the upload. `alive` is asked before each read:
/// its error ends the upload. Parts go beside others as `sending` has memory for them, or one after another without it.
///
/// # Errors
/// The file cannot be read, or the store does not take it; then no upload is left.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_engine::commit::send_file;
/// use gristmill_engine::storage::{local::Local, location::Location, stores::Stores};
/// let folder = tempfile::tempdir()?;
/// let from = folder.path().join("a");
/// std::fs::write(&from, "hello")?;
/// let to = format!("objects://{}/b", folder.path().display());
/// let to = Location::from(&*to);
/// let upload = send_file(&Stores::new(Arc::new(Local)), (&from, &to), None, &|| Ok(()))?;
/// assert_eq!((upload.bytes(), upload.crc()), (5, crc32fast::hash(b"hello")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn send_file(
    stores: &Stores,
    (from, to): (&Path, &Location),
    sending: Option<&Arc<Sending>>,
    alive: &dyn Fn() -> Result<()>,
) -> Result<Upload> {
    let disk = stores.disk();
    let bytes = disk.stat(from)?.map_or(0, |stat| stat.bytes);
    let file = disk.open(from, Caching::Cached)?;
    let (mut buffer, mut offset) = (vec![0; TRANSFER_BYTES], 0);
    let object = stores.create(to, bytes, Caching::Direct)?;
    if let Some(sending) = sending {
        object.send_by(sending);
    }
    loop {
        alive()?;
        let read = file.read_at(&mut buffer, offset)?;
        object.write_at(buffer.get(..read).unwrap_or_default(), offset)?;
        offset += read as u64;
        if read < buffer.len() {
            break;
        }
    }
    let upload = object.finish()?;
    upload.ok_or_else(|| {
        Error::bug("send a file", "its place takes no uploads").with_path(to.as_typed())
    })
}
