//! A file on its way to an object store, or to HDFS: one that a task left on the local disk, or one in another store.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::storage::Caching;
use crate::storage::input::InputFile;
use crate::storage::local::not_there;
use crate::storage::location::Location;
use crate::storage::objects::Upload;
use crate::storage::objects::sending::Sending;
use crate::storage::overlap::TRANSFER_BYTES;
use crate::storage::stores::Stores;
use crate::storage::window::in_order;

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
/// std::fs::write(folder.path().join("a"), "hello")?;
/// let from = Location::from(folder.path().join("a"));
/// let to = format!("objects://{}/b", folder.path().display());
/// let to = Location::from(&*to);
/// let upload = send_file(&Stores::new(Arc::new(Local)), (&from, &to), None, &|| Ok(()))?;
/// assert_eq!((upload.bytes(), upload.crc()), (5, crc32fast::hash(b"hello")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn send_file(
    stores: &Stores,
    (from, to): (&Location, &Location),
    sending: Option<&Arc<Sending>>,
    alive: &dyn Fn() -> Result<()>,
) -> Result<Upload> {
    let stat = stores.stat(from)?;
    let (stat, path) = match stat {
        Some(stat) => (stat, from.clone()),
        None => return Err(not_there("open the input", from.as_typed())),
    };
    let bytes = stat.bytes;
    let file = stores.open_input(&InputFile { path, stat }, Caching::Cached)?;
    let file = in_order(file, 0..bytes);
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
