//! How the bytes of a file, or of a piece of one, are read and written: block after block, or, of a long one on a disk, by a thread
//! that writes past the page cache, behind the reads.

use std::ops::Range;
use std::sync::Arc;

use super::task::CopyTask;
use gristmill_base::error::Result;
use gristmill_storage::io::overlap::{OverlappedWriter, TRANSFER_BYTES};
use gristmill_storage::location::Location;
use gristmill_storage::{Caching, ReadFile, WriteFile};

/// A file of a disk that is written past the page cache is as long at least: a program that reads it next may have read a
/// shorter one from there.
const LONG_FILE_BYTES: u64 = 64 << 20;

/// Bytes of each of the three buffers that it is written from.
const LONG_BUFFER_BYTES: usize = 2 << 20;

/// Whether a file of so many bytes stays in the page cache.
pub(super) fn caching_for(to: &Location, bytes: u64) -> Caching {
    match to.local().is_some() && bytes >= LONG_FILE_BYTES {
        true => Caching::Direct,
        false => Caching::Cached,
    }
}

/// What is read.
pub(super) struct ReadRange<'f> {
    pub(super) file: &'f dyn ReadFile,
    pub(super) range: Range<u64>,
    /// Looked at behind each read: what was read is not written where it fails.
    pub(super) check: &'f dyn Fn() -> Result<()>,
}

impl<'f> ReadRange<'f> {
    /// A file, however long it is.
    pub(super) fn whole(file: &'f dyn ReadFile) -> Self {
        ReadRange {
            file,
            range: 0..u64::MAX,
            check: &|| Ok(()),
        }
    }

    /// Reads what comes at `offset`; less than the buffer takes only at the end.
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let left = usize::try_from(self.range.end - offset).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self
            .file
            .read_at(buffer.get_mut(..wanted).unwrap_or_default(), offset)?;
        (self.check)()?;
        Ok(read)
    }
}

/// Two buffers, one for each side.
pub(super) type SideBuffers = [Vec<u8>; 2];

/// Makes buffers long enough for files of so many bytes: at most for a transfer.
pub(super) fn room(buffers: &mut SideBuffers, bytes: u64) {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    let wanted = wanted.clamp(1, TRANSFER_BYTES);
    for buffer in buffers {
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
    }
}

/// Writes what is read to a file of so many bytes; gives the bytes read, and their CRC.
pub(super) fn write_range(
    (task, buffers): (&CopyTask<'_>, &mut SideBuffers),
    from: &ReadRange<'_>,
    (to, bytes): (&Location, u64),
    out: &Arc<dyn WriteFile>,
) -> Result<(u64, u32)> {
    match caching_for(to, bytes) {
        Caching::Direct => {
            *buffers = Default::default();
            write_long(task, from, out)
        }
        Caching::Cached => {
            room(buffers, bytes);
            let [buffer, _] = buffers;
            write_blocks((task, buffer), from, &**out)
        }
    }
}

fn write_blocks(
    (task, buffer): (&CopyTask<'_>, &mut [u8]),
    from: &ReadRange<'_>,
    out: &dyn WriteFile,
) -> Result<(u64, u32)> {
    let (mut crc, mut offset) = (crc32fast::Hasher::new(), from.range.start);
    loop {
        let read = from.read(buffer, offset)?;
        let data = buffer.get(..read).unwrap_or_default();
        crc.update(data);
        out.write_at(data, offset)?;
        offset += read as u64;
        task.passed(read, read as u64)?;
        if read < buffer.len() {
            return Ok((offset - from.range.start, crc.finalize()));
        }
    }
}

fn write_long(
    task: &CopyTask<'_>,
    from: &ReadRange<'_>,
    out: &Arc<dyn WriteFile>,
) -> Result<(u64, u32)> {
    let start = from.range.start;
    OverlappedWriter::run(&mut Vec::new(), LONG_BUFFER_BYTES, |writer| {
        writer.begin(Arc::clone(out), start)?;
        let (mut crc, mut offset) = (crc32fast::Hasher::new(), start);
        loop {
            let read = from.read(writer.room(1)?, offset)?;
            if read == 0 {
                return Ok((offset - start, crc.finalize()));
            }
            writer.advance(read);
            crc.update(writer.latest(read));
            offset += read as u64;
            task.passed(read, read as u64)?;
        }
    })
}
