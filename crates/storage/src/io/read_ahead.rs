//! Reading while computing: threads beside the task read ahead of it.
//!
//! ```text
//!   read_into            thread reads block after block into the task's own memory ──▶ task works on each
//!   read_through         the same through a few reused buffers
//!   of a far store       several threads, each with a longer range; the task gets the bytes in order
//! ```
//!
//! A disk is saturated by one reader a task. A far store answers late, and carries several replies at once: its files are
//! read in ranges of about [`RANGE_BYTES`], [`RANGES_AT_ONCE`] of them under way for each task. Readers into the
//! task's own memory need no more of it for that; buffers are as many as the job has memory for. No error leaves a
//! thread behind, as in [`overlap`](super::overlap).

use std::collections::BTreeMap;
use std::ops::{DerefMut, Range};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::io::overlap::{Buffers, ended_early};
use crate::{BLOCK_BYTES, ReadFile};
use gristmill_base::error::Result;
use gristmill_base::sync::lock;
use gristmill_base::sys::pages::Pages;
use gristmill_base::sys::threads::begin_in;

/// Bytes of a request to a far store, at least: what a request costs is little beside them.
pub const RANGE_BYTES: usize = 8_000_000;

/// Such requests of a task that are under way at once: two tasks fill 1 GB/s at 50 ms so.
pub const RANGES_AT_ONCE: usize = 8;

/// Reads from `offset` on into all of `memory`, and hands it to `work` in blocks of `block` bytes while more is read. A
/// block is shorter where the file ends; the bytes that were there are handed on.
pub fn read_into(
    file: &dyn ReadFile,
    offset: u64,
    memory: &mut [u8],
    block: usize,
    mut work: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (step, readers) = reads(file, memory.len(), block);
    let steps = Mutex::new(memory.chunks_mut(step).enumerate());
    let next = || {
        let (number, buffer) = lock(&steps).next()?;
        Some(WantedBytes {
            number,
            at: offset + (number * step) as u64,
            bytes: buffer.len(),
            buffer,
        })
    };
    prefetch(file, readers, &next, |buffer, read| {
        buffer[..read].chunks(block).try_for_each(&mut work)
    })
}

/// Bytes of each read of so many, and how many readers there are.
fn reads(file: &dyn ReadFile, bytes: usize, block: usize) -> (usize, usize) {
    if !file.is_remote() {
        return (block, 1);
    }
    let ranges = (bytes / RANGE_BYTES).max(1);
    let step = bytes.div_ceil(ranges).next_multiple_of(block).max(block);
    (step, ranges.min(RANGES_AT_ONCE))
}

/// Reads `range` through `count` reused buffers of `block` bytes, at least two, and hands each to `work` while more are
/// read: of a far store all others at once.
pub fn read_through(
    file: &dyn ReadFile,
    range: Range<u64>,
    (block, count): (usize, usize),
    buffers: &mut Buffers,
    mut work: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    if range.end.saturating_sub(range.start) <= block as u64 {
        return read_at_once(file, range, block, buffers, work);
    }
    let (give_back, empty) = channel();
    for _ in 0..count {
        let spare = buffers.pop().filter(|buffer| buffer.len() >= block);
        let spare = spare.map_or_else(|| Pages::zeroed(block), Ok)?;
        give_back.send(spare).map_err(ended_early)?;
    }
    let readers = if file.is_remote() { count - 1 } else { 1 };
    let ahead = Mutex::new((empty, 0));
    // Buffers go to ranges in order, so that the one that is waited for always has one.
    let next = || {
        let (empty, number) = &mut *lock(&ahead);
        let at = range.start + (*number * block) as u64;
        if at >= range.end {
            return None;
        }
        let wanted = WantedBytes {
            number: *number,
            at,
            bytes: (range.end - at).min(block as u64) as usize,
            buffer: empty.recv().ok()?,
        };
        *number += 1;
        Some(wanted)
    };
    let worked = prefetch(file, readers, &next, move |buffer: Pages<u8>, read| {
        work(&buffer[..read])?;
        // Readers that have read all are not there to take it.
        let _ = give_back.send(buffer);
        Ok(())
    });
    let (empty, _) = ahead.into_inner().unwrap_or_else(PoisonError::into_inner);
    buffers.extend(empty);
    worked
}

/// What a reader is to fill: as many bytes of a buffer as are wanted from a place of the file on.
struct WantedBytes<B> {
    number: usize,
    at: u64,
    bytes: usize,
    buffer: B,
}

/// What came of it: how much was read, and whether that is less than was wanted.
type Arrived<B> = (usize, Result<(B, usize, bool)>);

