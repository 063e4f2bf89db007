//! A store that is watched: what was called, which calls failed, whether a task made them or the job itself; and a
//! hook that cancels the job, or does harm, at a chosen call.

use std::fmt::{self, Debug, Formatter};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use gristmill_engine::Result;
use gristmill_engine::runner::threads::Control;
use gristmill_engine::storage::{Caching, Lock, ReadFile, Stat, Store, WriteFile};

/// A call to the store, but for those that remove, which `storage::faulty` does not count either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub operation: &'static str,
    pub path: PathBuf,
    /// Tasks run on threads of their own; everything else of a job runs on the thread that called it.
    pub in_task: bool,
    pub failed: bool,
}

#[derive(Debug)]
pub struct Watch {
    job_thread: ThreadId,
    calls: Mutex<Vec<Call>>,
    begun: AtomicU64,
    cancel: Option<Cancel>,
    harm: Option<Harm>,
}

/// What to do when the call of that number begins.
struct Harm {
    at_call: u64,
    act: Box<dyn Fn() + Send + Sync>,
}

impl Debug for Harm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Harm at call {}", self.at_call)
    }
}

/// When to cancel a job.
#[derive(Debug)]
struct Cancel {
    control: Arc<Control>,
    at_call: u64,
    /// The stage that the job was in.
    during: OnceLock<&'static str>,
}

/// What a write takes once the job is cancelled: longer than anybody needs to notice it.
const SLOW_WRITE: Duration = Duration::from_millis(60);

impl Watch {
    /// For a job that this thread will run.
    pub fn new() -> Arc<Self> {
        Self::with(None, None)
    }

    /// The same; cancels the job of `control` when the call of that number begins.
    pub fn cancelling(control: &Arc<Control>, at_call: u64) -> Arc<Self> {
        let cancel = Cancel {
            control: control.clone(),
            at_call,
            during: OnceLock::new(),
        };
        Self::with(Some(cancel), None)
    }

    /// The same; does `act` when the call of that number begins.
    pub fn harming(at_call: u64, act: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let act = Box::new(act);
        Self::with(None, Some(Harm { at_call, act }))
    }

    fn with(cancel: Option<Cancel>, harm: Option<Harm>) -> Arc<Self> {
        Arc::new(Watch {
            job_thread: thread::current().id(),
            calls: Mutex::default(),
            begun: AtomicU64::new(0),
            cancel,
            harm,
        })
    }

    /// All calls, in the order of their ends.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub fn failed(&self) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| call.failed);
        calls
    }

    /// The stage in which the job was cancelled; empty before the first.
    pub fn cancelled_during(&self) -> Option<&'static str> {
        self.cancel.as_ref()?.during.get().copied()
    }

    fn call<T>(
        &self,
        operation: &'static str,
        path: &Path,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        if let Some(cancel) = &self.cancel {
            if number == cancel.at_call {
                let stage = cancel.control.progress().name;
                cancel.control.cancel();
                cancel.during.get_or_init(|| stage);
            } else if operation == "write" && cancel.control.is_cancelled() {
                thread::sleep(SLOW_WRITE);
            }
        }
        if let Some(harm) = self.harm.as_ref().filter(|harm| harm.at_call == number) {
            (harm.act)();
        }
        let done = call();
        self.calls.lock().unwrap().push(Call {
            operation,
            path: path.to_owned(),
            in_task: thread::current().id() != self.job_thread,
            failed: done.is_err(),
        });
        done
    }
}

#[derive(Debug)]
pub struct Watched {
    inner: Arc<dyn Store>,
    watch: Arc<Watch>,
}

impl Watched {
    pub fn over(inner: Arc<dyn Store>, watch: &Arc<Watch>) -> Arc<dyn Store> {
        let watch = Arc::clone(watch);
        Arc::new(Watched { inner, watch })
    }

    fn file<F: ?Sized>(&self, path: &Path, inner: Box<F>) -> WatchedFile<F> {
        WatchedFile {
            path: path.to_owned(),
            watch: self.watch.clone(),
            inner,
        }
    }
}

impl Store for Watched {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        self.watch.call("stat", path, || self.inner.stat(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.watch
            .call("list", directory, || self.inner.list(directory))
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        let opened = self
            .watch
            .call("open", path, || self.inner.open(path, caching))?;
        Ok(Box::new(self.file(path, opened)))
    }

    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        let create = || self.inner.create(path, bytes, caching);
        let created = self.watch.call("create", path, create)?;
        Ok(Box::new(self.file(path, created)))
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        let create = || self.inner.create_directory(path);
        self.watch.call("create_directory", path, create)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.watch
            .call("rename", to, || self.inner.rename(from, to))
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<()> {
        self.watch
            .call("rename", to, || self.inner.replace(from, to))
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        self.inner.resolve(path)
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        let exchange = || self.inner.exchange(one, other);
        self.watch.call("exchange", other, exchange)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        let sync = || self.inner.sync_directory(directory);
        self.watch.call("sync_directory", directory, sync)
    }

    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()> {
        let discard = || self.inner.discard(path, range.clone());
        self.watch.call("discard", path, discard)
    }

    fn free_bytes(&self, path: &Path) -> Result<Option<u64>> {
        self.watch
            .call("free_bytes", path, || self.inner.free_bytes(path))
    }

    fn lock(&self, path: &Path) -> Result<Option<Box<dyn Lock>>> {
        self.watch.call("lock", path, || self.inner.lock(path))
    }
}

#[derive(Debug)]
struct WatchedFile<F: ?Sized> {
    path: PathBuf,
    watch: Arc<Watch>,
    inner: Box<F>,
}

impl ReadFile for WatchedFile<dyn ReadFile> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let read = || self.inner.read_at(buffer, offset);
        self.watch.call("read", &self.path, read)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}

impl WriteFile for WatchedFile<dyn WriteFile> {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let write = || self.inner.write_at(data, offset);
        self.watch.call("write", &self.path, write)
    }

    fn sync(&self) -> Result<()> {
        self.watch.call("sync", &self.path, || self.inner.sync())
    }
}
