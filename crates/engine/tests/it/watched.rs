//! A store that is watched: what was called, which calls failed, whether a task made them or the job itself; and a
//! hook that cancels the job, or does harm, at a chosen call.

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use gristmill_engine::runner::Control;
use gristmill_engine::storage::{
    Caching, LocalDisk, Lock, Locked, MissingLock, OutputStore, ReadFile, Stat, Store, WriteFile,
};
use gristmill_engine::{Error, Result};

/// A call to the store, but for those that remove, which `storage::faulty` does not count either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub operation: &'static str,
    pub path: PathBuf,
    /// Tasks run on threads of their own; everything else of a job runs on the thread that called it.
    pub in_task: bool,
    pub failed: bool,
}

impl Call {
    /// Whether a task makes it that fails with it.
    pub fn matters_to_task(&self) -> bool {
        self.in_task && self.operation != "discard"
    }

    /// Whether it looks beside the output, or where runs go, for what dead jobs left: its trouble is no job's.
    pub fn of_sweep(&self) -> bool {
        let is_of_job = self.path.ends_with("in") || self.path.ends_with("out");
        self.operation == "list" && !self.in_task && !is_of_job
    }

    /// Whether it begins a sorted run.
    pub fn creates_run(&self) -> bool {
        self.operation == "create" && self.of_run()
    }

    /// Whether its file is a sorted run.
    pub fn of_run(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b"run-")
    }
}

#[derive(Debug)]
pub struct Watch {
    job_thread: ThreadId,
    calls: Mutex<Vec<Call>>,
    begun: AtomicU64,
    cancel: Option<Cancel>,
    harm: Option<Harm>,
    /// Calls of tasks until the one that fails.
    until_failure: Option<AtomicU64>,
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

    /// The same; the call of that number, among those that tasks make and cannot do without, fails with EIO.
    pub fn failing_in_task(call: u64) -> Arc<Self> {
        let mut watch = Self::make(None, None);
        watch.until_failure = Some(AtomicU64::new(call + 1));
        Arc::new(watch)
    }

    fn with(cancel: Option<Cancel>, harm: Option<Harm>) -> Arc<Self> {
        Arc::new(Self::make(cancel, harm))
    }

    fn make(cancel: Option<Cancel>, harm: Option<Harm>) -> Self {
        Watch {
            job_thread: thread::current().id(),
            calls: Mutex::default(),
            begun: AtomicU64::new(0),
            cancel,
            harm,
            until_failure: None,
        }
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
        let mut made = Call {
            operation,
            path: path.to_owned(),
            in_task: thread::current().id() != self.job_thread,
            failed: false,
        };
        let failure = self
            .until_failure
            .as_ref()
            .filter(|_| made.matters_to_task());
        let fails = failure.is_some_and(|left| left.fetch_sub(1, Ordering::Relaxed) == 1);
        let done = if fails {
            let code = io::Error::from_raw_os_error(5);
            Err(Error::from_io(operation, path, &code))
        } else {
            call()
        };
        made.failed = done.is_err();
        self.calls.lock().unwrap().push(made);
        done
    }
}

#[derive(Debug)]
pub struct Watched {
    inner: Arc<dyn LocalDisk>,
    watch: Arc<Watch>,
}

impl Watched {
    pub fn over(inner: Arc<dyn LocalDisk>, watch: &Arc<Watch>) -> Arc<dyn LocalDisk> {
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
}

impl OutputStore for Watched {
    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        let create = || self.inner.create(path, bytes, caching);
        let created = self.watch.call("create", path, create)?;
        Ok(Box::new(self.file(path, created)))
    }
}

impl LocalDisk for Watched {
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

    fn remove_all_but(&self, directory: &Path, kept: &str) -> Result<()> {
        self.inner.remove_all_but(directory, kept)
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

    fn create_locked(&self, directory: &Path) -> Result<Box<dyn Lock>> {
        let create = || self.inner.create_locked(directory);
        self.watch.call("create_directory", directory, create)
    }

    fn lock(&self, directory: &Path, missing: MissingLock) -> Result<Locked> {
        let lock = || self.inner.lock(directory, missing);
        self.watch.call("lock", directory, lock)
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