/// Has `readers` threads fill what `next` gives, until there is no more or the file ends. Hands the buffers on in order, with
/// the bytes that each holds.
fn prefetch<B: DerefMut<Target = [u8]> + Send>(
    file: &dyn ReadFile,
    readers: usize,
    next: &(impl Fn() -> Option<WantedBytes<B>> + Sync),
    hand_on: impl FnMut(B, usize) -> Result<()>,
) -> Result<()> {
    let (send, arrivals) = channel();
    thread::scope(|scope| {
        let mut hand_on = hand_on; // gone when the work is: readers may be waiting for a buffer
        for number in 0..readers {
            let send = send.clone();
            match begin_in(scope, "read", move || fill(file, next, &send)) {
                Err(error) if number == 0 => return Err(error),
                Err(_) => break, // it goes on with those that there are
                Ok(_) => {}
            }
        }
        drop(send);
        let (mut early, mut wanted) = (BTreeMap::new(), 0);
        for (number, arrived) in arrivals {
            early.insert(number, arrived);
            while let Some(arrived) = early.remove(&wanted) {
                let (buffer, read, short) = arrived?;
                hand_on(buffer, read)?;
                if short {
                    return Ok(());
                }
                wanted += 1;
            }
        }
        Ok(())
    })
}

/// A reader's work.
fn fill<B: DerefMut<Target = [u8]>>(
    file: &dyn ReadFile,
    next: &impl Fn() -> Option<WantedBytes<B>>,
    filled: &Sender<Arrived<B>>,
) {
    while let Some(wanted) = next() {
        let (number, mut buffer, bytes) = (wanted.number, wanted.buffer, wanted.bytes);
        let whole = whole_bytes(file, bytes, buffer.len());
        let read = file.read_at(&mut buffer[..whole], wanted.at);
        let read = read.map(|read| (buffer, read.min(bytes), read < bytes));
        let last = read.as_ref().map_or(true, |(_, _, short)| *short);
        if filled.send((number, read)).is_err() || last {
            return;
        }
    }
}

/// What one buffer holds: there is nothing to read ahead, for which a thread would cost more than the bytes of a small file.
fn read_at_once(
    file: &dyn ReadFile,
    range: Range<u64>,
    block: usize,
    buffers: &mut Buffers,
    mut work: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let bytes = (range.end - range.start) as usize;
    let spare = buffers.pop().filter(|buffer| buffer.len() >= block);
    let mut buffer = spare.map_or_else(|| Pages::zeroed(block), Ok)?;
    let whole = whole_bytes(file, bytes, buffer.len());
    let read = file.read_at(&mut buffer[..whole], range.start)?;
    work(&buffer[..read.min(bytes)])?;
    buffers.push(buffer);
    Ok(())
}

/// How much is read for so many bytes: of a disk whole blocks, as far as there is memory.
fn whole_bytes(file: &dyn ReadFile, bytes: usize, most: usize) -> usize {
    if file.is_remote() {
        bytes
    } else {
        bytes.next_multiple_of(BLOCK_BYTES).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{Fault, FaultPlan, Faulty};
    use crate::memory::Memory;
    use crate::{Caching, OutputStore, Store};

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|i| (i * 7 % 253) as u8).collect()
    }

    #[test]
    fn both_readers_hand_on_all_bytes() {
        let want = bytes(1_000_000);
        let store = Memory::with_room_for(u64::MAX);
        store
            .create("/in".as_ref(), 0, Caching::Cached)
            .unwrap()
            .write_at(&want, 0)
            .unwrap();
        let file = store.open("/in".as_ref(), Caching::Direct).unwrap();
        let (mut into, mut through) = (Vec::new(), Vec::new());
        let mut memory = vec![0; 999_000];
        let gather = |to: &mut Vec<u8>, block: &[u8]| {
            to.extend_from_slice(block);
            Ok(())
        };
        read_into(&*file, 500, &mut memory, 4096, |block| {
            gather(&mut into, block)
        })
        .unwrap();
        assert!(into == want[500..999_500]);
        let range = 500..2_000_000;
        read_through(&*file, range, (8192, 2), &mut Vec::new(), |block| {
            gather(&mut through, block)
        })
        .unwrap();
        assert!(through == want[500..]);
    }

    #[test]
    fn what_one_buffer_holds_is_read_by_one_call() {
        let nothing = FaultPlan {
            fault: Fault::Short,
            from: u64::MAX,
            to: u64::MAX,
        };
        let store = Faulty::new(Memory::with_room_for(u64::MAX), nothing);
        let want = bytes(10_000);
        let created = store.create("/in".as_ref(), 0, Caching::Cached).unwrap();
        created.write_at(&want, 0).unwrap();
        let file = store.open("/in".as_ref(), Caching::Cached).unwrap();
        let mut buffers = Vec::new();
        for range in [0..8192, 500..8692, 9000..10_000, 9000..12_000, 7..7] {
            let (before, mut got) = (store.calls(), Vec::new());
            read_through(&*file, range.clone(), (8192, 2), &mut buffers, |block| {
                got.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
            let end = range.end.min(10_000) as usize;
            assert!(got == want[range.start as usize..end], "{range:?}");
            assert!(
                store.calls() - before <= 1 && buffers.len() == 1,
                "{range:?}"
            );
        }
    }
}
