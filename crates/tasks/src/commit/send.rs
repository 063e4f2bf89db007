//! A file on its way to an object store, or to HDFS: one that a task left on the local disk, or one in another store.

use std::sync::Arc;
use std::time::Duration;

use gristmill_base::error::{Error, Result};
use gristmill_storage::Caching;
use gristmill_storage::input::InputFile;
use gristmill_storage::io::overlap::TRANSFER_BYTES;
use gristmill_storage::io::window::in_order;
use gristmill_storage::local::not_there;
use gristmill_storage::location::Location;
use gristmill_storage::net::stop::Stop;
use gristmill_storage::objects::Upload;
use gristmill_storage::objects::part_uploader::PartUploader;
use gristmill_storage::stores::Stores;

/// How often a file is begun that no task sends: as often as a task is tried, where nobody says otherwise.
const TRIES_MAX: u32 = 5;

/// The wait before it is begun again; doubled for each further one. A data node that is busy is not free sooner.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Uploads the file `from` to the object `to`, and gives what completes the upload. `alive` is asked before each read:
/// its error ends the upload. Parts go beside others as `sending` has memory for them, or one after another without it.
///
/// # Errors
/// The file cannot be read, or the store does not take it; then no upload is left.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_tasks::commit::send_file;
/// use gristmill_storage::{local::Local, location::Location, stores::Stores};
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
    sending: Option<&Arc<PartUploader>>,
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

/// The same, begun anew where the error says that it may help: as a task that fails so is tried again. HDFS gives up a file
/// whose data nodes are busy; so does a store that has failed ten times at a request.
///
/// # Errors
/// As of [`send_file`], of the last time.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_tasks::commit::send_file_again;
/// use gristmill_storage::{local::Local, location::Location, stores::Stores};
/// let folder = tempfile::tempdir()?;
/// let [from, to] = ["a", "b"].map(|name| Location::from(&*format!("objects://{}/{name}", folder.path().display())));
/// std::fs::write(folder.path().join("a"), "hello")?;
/// let upload = send_file_again(&Stores::new(Arc::new(Local)), (&from, &to), || None)?;
/// assert_eq!(upload.bytes(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn send_file_again(
    stores: &Stores,
    files: (&Location, &Location),
    sending: impl Fn() -> Option<Arc<PartUploader>>,
) -> Result<Upload> {
    sent_again(stores, || {
        send_file(stores, files, sending().as_ref(), &|| Ok(()))
    })
}

/// What `send` gives, which is begun anew as [`send_file_again`] does it.
///
/// # Errors
/// Those of `send`, of the last time.
pub fn sent_again<T>(stores: &Stores, send: impl FnMut() -> Result<T>) -> Result<T> {
    again(&stores.requests().stop, FIRST_WAIT, send)
}

fn again<T>(stop: &Stop, mut wait: Duration, mut send: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..TRIES_MAX {
        match send() {
            Err(error) if error.retryable() => {
                if stop.sleep(wait) {
                    return Err(error);
                }
                wait *= 2;
            }
            done => return done,
        }
    }
    send()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::error::Kind;

    #[test]
    fn a_file_is_begun_again_where_that_may_help() {
        let busy = || Error::new(Kind::Io, "write the output", "the data nodes are busy");
        for (fails, is_final, tries_wanted) in
            [(0, false, 1), (4, false, 5), (9, false, 5), (9, true, 1)]
        {
            let mut tries = 0;
            let done = again(&Stop::default(), Duration::from_millis(1), || {
                tries += 1;
                match tries > fails {
                    true => Ok(tries),
                    false if is_final => Err(busy()),
                    false => Err(busy().retryable_error()),
                }
            });
            assert_eq!((tries, done.is_ok()), (tries_wanted, fails < TRIES_MAX));
        }
    }
}
