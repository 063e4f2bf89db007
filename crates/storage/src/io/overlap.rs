//! Writing while computing: a thread beside the task writes behind it.
//!
//! ```text
//!   task fills a buffer ──filled──▶ thread writes it
//!         ▲──────────────empty───────────────┘      a few buffers, reused
//! ```
//!
//! Only blocking calls and two channels: a device that is busy blocks the thread, not the task, until all
//! buffers are full. Dropping one end of a channel ends the other side, so that no error leaves a thread behind.
//!
//! Decision: docs/decisions/io-threads.md.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::{BLOCK_BYTES, WriteFile};
use gristmill_base::error::{Error, Result};
use gristmill_base::sys::pages::Pages;
use gristmill_base::sys::threads::{begin, begin_in};

/// Bytes of one transfer: large enough that what a call costs is nothing beside the bytes it moves.
pub const TRANSFER_BYTES: usize = 4 << 20;

/// Buffers of a writer: one being filled, one being written, one waiting.
pub const WRITER_BUFFERS: usize = 3;

/// Memory of a writer with buffers of `buffer_bytes` bytes.
pub const fn writer_bytes(buffer_bytes: usize) -> u64 {
    (WRITER_BUFFERS * (buffer_bytes + BLOCK_BYTES)) as u64
}

/// The buffers of a writer, reused from task to task.
pub type Buffers = Vec<Pages<u8>>;

/// One filled buffer on its way to the device.
struct PendingWrite {
    file: Arc<dyn WriteFile>,
    offset: u64,
    buffer: Pages<u8>,
    range: Range<usize>,
}

/// Writes to files, one after another, behind the back of the task that fills its buffers.
pub struct OverlappedWriter {
    filled: SyncSender<PendingWrite>,
    empty: Receiver<Result<Pages<u8>>>,
    file: Option<Arc<dyn WriteFile>>,
    /// The file's offset of the first byte in the buffer.
    offset: u64,
    buffer: Pages<u8>,
    range: Range<usize>,
    /// What a sent buffer held behind its last whole block.
    carry: Vec<u8>,
    /// How many buffers were sent on.
    sent: u64,
}

impl OverlappedWriter {
    /// Runs `produce` with a writer of three buffers of `buffer_bytes` bytes; returns when all it wrote has been handed to the store, or with the first error.
    ///
    /// ```
    /// use gristmill_storage::{LocalDisk as _, OutputStore as _};
    /// use std::sync::Arc;
    /// use gristmill_storage::{Caching, Store, memory::Memory, io::overlap::OverlappedWriter};
    /// let store = Memory::with_room_for(100);
    /// let file = Arc::from(store.create("/a".as_ref(), 6, Caching::Direct)?);
    /// OverlappedWriter::run(&mut Vec::new(), 4096, |writer| {
    ///     writer.begin(file, 0)?;
    ///     writer.room(6)?[..6].copy_from_slice(b"abcdef");
    ///     writer.advance(6);
    ///     Ok(())
    /// })?;
    /// assert_eq!(store.bytes_of("/a".as_ref()), Some(b"abcdef".to_vec()));
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn run<T>(
        buffers: &mut Buffers,
        buffer_bytes: usize,
        produce: impl FnOnce(&mut OverlappedWriter) -> Result<T>,
    ) -> Result<T> {
        let (mut writer, work) = OverlappedWriter::prepared(buffers, buffer_bytes)?;
        thread::scope(|scope| {
            begin_in(scope, "write", work)?;
            let made = produce(&mut writer)?;
            writer.flush()?;
            writer.finish(buffers)?;
            Ok(made)
        })
    }

    /// A writer with buffers of its own, and its thread, which ends with the writer.
    pub(crate) fn detached(buffer_bytes: usize) -> Result<(Self, JoinHandle<()>)> {
        let (writer, work) = OverlappedWriter::prepared(&mut Vec::new(), buffer_bytes)?;
        Ok((writer, begin("write", work)?))
    }

    /// A writer, and what its thread is to do.
    fn prepared(
        buffers: &mut Buffers,
        buffer_bytes: usize,
    ) -> Result<(Self, impl FnOnce() + Send + 'static)> {
        let buffer_len = buffer_bytes + BLOCK_BYTES;
        buffers.retain(|buffer| buffer.len() == buffer_len);
        while buffers.len() < WRITER_BUFFERS {
            buffers.push(Pages::zeroed(buffer_len)?);
        }
        let (filled, to_write) = sync_channel(WRITER_BUFFERS);
        let (give_back, empty) = channel();
        let Some(buffer) = buffers.pop() else {
            return Err(Error::bug("write the output", "there are no buffers"));
        };
        for spare in buffers.drain(..) {
            give_back.send(Ok(spare)).map_err(ended_early)?;
        }
        let writer = OverlappedWriter {
            filled,
            empty,
            file: None,
            offset: 0,
            buffer,
            range: 0..0,
            carry: Vec::new(),
            sent: 0,
        };
        Ok((writer, move || write_all(&to_write, &give_back)))
    }

