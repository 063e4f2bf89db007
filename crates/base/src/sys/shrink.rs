//! Survives a mapped file that shrinks.
//!
//! Touching a mapped page that the file no longer has raises SIGBUS, which ends a process. Here the signal's
//! handler puts zero pages in the place of what is gone, notes the address, and lets the reader go on; whoever
//! registered the range asks afterwards and fails its task with a clear error. (Wayland's display servers do
//! the same with their clients' buffers.)
//!
//! The handler only reads atomics and calls `mmap` and `sigaction`, which are safe in a handler. A SIGBUS
//! elsewhere goes to whoever handled it before.
//!
//! Decision: docs/decisions/address-space.md.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One registered range; all zero when free.
struct RegisteredRange {
    start: AtomicUsize,
    end: AtomicUsize,
    /// The first address that was gone, or 0.
    gone: AtomicUsize,
}

/// Ranges at once: one for each running job that maps its input.
const SLOTS: usize = 64;

static TABLE: [RegisteredRange; SLOTS] = [const {
    RegisteredRange {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        gone: AtomicUsize::new(0),
    }
}; SLOTS];

/// The action that stood before ours; written once, before the handler is installed.
struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);
// SAFETY: written inside `Once`, before anything can read it.
unsafe impl Sync for Previous {}
static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::uninit()));

/// Guards one range of addresses, until dropped.
#[derive(Debug)]
pub(super) struct ShrinkGuard {
    slot: usize,
}

impl ShrinkGuard {
    /// Guards `bytes` bytes from `start` on, all of them mappings of the caller's. `None` when all slots are
    /// taken: then do not map.
    pub(super) fn register(start: *const u8, bytes: usize) -> Option<Self> {
        install_handler();
        let start = start as usize;
        let taken = |slot: &RegisteredRange| {
            slot.start
                .compare_exchange(0, start, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        };
        let slot = TABLE.iter().position(taken)?;
        TABLE[slot].gone.store(0, Ordering::Release);
        TABLE[slot].end.store(start + bytes, Ordering::Release);
        Some(ShrinkGuard { slot })
    }

    /// How far into the range the first page was found gone, if any was.
    pub(super) fn first_gone(&self) -> Option<u64> {
        let slot = &TABLE[self.slot];
        match slot.gone.load(Ordering::Acquire) {
            0 => None,
            address => Some((address - slot.start.load(Ordering::Acquire)) as u64),
        }
    }
}

impl Drop for ShrinkGuard {
    fn drop(&mut self) {
        TABLE[self.slot].end.store(0, Ordering::Release);
        TABLE[self.slot].start.store(0, Ordering::Release);
    }
}

fn install_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: `action` is fully initialised; PREVIOUS is written here only, and the handler reads it only
        // after `sigaction` has returned it.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_sigbus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            let previous = (*PREVIOUS.0.get()).as_mut_ptr();
            libc::sigaction(libc::SIGBUS, std::ptr::null(), previous);
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
        }
    });
}

extern "C" fn on_sigbus(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler.
    let address = unsafe { (*info).si_addr() } as usize;
    for slot in &TABLE {
        let end = slot.end.load(Ordering::Acquire);
        if (slot.start.load(Ordering::Acquire)..end).contains(&address) && fill(slot, address, end)
        {
            return;
        }
    }
    // SAFETY: PREVIOUS was written before this handler was installed. Returning retries the access, and the
    // previous action then takes the signal.
    unsafe {
        libc::sigaction(
            libc::SIGBUS,
            (*PREVIOUS.0.get()).as_ptr(),
            std::ptr::null_mut(),
        )
    };
}

/// Replaces all from the page of `address` to the range's end: what follows a lost page is lost to the job too.
fn fill(slot: &RegisteredRange, address: usize, end: usize) -> bool {
    let _ = slot
        .gone
        .compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
    // SAFETY: the pages belong to the guarded range, whose owner reads them only as plain bytes.
    unsafe {
        let page = super::page_bytes();
        let from = address / page * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        libc::mmap(
            from as *mut libc::c_void,
            end - from,
            libc::PROT_READ,
            flags,
            -1,
            0,
        ) != libc::MAP_FAILED
    }
}
