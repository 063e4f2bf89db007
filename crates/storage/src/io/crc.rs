//! The CRC-32 of a file that is there already.

use std::path::Path;

use crate::{Caching, FileKind, Store};
use gristmill_base::error::Result;

/// Read at once.
const READ_BYTES: usize = 1 << 20;

/// The CRC of a file's bytes; of what is no file, none. What was just written through the page cache is still there.
pub fn crc_of(store: &dyn Store, path: &Path) -> Result<Option<u32>> {
    let found = store.stat(path)?.map(|stat| stat.kind);
    if found != Some(FileKind::File) {
        return Ok(None);
    }
    let file = store.open(path, Caching::Cached)?;
    let mut buffer = vec![0; READ_BYTES];
    let (mut hasher, mut offset) = (crc32fast::Hasher::new(), 0);
    loop {
        let read = file.read_at(&mut buffer, offset)?;
        hasher.update(buffer.get(..read).unwrap_or_default());
        offset += read as u64;
        if read < buffer.len() {
            return Ok(Some(hasher.finalize()));
        }
    }
}
