//! The parts of uploads that are on their way: several at once, in memory that the job has set aside.
//!
//! ```text
//!   UploadWriter ── part, full ──▶ waits until one may go ──▶ a thread of its own: put_part ──▶ what the store said
//!                  ◀── its memory, for another part ────────────┘
//! ```
//!
//! A part that is longer than those which the job has memory for takes the places of several, at most all.
//!
//! All files that a task writes share one [`PartUploader`]: so its memory is what was granted, however many they are. The
//! rule that must hold: no more parts are on their way than were granted, and each is one until its reply is there.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::BytesMut;

use super::{Objects, Part, UploadPart};
use gristmill_base::error::{Error, Result};
use gristmill_base::sync::lock;
use gristmill_base::sys::threads::begin;

/// Parts on their way at once, for each task: two tasks fill 1 GB/s at 50 ms so.
pub const PARTS_AT_ONCE: u64 = 4;

/// How many parts may be on their way at once, and their memory.
#[derive(Debug)]
pub struct PartUploader {
    state: Mutex<UploaderState>,
    landed: Condvar,
}

#[derive(Debug)]
struct UploaderState {
    /// How many may go at once, and how many more.
    at_once: usize,
    free: usize,
    /// Memory of parts that are there.
    spare: Vec<BytesMut>,
}

/// A part on its way.
pub(super) type InFlightPart = JoinHandle<Result<UploadPart>>;

impl PartUploader {
    /// `at_once` parts, at least one, for which the job has memory.
    pub fn new(at_once: usize) -> Arc<Self> {
        let state = UploaderState {
            at_once: at_once.max(1),
            free: at_once.max(1),
            spare: Vec::new(),
        };
        Arc::new(PartUploader {
            state: Mutex::new(state),
            landed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, UploaderState> {
        lock(&self.state)
    }

    /// Memory of a part that is there, if there is any.
    pub(super) fn spare(&self) -> Option<BytesMut> {
        self.state().spare.pop()
    }

    /// Waits until a part that takes so many places may go, and sends it by `put`.
    pub(super) fn send(
        self: &Arc<Self>,
        part: Part,
        places: usize,
        put: impl FnOnce(&Part) -> Result<UploadPart> + Send + 'static,
    ) -> Result<InFlightPart> {
        let mut state = self.state();
        let places = places.clamp(1, state.at_once);
        while state.free < places {
            let woken = self.landed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.free -= places;
        drop(state);
        let place = PartSlot(Arc::clone(self), places);
        let work = move || {
            let put = put(&part);
            place.land(part);
            put
        };
        begin("send", work)
    }
}

/// The places of a part on its way, free again when dropped.
struct PartSlot(Arc<PartUploader>, usize);

impl PartSlot {
    /// Keeps the part's memory for another.
    fn land(self, part: Part) {
        // Where the connection still has a hold of it, it goes with that.
        if let Ok(mut memory) = part.data.try_into_mut() {
            memory.clear();
            self.0.state().spare.push(memory);
        }
    }
}

impl Drop for PartSlot {
    fn drop(&mut self) {
        self.0.state().free += self.1;
        self.0.landed.notify_all(); // who wants fewer places may go before who wants more
    }
}

/// Sends a part and proves that the store has its bytes.
pub(super) fn put(
    objects: &dyn Objects,
    path: &std::path::Path,
    id: &str,
    (number, part): (u32, &Part),
) -> Result<UploadPart> {
    let kept = objects.put_part(path, id, number, part)?;
    if (kept.bytes, kept.crc) == (part.data.len() as u64, part.crc) {
        return Ok(kept);
    }
    let message = "the store has other bytes than were sent";
    Err(
        Error::new(gristmill_base::Kind::Io, "write the output", message)
            .with_path(path)
            .with("part", number)
            .retryable_error(),
    )
}
