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
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
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
        let mut steps = lock(&steps);
        steps.next()
    };
    let (send, ready) = channel();
    thread::scope(|scope| {
        for _ in 0..readers {
            let (send, next) = (send.clone(), &next);
            let read = move || {
                while let Some((number, buffer)) = next() {
                    let wanted = buffer.len();
                    let read = file.read_at(buffer, offset + (number * step) as u64);
                    let buffer: &[u8] = buffer;
                    let read = read.map(|bytes| (&buffer[..bytes], bytes < wanted));
                    let last = read.as_ref().map_or(true, |(_, short)| *short);
                    if send.send((number, read)).is_err() || last {
                        return;
                    }
                }
            };
            begin_in(scope, "read", read)?;
        }
        drop(send);
        in_order(ready, |(data, short)| {
            data.chunks(block).try_for_each(&mut work)?;
            Ok(short)
        })
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

/// Hands on what arrives in any order, by number; until `hand_on` says that it was the last.
fn in_order<T>(
    arrivals: Receiver<(usize, Result<T>)>,
    mut hand_on: impl FnMut(T) -> Result<bool>,
) -> Result<()> {
    let (mut early, mut next) = (BTreeMap::new(), 0);
    for (number, arrived) in arrivals {
        early.insert(number, arrived);
        while let Some(arrived) = early.remove(&next) {
            if hand_on(arrived?)? {
                return Ok(());
            }
            next += 1;
        }
    }
    Ok(())
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
    let (send, filled) = channel();
    let (give_back, empty) = channel();
    for _ in 0..count {
        let spare = buffers.pop().filter(|buffer| buffer.len() >= block);
        let spare = spare.map_or_else(|| Pages::zeroed(block), Ok)?;
        give_back.send(spare).map_err(ended_early)?;
    }
    let readers = if file.is_remote() { count - 1 } else { 1 };
    let ahead = Mutex::new(Ahead {
        empty,
        range,
        block,
        number: 0,
    });
    let worked = thread::scope(|scope| {
        let give_back = give_back; // gone when the work is: readers may be waiting for a buffer
        for number in 0..readers {
            let (send, ahead) = (send.clone(), &ahead);
            let begun = begin_in(scope, "read", move || read_ahead(file, ahead, &send));
            match begun {
                Err(error) if number == 0 => return Err(error),
                Err(_) => break, // it goes on with those that there are
                Ok(_) => {}
            }
        }
        drop(send);
        in_order(
            filled,
            |ReadBlock {
                 buffer,
                 read,
                 short,
             }| {
                work(&buffer[..read])?;
                // Readers that have read all are not there to take it.
                let _ = give_back.send(buffer);
                Ok(short)
            },
        )
    });
    let ahead = ahead.into_inner().unwrap_or_else(PoisonError::into_inner);
    buffers.extend(ahead.empty);
    worked
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

/// What is still to be read, and where to.
struct Ahead {
    empty: Receiver<Pages<u8>>,
    range: Range<u64>,
    block: usize,
    number: usize,
}

/// A block that was read.
struct ReadBlock {
    buffer: Pages<u8>,
    read: usize,
    short: bool,
}

impl Ahead {
    /// A buffer, and what it is for: its number, where it begins, its length. Buffers go to ranges in order, so that the
    /// one that is waited for always has one.
    fn next(&mut self) -> Option<(Pages<u8>, usize, u64, usize)> {
        if self.range.is_empty() {
            return None;
        }
        let buffer = self.empty.recv().ok()?;
        let (number, at) = (self.number, self.range.start);
        let bytes = (self.range.end - at).min(self.block as u64);
        self.range.start += bytes;
        self.number += 1;
        Some((buffer, number, at, bytes as usize))
    }
}

/// Reads blocks into empty buffers and sends them on, until their end or that of the file.
fn read_ahead(
    file: &dyn ReadFile,
    ahead: &Mutex<Ahead>,
    filled: &Sender<(usize, Result<ReadBlock>)>,
) {
    let next = || {
        let mut ahead = lock(ahead);
        ahead.next()
    };
    while let Some((mut buffer, number, at, bytes)) = next() {
        let whole = whole_bytes(file, bytes, buffer.len());
        let read = file.read_at(&mut buffer[..whole], at);
        let read = read.map(|read| ReadBlock {
            buffer,
            read: read.min(bytes),
            short: read < bytes,
        });
        let last = read.as_ref().map_or(true, |block| block.short);
        if filled.send((number, read)).is_err() || last {
            return;
        }
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
