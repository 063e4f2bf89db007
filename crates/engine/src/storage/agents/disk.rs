//! The disk of a machine whose tasks also read the runs of other machines.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Agents, Found, RunName};
use crate::error::Result;
use crate::storage::mounts::SharedMount;
use crate::storage::{
    Caching, Listed, LocalDisk, Lock, Locked, MissingLock, Output, ReadFile, Stat, Store, WriteFile,
};

/// A disk on which the runs of all agents can be read. All other paths are those of the disk below.
#[derive(Debug)]
pub struct AgentDisk {
    below: Arc<dyn LocalDisk>,
    agents: Arc<Agents>,
}

impl AgentDisk {
    /// Adds the runs of `agents` to a disk.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gristmill_engine::storage::agents::{AgentDisk, AgentPlace, Agents};
    /// use gristmill_engine::storage::{Caching, LocalDisk, Output, Store, memory::Memory};
    /// let below: Arc<dyn LocalDisk> = Arc::new(Memory::with_room_for(1 << 20));
    /// below.create("/spill/run-1".as_ref(), 3, Caching::Cached)?.write_at(b"abc", 0)?;
    /// let agents = Arc::new(Agents::of_agent(0, "token".into(), "/told".into(), true));
    /// let own = AgentPlace { folders: vec!["/spill".into()], ..AgentPlace::default() };
    /// agents.change(|table| drop(table.agents.insert(0, own)));
    /// let disk = AgentDisk::new(below, agents);
    /// let mut bytes = [0; 3];
    /// disk.open("agent:0/0/run-1".as_ref(), Caching::Cached)?.read_at(&mut bytes, 0)?;
    /// assert_eq!(&bytes, b"abc");
    /// assert!(disk.stat("agent:1/0/run-1".as_ref()).unwrap_err().to_string().contains("no agent has its number"));
    /// # Ok::<(), gristmill_engine::Error>(())
    /// ```
    pub fn new(below: Arc<dyn LocalDisk>, agents: Arc<Agents>) -> Self {
        AgentDisk { below, agents }
    }

    /// Where a run of this agent lies, of which space is to be given back; nothing of another one's.
    fn own(&self, path: &Path) -> Result<Option<PathBuf>> {
        let Some(run) = RunName::of(path).filter(|run| run.agent == self.agents.own()) else {
            return Ok(None);
        };
        Ok(match self.agents.find(&*self.below, &run)? {
            Found::File(path) => Some(path),
            Found::Far(..) => None,
        })
    }
}

impl Store for AgentDisk {
    fn stat(&self, path: &Path) -> Result<Option<Stat>> {
        match RunName::of(path) {
            Some(run) => self.agents.stat_of(&*self.below, &run),
            None => self.below.stat(path),
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.below.list(directory)
    }

    fn list_each(
        &self,
        directory: &Path,
        each: &mut dyn FnMut(Listed) -> Result<()>,
    ) -> Result<()> {
        self.below.list_each(directory, each)
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        match RunName::of(path) {
            Some(run) => self.agents.open_run(&self.below, run, caching),
            None => self.below.open(path, caching),
        }
    }

    fn open_found(&self, path: &Path, found: &Stat, caching: Caching) -> Result<Box<dyn ReadFile>> {
        self.below.open_found(path, found, caching)
    }

    fn is_far(&self, path: &Path) -> bool {
        let found = RunName::of(path).map(|run| self.agents.find(&*self.below, &run));
        matches!(found, Some(Ok(Found::Far(..))))
    }

    fn pins_versions(&self) -> bool {
        self.below.pins_versions()
    }

    fn check_readable(&self, path: &Path) -> Result<()> {
        self.below.check_readable(path)
    }
}

impl Output for AgentDisk {
    fn create(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        self.below.create(path, bytes, caching)
    }
}

impl LocalDisk for AgentDisk {
    fn create_private(&self, path: &Path, data: &[u8]) -> Result<()> {
        self.below.create_private(path, data)
    }

    fn create_run(&self, path: &Path, bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>> {
        self.below.create_run(path, bytes, caching)
    }

    fn create_private_directory(&self, path: &Path) -> Result<()> {
        self.below.create_private_directory(path)
    }

    fn read_private(&self, path: &Path) -> Result<Vec<u8>> {
        self.below.read_private(path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.below.create_directory(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.below.rename(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> Result<()> {
        self.below.replace(from, to)
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf> {
        self.below.resolve(path)
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<bool> {
        self.below.exchange(one, other)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match self.own(path)? {
            Some(run) => self.below.remove(&run),
            None => self.below.remove(path),
        }
    }

    fn remove_if_empty(&self, path: &Path) -> Result<()> {
        self.below.remove_if_empty(path)
    }

    fn remove_all_but(&self, directory: &Path, kept: &str) -> Result<()> {
        self.below.remove_all_but(directory, kept)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.below.sync_directory(directory)
    }

    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()> {
        match self.own(path)? {
            Some(run) => self.below.discard(&run, range),
            None => self.below.discard(path, range),
        }
    }

    fn gives_back(&self, directory: &Path) -> Result<bool> {
        self.below.gives_back(directory)
    }

    fn may_write(&self, directory: &Path) -> bool {
        self.below.may_write(directory)
    }

    fn shared_mount(&self, path: &Path) -> Option<SharedMount> {
        self.below.shared_mount(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<Option<u64>> {
        self.below.free_bytes(path)
    }

    fn create_locked(&self, directory: &Path) -> Result<Box<dyn Lock>> {
        self.below.create_locked(directory)
    }

    fn lock(&self, directory: &Path, missing: MissingLock) -> Result<Locked> {
        self.below.lock(directory, missing)
    }
}
