//! The manifest: a line of JSON for each file that was copied, or was there.
//!
//! ```text
//!   {"path":"a/b.csv","bytes":12,"crc32":"0f3a9c11"}      below the target; crc32 is null where nobody read the bytes
//! ```

use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::names::spell;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_storage::{Caching, FileKind, WriteFile};
use gristmill_tasks::task::CopiedFile;

/// Bytes that are written at once.
const BLOCK: usize = 1 << 20;

/// A manifest in the making: it is seen when it is whole.
pub(super) struct ManifestWriter<'a> {
    stores: &'a Stores,
    place: &'a Location,
    target: &'a Location,
    file: Box<dyn WriteFile>,
    block: Vec<u8>,
    bytes: u64,
}

impl<'a> ManifestWriter<'a> {
    pub(super) fn begin(
        stores: &'a Stores,
        place: &'a Location,
        target: &'a Location,
    ) -> Result<Self> {
        stores.check_writable(place)?;
        if let Some(FileKind::Directory | FileKind::Other) = stores.stat(place)?.map(|at| at.kind) {
            let message = "it is not a regular file";
            return Err(Error::new(Kind::BadOption, "write the manifest", message)
                .with_path(place.as_typed())
                .advise("name a file"));
        }
        Ok(ManifestWriter {
            stores,
            place,
            target,
            file: stores.create(place, 0, Caching::Cached)?,
            block: Vec::new(),
            bytes: 0,
        })
    }

    pub(super) fn add(&mut self, file: &CopiedFile) -> Result<()> {
        let path = file.path.as_typed();
        let below = path.strip_prefix(self.target.as_typed());
        let below = below.ok().filter(|below| !below.as_os_str().is_empty());
        let line = serde_json::json!({
            "path": spell(below.unwrap_or(path)),
            "bytes": file.bytes,
            "crc32": file.crc.map(|crc| format!("{crc:08x}")),
        });
        self.block.extend_from_slice(line.to_string().as_bytes());
        self.block.push(b'\n');
        match self.block.len() < BLOCK {
            true => Ok(()),
            false => self.write(),
        }
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_at(&self.block, self.bytes)?;
        self.bytes += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<()> {
        self.write()?;
        let upload = self.file.finish()?;
        let publisher = self.stores.publisher(self.place);
        let (Some(upload), Some(publisher)) = (upload, publisher) else {
            return Err(Error::bug("write the manifest", "its place takes no files"));
        };
        publisher.complete(&upload)?;
        match self.place.parent() {
            Some(folder) => publisher.clear(folder.as_typed()),
            None => Ok(()),
        }
    }
}