    /// Writes what is left; returns when all has been handed to the store.
    pub(crate) fn end(mut self) -> Result<()> {
        self.flush()?;
        self.finish(&mut Vec::new())
    }

    /// Goes on in `file` at `offset`. What was written before stays with its own file.
    pub fn begin(&mut self, file: Arc<dyn WriteFile>, offset: u64) -> Result<()> {
        self.flush()?;
        self.file = Some(file);
        self.start_at(offset);
        Ok(())
    }

    /// How many buffers were sent to be written so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the first `count` of the buffers that were sent are written, and the next one as well: so a file whose last bytes are
    /// among them, and that the writer has left, was handed over.
    pub fn is_behind(&self, count: u64) -> bool {
        // For each buffer that is sent another one is taken: of those, all but the first few came back from the device.
        let written = self.sent.saturating_sub(WRITER_BUFFERS as u64 - 1);
        written > count
    }

    /// Free memory for at least `bytes` bytes, which are at most the size of a buffer.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> Result<&mut [u8]> {
        debug_assert!(bytes + BLOCK_BYTES <= self.buffer.len());
        if self.range.end + bytes > self.buffer.len() {
            self.send_blocks(self.range.end)?;
        }
        Ok(&mut self.buffer[self.range.end..])
    }

    /// Says that the first `bytes` of the room are filled.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        self.range.end += bytes;
    }

    /// How many bytes fit behind those of the buffer: room for no more is there without sending them on.
    #[inline]
    pub fn left(&self) -> usize {
        self.buffer.len() - self.range.end
    }

    /// The last `bytes` bytes of those that [`advance`](Self::advance) added and that are still in the buffer.
    pub fn latest(&self, bytes: usize) -> &[u8] {
        &self.buffer[self.range.end - bytes..self.range.end]
    }

    /// Puts `with`, which is shorter, in the place of the first `bytes` of the last `pending` bytes; what is behind them
    /// moves up.
    pub fn shorten(&mut self, pending: usize, bytes: usize, with: &[u8]) {
        let start = self.range.end - pending;
        let behind = start + bytes..self.range.end;
        self.buffer[start..start + with.len()].copy_from_slice(with);
        self.buffer.copy_within(behind, start + with.len());
        self.range.end -= bytes - with.len();
    }

    /// Sends on what is before the last `kept` bytes, which stay in the buffer, whatever has to move for it.
    pub fn send_before(&mut self, kept: usize) -> Result<()> {
        self.send_blocks(self.range.end - kept)
    }

    /// Memory and file agree modulo a block, so that whole blocks of one are whole blocks of the other.
    fn start_at(&mut self, offset: u64) {
        let within = offset as usize % BLOCK_BYTES;
        self.offset = offset;
        self.range = within..within;
    }

    /// Sends the whole blocks of the buffer up to `end`; what is behind them moves to the next buffer.
    #[cold]
    fn send_blocks(&mut self, end: usize) -> Result<()> {
        let cut = end / BLOCK_BYTES * BLOCK_BYTES;
        self.carry.clear();
        self.carry
            .extend_from_slice(&self.buffer[cut..self.range.end]);
        let offset = self.offset;
        let range = self.range.start..cut;
        self.offset += range.len() as u64;
        self.range = 0..self.carry.len();
        self.send(range, offset)?;
        self.buffer[..self.carry.len()].copy_from_slice(&self.carry);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.range.is_empty() {
            return Ok(());
        }
        let (range, offset) = (self.range.clone(), self.offset);
        self.start_at(offset + range.len() as u64);
        self.send(range, offset)
    }

    /// Sends the buffer on its way, and takes an empty one; an error of the thread comes with that.
    fn send(&mut self, range: Range<usize>, offset: u64) -> Result<()> {
        let Some(file) = self.file.clone() else {
            return Err(Error::bug("write the output", "no file was begun"));
        };
        let buffer = std::mem::take(&mut self.buffer);
        let sent = self.filled.send(PendingWrite {
            file,
            offset,
            buffer,
            range,
        });
        if let Err(gone) = sent {
            // The thread has ended with an error, which is among what it gave back.
            return Err(self
                .empty
                .iter()
                .find_map(Result::err)
                .unwrap_or_else(|| ended_early(gone)));
        }
        self.sent += 1;
        self.buffer = self.empty.recv().map_err(ended_early)??;
        Ok(())
    }

    /// Waits until all is written; gives the buffers back.
    fn finish(self, buffers: &mut Buffers) -> Result<()> {
        let OverlappedWriter {
            filled,
            empty,
            buffer,
            file,
            ..
        } = self;
        drop(file);
        drop(filled); // the thread ends when it has written what it was sent
        buffers.push(buffer);
        for spare in empty {
            buffers.push(spare?);
        }
        Ok(())
    }
}

