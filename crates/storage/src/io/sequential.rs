//! A file that is written from its beginning to its end: what is short at once, what is long past the cache by a thread
//! of its own, while more is made.
//!
//! ```text
//!   write ─▶ block, up to 1 MB ──end──▶ file, through the cache
//!              └── more ──▶ buffers of an OverlappedWriter ─▶ thread ─▶ file, directly
//! ```
//!
//! The CRC of all bytes is taken on the way, while they are in the processor's cache: whoever wants it later would have
//! to read from the device what never was in the page cache.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::WriteFile;
use crate::io::overlap::OverlappedWriter;
use gristmill_base::error::{Error, Result};

/// What is not longer than this is written at once, and stays in the cache: somebody will read it soon.
const SHORT_BYTES: usize = 1 << 20;

/// Bytes that are summed at once: many, as pieces can be as short as a line, and still in the cache.
const SUM_BYTES: usize = 64 << 10;

/// A file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// Its length.
    pub bytes: u64,
    /// The CRC-32 of its bytes.
    pub crc: u32,
}

/// Writes a file from front to back.
pub struct Sequential {
    file: Arc<dyn WriteFile>,
    /// Bytes of each of the three buffers of a long file.
    buffer_bytes: usize,
    /// All of a file that is short so far.
    block: Vec<u8>,
    long: Option<Long>,
    bytes: u64,
}

/// What writes a long file. The thread ends when its writer is dropped.
struct Long {
    writer: OverlappedWriter,
    thread: JoinHandle<()>,
    sum: crc32fast::Hasher,
    /// The last bytes in the writer's buffer that are not in the sum yet.
    unsummed: usize,
}

impl Long {
    #[inline]
    fn append(&mut self, data: &[u8]) -> Result<()> {
        if data.len() > self.writer.left() {
            return self.append_in_parts(data);
        }
        self.writer.room(0)?[..data.len()].copy_from_slice(data);
        self.writer.advance(data.len());
        self.unsummed += data.len();
        if self.unsummed >= SUM_BYTES {
            self.sum_up();
        }
        Ok(())
    }

    #[cold]
    fn append_in_parts(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            if self.writer.left() == 0 {
                self.sum_up(); // what is in the buffer leaves it now
            }
            let room = self.writer.room(1)?.len();
            let (now, later) = data.split_at(data.len().min(room));
            self.append(now)?;
            data = later;
        }
        Ok(())
    }

    #[inline(never)]
    fn sum_up(&mut self) {
        self.sum.update(self.writer.latest(self.unsummed));
        self.unsummed = 0;
    }
}

impl Sequential {
    /// Writes to `file`, which is empty; if it becomes long, through three buffers of `buffer_bytes` bytes.
    ///
    /// ```
    /// use gristmill_storage::{LocalDisk as _, OutputStore as _};
    /// use std::io::Write;
    /// use gristmill_storage::{Caching, Store, memory::Memory, io::sequential::Sequential};
    /// let store = Memory::with_room_for(100);
    /// let mut file = Sequential::new(store.create("/a".as_ref(), 0, Caching::Direct)?, 1 << 20);
    /// file.write_all(b"one\n")?;
    /// file.write_all(b"two\n")?;
    /// assert_eq!(file.end()?.bytes, 8);
    /// assert_eq!(store.bytes_of("/a".as_ref()), Some(b"one\ntwo\n".to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(file: Box<dyn WriteFile>, buffer_bytes: usize) -> Self {
        Sequential {
            file: Arc::from(file),
            buffer_bytes: buffer_bytes.max(crate::BLOCK_BYTES),
            block: Vec::new(),
            long: None,
            bytes: 0,
        }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The store's, of these bytes or of those before.
    #[inline]
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        self.bytes += data.len() as u64;
        match &mut self.long {
            Some(long) => long.append(data),
            None if self.block.len() + data.len() <= SHORT_BYTES => {
                self.block.extend_from_slice(data);
                Ok(())
            }
            None => self.begin_long(data),
        }
    }

    #[cold]
    fn begin_long(&mut self, data: &[u8]) -> Result<()> {
        let (mut writer, thread) = OverlappedWriter::detached(self.buffer_bytes)?;
        writer.begin(Arc::clone(&self.file), 0)?;
        let long = self.long.insert(Long {
            writer,
            thread,
            sum: crc32fast::Hasher::new(),
            unsummed: 0,
        });
        long.append(&std::mem::take(&mut self.block))?;
        long.append(data)
    }

    /// Ends the file. All of it has been handed to the store then.
    ///
    /// # Errors
    /// The store's.
    pub fn end(mut self) -> Result<Whole> {
        let crc = match self.long.take() {
            None => {
                self.file.write_at(&self.block, 0)?;
                self.file.hand_over()?;
                crc32fast::hash(&self.block)
            }
            Some(mut long) => {
                long.sum_up();
                long.writer.end()?;
                long.thread
                    .join()
                    .map_err(|_panic| Error::bug("write the output", "its thread panicked"))?;
                long.sum.finalize()
            }
        };
        Ok(Whole {
            bytes: self.bytes,
            crc,
        })
    }
}

