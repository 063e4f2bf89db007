//! The disk of a machine whose tasks also read the runs of other machines.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Agents, RunLocation};
use crate::forward::forward;
use crate::mounts::SharedMount;
use crate::run_name::RunName;
use crate::{
    Caching, ListingEntry, LocalDisk, Lock, Locked, MissingLock, OutputStore, ReadFile, Stat,
    Store, WriteFile,
};
use gristmill_base::error::Result;

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
    /// use gristmill_storage::agents::{AgentDisk, AgentPlace, Agents};
    /// use gristmill_storage::{Caching, LocalDisk, OutputStore, Store, memory::Memory};
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
    /// # Ok::<(), gristmill_base::Error>(())
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
            RunLocation::File(path) => Some(path),
            RunLocation::Remote(..) => None,
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

    forward! { self, path => self.below;
        list() -> Result<Vec<PathBuf>>;
        list_each(each: &mut dyn FnMut(ListingEntry) -> Result<()>) -> Result<()>;
        open_found(found: &Stat, caching: Caching) -> Result<Box<dyn ReadFile>>;
        check_readable() -> Result<()>;
    }

    fn open(&self, path: &Path, caching: Caching) -> Result<Box<dyn ReadFile>> {
        match RunName::of(path) {
            Some(run) => self.agents.open_run(&self.below, run, caching),
            None => self.below.open(path, caching),
        }
    }

    fn is_remote(&self, path: &Path) -> bool {
        let found = RunName::of(path).map(|run| self.agents.find(&*self.below, &run));
        matches!(found, Some(Ok(RunLocation::Remote(..))))
    }

    fn pins_versions(&self) -> bool {
        self.below.pins_versions()
    }
}

impl OutputStore for AgentDisk {
    forward! { self, path => self.below;
        create(bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>>;
    }
}

impl LocalDisk for AgentDisk {
    forward! { self, path => self.below;
        create_private(data: &[u8]) -> Result<()>;
        create_run(bytes: u64, caching: Caching) -> Result<Box<dyn WriteFile>>;
        create_private_directory() -> Result<()>;
        read_private() -> Result<Vec<u8>>;
        create_directory() -> Result<()>;
        rename(to: &Path) -> Result<()>;
        replace(to: &Path) -> Result<()>;
        resolve() -> Result<PathBuf>;
        exchange(other: &Path) -> Result<bool>;
        remove_if_empty() -> Result<()>;
        remove_all_but(kept: &str) -> Result<()>;
        sync_directory() -> Result<()>;
        gives_back() -> Result<bool>;
        may_write() -> bool;
        shared_mount() -> Option<SharedMount>;
        free_bytes() -> Result<Option<u64>>;
        create_locked() -> Result<Box<dyn Lock>>;
        lock(missing: MissingLock) -> Result<Locked>;
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let run = self.own(path)?;
        self.below.remove(run.as_deref().unwrap_or(path))
    }

    fn discard(&self, path: &Path, range: Range<u64>) -> Result<()> {
        let run = self.own(path)?;
        self.below.discard(run.as_deref().unwrap_or(path), range)
    }
}
