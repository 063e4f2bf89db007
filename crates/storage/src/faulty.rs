//! A store that fails on purpose: every call of any other store is counted, and chosen ones go wrong.
//!
//! Tests ask for "the n-th call fails so" and look what the job makes of it: an error that names the place, the
//! same bytes after a retry, nothing left behind.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::forward::forward;
use super::local_disk::remove_one_by_one;
use super::{
    Caching, LocalDisk, Lock, Locked, MissingLock, OutputStore, ReadFile, Stat, Store, WriteFile,
};
use gristmill_base::error::{Error, Result};
use gristmill_base::sys::codes;

/// What goes wrong at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this code of the operating system (5: EIO, 28: ENOSPC).
    Code(i32),
    /// A read returns half of the bytes, as if the file ended; another call fails with EIO.
    Short,
    /// A read returns with one bit flipped; another call fails with EIO.
    BitFlip,
}

/// Which calls go wrong: those numbered `from` to `to` (exclusive), counted from 0 over all kinds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    /// What happens.
    pub fault: Fault,
    /// The first call that goes wrong.
    pub from: u64,
    /// The call after the last one that goes wrong.
    pub to: u64,
}

#[derive(Debug)]
struct Counter {
    plan: FaultPlan,
    calls: AtomicU64,
}

impl Counter {
    fn next(&self) -> Option<Fault> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        (self.plan.from..self.plan.to)
            .contains(&call)
            .then_some(self.plan.fault)
    }

    /// Fails the call if it is one that goes wrong.
    fn check(&self, operation: &'static str, path: &Path) -> Result<()> {
        self.next()
            .map_or(Ok(()), |fault| Err(failure(fault, operation, path)))
    }
}

fn failure(fault: Fault, operation: &'static str, path: &Path) -> Error {
    let code = match fault {
        Fault::Code(code) => code,
        Fault::Short | Fault::BitFlip => codes::EIO,
    };
    Error::from_io(operation, path, &io::Error::from_raw_os_error(code))
}

/// Another store with faults.
///
/// ```
/// use gristmill_storage::{LocalDisk, faulty::{Fault, Faulty, FaultPlan}, memory::Memory};
/// let plan = FaultPlan { fault: Fault::Code(28), from: 1, to: 2 };
/// let store = Faulty::new(Memory::with_room_for(100), plan);
/// assert!(store.create_directory("/a".as_ref()).is_ok());
/// assert!(store.create_directory("/b".as_ref()).is_err());
/// assert!(store.create_directory("/b".as_ref()).is_ok());
/// assert_eq!(store.calls(), 3);
/// ```
#[derive(Debug)]
pub struct Faulty<S> {
    inner: S,
    counter: Arc<Counter>,
    /// Whether removing goes wrong, too.
    dies: bool,
}

impl<S: LocalDisk> Faulty<S> {
    /// `inner`, with the faults of `plan`.
    pub fn new(inner: S, plan: FaultPlan) -> Self {
        Faulty {
            inner,
            counter: Arc::new(Counter {
                plan,
                calls: AtomicU64::new(0),
            }),
            dies: false,
        }
    }

    /// `inner` until the call of that number, and nothing from then on: not even removing, as where a process was
    /// killed. The errors are of a kind that no retry helps.
    pub fn dying(inner: S, at_call: u64) -> Self {
        let plan = FaultPlan {
            fault: Fault::Code(codes::ENOSPC),
            from: at_call,
            to: u64::MAX,
        };
        Faulty {
            dies: true,
            ..Faulty::new(inner, plan)
        }
    }

    /// A kill may come in the middle of a directory that is removed: what comes first of it is gone then.
    fn break_off_removing(&self, path: &Path) {
        let is_first = self.calls() == self.counter.plan.from + 1;
        if is_first
            && let Ok(within) = self.inner.list(path)
            && let Some(gone) = within.first()
        {
            let _ = self.inner.remove(gone);
        }
    }

    /// A call of the store below, unless it is one that goes wrong.
    fn call<T>(
        &self,
        operation: &'static str,
        path: &Path,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.counter.check(operation, path)?;
        call()
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.counter.calls.load(Ordering::Relaxed)
    }
}

impl<S: LocalDisk> Store for Faulty<S> {
    forward! { self, path => self.inner, by self.call;
        stat() -> Result<Option<Stat>>, "look at a file";
        list() -> Result<Vec<PathBuf>>, "list a directory";
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        self.counter.check("open the input", path)?;
        let inner = self.inner.open(path, caching)?;
        Ok(Box::new(FaultyFile {
            inner,
            path: path.to_owned(),
            counter: self.counter.clone(),
        }))
    }
}

impl<S: LocalDisk> OutputStore for Faulty<S> {
    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        self.counter.check("create the output", path)?;
        let inner = self.inner.create(path, bytes, caching)?;
        Ok(Box::new(FaultyFile {
            inner,
            path: path.to_owned(),
            counter: self.counter.clone(),
        }))
    }
}

impl<S: LocalDisk> LocalDisk for Faulty<S> {
    forward! { self, path => self.inner, by self.call;
        create_directory() -> Result<()>, "create a directory";
        sync_directory() -> Result<()>, "make a directory durable";
        discard(range: Range<u64>) -> Result<()>, "give back space of a file";
        free_bytes() -> Result<Option<u64>>, "ask for free space";
        create_locked() -> Result<Box<dyn Lock>>, "create a directory";
        lock(missing: MissingLock) -> Result<Locked>, "lock";
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.counter.check("rename", to)?;
        self.inner.rename(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<()> {
        self.counter.check("rename", to)?;
        self.inner.replace(from, to)
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        self.inner.resolve(path)
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        self.counter.check("exchange names", other)?;
        self.inner.exchange(one, other)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        if self.dies
            && let Err(error) = self.counter.check("remove", path)
        {
            self.break_off_removing(path);
            return Err(error);
        }
        self.inner.remove(path) // else so that "nothing is left behind" can be asked after any fault
    }

    fn remove_all_but(&self, directory: &Path, kept: &str) -> Result<()> {
        if self.dies {
            remove_one_by_one(self, directory, kept) // so that a kill may come in between
        } else {
            self.inner.remove_all_but(directory, kept)
        }
    }
}

#[derive(Debug)]
struct FaultyFile<F: ?Sized> {
    path: PathBuf,
    counter: Arc<Counter>,
    inner: Box<F>,
}

impl ReadFile for FaultyFile<dyn ReadFile> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let fault = self.counter.next();
        if let Some(code @ Fault::Code(_)) = fault {
            return Err(failure(code, "read the input", &self.path));
        }
        let read = self.inner.read_at(buffer, offset)?;
        match fault {
            Some(Fault::Short) => Ok(read / 2),
            Some(Fault::BitFlip) if read > 0 => {
                buffer[read / 2] ^= 1 << (read % 8);
                Ok(read)
            }
            _ => Ok(read),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None // mapped bytes would come past the faults
    }
}

impl WriteFile for FaultyFile<dyn WriteFile> {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.counter.check("write the output", &self.path)?;
        self.inner.write_at(data, offset)
    }

    fn reserve(&self, bytes: u64) -> Result<()> {
        self.counter
            .check("reserve space for the output", &self.path)?;
        self.inner.reserve(bytes)
    }

    fn cut(&self, bytes: u64) -> Result<()> {
        self.counter.check("cut the output", &self.path)?;
        self.inner.cut(bytes)
    }

    fn sync(&self) -> Result<()> {
        self.counter.check("make the output durable", &self.path)?;
        self.inner.sync()
    }

    fn hand_over(&self) -> Result<()> {
        self.inner.hand_over()
    }
}