fn write_all(to_write: &Receiver<PendingWrite>, give_back: &Sender<Result<Pages<u8>>>) {
    let mut last: Option<Arc<dyn WriteFile>> = None;
    for PendingWrite {
        file,
        offset,
        buffer,
        range,
    } in to_write
    {
        let before = last.take().filter(|before| !Arc::ptr_eq(before, &file));
        let ended = before.map_or(Ok(()), |before| before.hand_over());
        let written = ended.and_then(|()| file.write_at(&buffer[range], offset));
        last = Some(file);
        let failed = written.is_err();
        if give_back.send(written.map(|()| buffer)).is_err() || failed {
            return;
        }
    }
    if let Some(Err(error)) = last.map(|last| last.hand_over()) {
        let _ = give_back.send(Err(error)); // who has gone does not want to know
    }
}

/// The other end of a channel is gone, though its thread lives as long as this side does.
pub(crate) fn ended_early<E: std::fmt::Display>(error: E) -> Error {
    Error::bug("move bytes", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{Fault, FaultPlan, Faulty};
    use crate::memory::Memory;
    use crate::{Caching, OutputStore};

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|i| (i * 7 % 253) as u8).collect()
    }

    #[test]
    fn pieces_of_any_size_arrive_in_order() {
        let want = bytes(3 * TRANSFER_BYTES + 1234);
        let store = Memory::with_room_for(u64::MAX);
        let path = "/out".as_ref();
        let file: Arc<dyn WriteFile> = Arc::from(
            store
                .create(path, want.len() as u64, Caching::Direct)
                .unwrap(),
        );
        let mut buffers = Vec::new();
        for range in [0..700_001, 700_001..want.len()] {
            OverlappedWriter::run(&mut buffers, TRANSFER_BYTES, |writer| {
                writer.begin(file.clone(), range.start as u64)?;
                for piece in want[range].chunks(99_991) {
                    writer.room(piece.len())?[..piece.len()].copy_from_slice(piece);
                    writer.advance(piece.len());
                }
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(buffers.len(), WRITER_BUFFERS);
        assert!(store.bytes_of(path).unwrap() == want);
    }

    #[test]
    fn a_buffer_is_known_to_be_written_once_others_came_back() {
        let store = Memory::with_room_for(1 << 20);
        let file: Arc<dyn WriteFile> =
            Arc::from(store.create("/out".as_ref(), 0, Caching::Direct).unwrap());
        OverlappedWriter::run(&mut Vec::new(), BLOCK_BYTES, |writer| {
            for turn in 0..9 {
                writer.begin(file.clone(), turn * 10)?;
                writer.room(10)?[..10].fill(turn as u8);
                writer.advance(10);
                let sent = writer.sent();
                assert_eq!(sent, turn, "what is in the buffer is not sent");
                let behind = (0..=sent).filter(|count| writer.is_behind(*count));
                let known = behind.max().unwrap_or(0);
                assert_eq!(known, turn.saturating_sub(3));
                let there = store.bytes_of("/out".as_ref()).unwrap_or_default();
                assert!(there.len() as u64 >= 10 * known);
            }
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn errors_of_the_thread_reach_the_task() {
        let plan = FaultPlan {
            fault: Fault::Code(28),
            from: 1,
            to: u64::MAX,
        };
        let store = Faulty::new(Memory::with_room_for(u64::MAX), plan);
        let file: Arc<dyn WriteFile> =
            Arc::from(store.create("/o".as_ref(), 0, Caching::Direct).unwrap());
        let error = OverlappedWriter::run(&mut Vec::new(), TRANSFER_BYTES, |writer| {
            writer.begin(file, 0)?;
            for _ in 0..100 {
                writer.room(1 << 20)?;
                writer.advance(1 << 20);
            }
            Ok(())
        })
        .unwrap_err();
        assert_eq!(error.kind(), gristmill_base::Kind::DiskFull);
    }
}