impl Drop for Sequential {
    /// A file that is not wanted: the thread must not outlive whoever removes it.
    fn drop(&mut self) {
        if let Some(long) = self.long.take() {
            drop(long.writer);
            let _ = long.thread.join(); // what went wrong there is of no interest any more
        }
    }
}

impl Write for Sequential {
    #[inline]
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.append(data).map_err(io::Error::other)?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequential")
            .field("bytes", &self.bytes)
            .field("long", &self.long.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{Fault, FaultPlan, Faulty};
    use crate::local::Local;
    use crate::memory::Memory;
    use crate::{Caching, OutputStore};

    #[test]
    fn all_lengths_arrive_whole() {
        let folder = tempfile::tempdir().unwrap();
        for (number, bytes) in [0, 1, 4096, SHORT_BYTES, SHORT_BYTES + 1, 5_000_000]
            .into_iter()
            .enumerate()
        {
            let want: Vec<u8> = (0..bytes).map(|i| (i * 7 % 253) as u8).collect();
            let path = folder.path().join(number.to_string());
            for step in [100, 99_991, 3_000_000] {
                let _ = std::fs::remove_file(&path);
                let file = Local.create(&path, 0, Caching::Direct).unwrap();
                let mut file = Sequential::new(file, 1 << 18);
                for piece in want.chunks(step) {
                    file.append(piece).unwrap();
                }
                let crc = crc32fast::hash(&want);
                let bytes = bytes as u64;
                assert_eq!(file.end().unwrap(), Whole { bytes, crc });
                assert!(std::fs::read(&path).unwrap() == want, "{bytes} by {step}");
            }
        }
    }

    #[test]
    fn a_full_disk_is_an_error_and_no_thread_is_left() {
        for from in [1, 3] {
            let plan = FaultPlan {
                fault: Fault::Code(28),
                from,
                to: u64::MAX,
            };
            let store = Faulty::new(Memory::with_room_for(u64::MAX), plan);
            let file = store.create("/o".as_ref(), 0, Caching::Direct).unwrap();
            let mut file = Sequential::new(file, 1 << 16);
            let block = vec![7; 100_000];
            let failed = (0..100)
                .try_for_each(|_| file.append(&block))
                .and_then(|()| file.end())
                .unwrap_err();
            assert_eq!(failed.kind(), gristmill_base::Kind::DiskFull);
        }
        let store = Memory::with_room_for(u64::MAX);
        let file = store.create("/o".as_ref(), 0, Caching::Direct).unwrap();
        let mut file = Sequential::new(file, 1 << 16);
        file.append(&vec![7; 3 << 20]).unwrap();
        drop(file); // joins its thread, or hangs here
    }
}
