//! What the tests share: places to run jobs in, records to run them on, and the naive answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_engine::budget::ProcessOwner;
use gristmill_engine::history;
use gristmill_engine::jobs::JobSpec;
use gristmill_engine::jobs::{self, JobReport, Status, Success};
use gristmill_engine::plan::spill::MemoryLayout;
use gristmill_engine::runner::Control;
use gristmill_engine::storage::faulty::{FaultPlan, Faulty};
use gristmill_engine::storage::local::Local;
use gristmill_engine::storage::memory::Memory;
use gristmill_engine::storage::run_name::MEMORY_PLACE;
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, FileKind, LocalDisk};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const RECORD: usize = 100;

pub type Key = [u8; 10];

/// Everything below a place's root, by path relative to it: the bytes of files, `None` for directories.
pub type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// What is in no job's folder.
pub fn outside_job_folders(tree: &Tree) -> Tree {
    let mut outside = tree.clone();
    outside.retain(|path, _| !is_of_job(path));
    outside
}

/// The bytes of the files in job folders; the lock, which is empty, is none.
pub fn in_job_folders(tree: &Tree) -> Vec<&[u8]> {
    let inside = tree.iter().filter(|(path, _)| is_of_job(path));
    let files = inside.filter_map(|(_, bytes)| bytes.as_deref());
    files.filter(|bytes| !bytes.is_empty()).collect()
}

fn is_of_job(path: &Path) -> bool {
    path.to_string_lossy().contains(".gristmill-")
}

/// A folder of a store.
#[derive(Debug)]
pub enum Place {
    Memory(Memory),
    Local(TempDir),
}

impl Place {
    pub fn memory() -> Self {
        let memory = Memory::with_room_for(1 << 30);
        memory.create_directory(Path::new("/w")).unwrap();
        Place::Memory(memory)
    }

    /// On the disk of the build, so that direct I/O and renames are those of a real file system.
    pub fn local() -> Self {
        Place::Local(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub fn store(&self) -> Arc<dyn LocalDisk> {
        match self {
            Place::Memory(memory) => Arc::new(memory.clone()),
            Place::Local(_) => Arc::new(Local),
        }
    }

    /// The same folder through a store that fails.
    pub fn faulty(&self, plan: FaultPlan) -> Arc<dyn LocalDisk> {
        match self {
            Place::Memory(memory) => Arc::new(Faulty::new(memory.clone(), plan)),
            Place::Local(_) => Arc::new(Faulty::new(Local, plan)),
        }
    }

    pub fn root(&self) -> &Path {
        match self {
            Place::Memory(_) => Path::new("/w"),
            Place::Local(folder) => folder.path(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn make_directory(&self, name: &str) {
        self.store().create_directory(&self.path(name)).unwrap();
    }

    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        let file = self
            .store()
            .create(&path, bytes.len() as u64, Caching::Cached);
        file.unwrap().write_at(bytes, 0).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        read(&*self.store(), &self.path(name))
    }

    pub fn tree(&self) -> Tree {
        let (store, mut tree) = (self.store(), Tree::new());
        let mut left = vec![self.root().to_owned()];
        while let Some(directory) = left.pop() {
            for path in store.list(&directory).unwrap() {
                let name = path.strip_prefix(self.root()).unwrap().to_owned();
                let directory = store.stat(&path).unwrap().unwrap().kind == FileKind::Directory;
                let bytes = (!directory).then(|| read(&*store, &path));
                tree.insert(name, bytes);
                if directory {
                    left.push(path);
                }
            }
        }
        tree
    }

    /// The part files of a directory, in the order of their names.
    pub fn parts(&self, directory: &str) -> Vec<(String, Vec<u8>)> {
        let paths = self.store().list(&self.path(directory)).unwrap();
        let name_of = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let names = paths.iter().map(|path| name_of(path));
        names
            .filter(|name| name.starts_with("part-"))
            .map(|name| (name.clone(), self.read(&format!("{directory}/{name}"))))
            .collect()
    }

    pub fn success(&self, directory: &str) -> Success {
        serde_json::from_slice(&self.read(&format!("{directory}/_SUCCESS"))).unwrap()
    }

    /// Runs a job, whose paths are relative to the root.
    pub fn run(&self, spec: &Value) -> JobReport {
        self.run_on(self.store(), spec, &Control::default())
    }

    pub fn run_on(&self, store: Arc<dyn LocalDisk>, spec: &Value, control: &Control) -> JobReport {
        self.run_with(Stores::new(store), spec, control)
    }

    pub fn run_with(&self, store: Arc<Stores>, spec: &Value, control: &Control) -> JobReport {
        let job_id = "job_1".to_owned();
        let environment = jobs::Environment {
            store,
            job_id,
            history: history::HistoryConfig::default(),
            work: None,
            interpreter: String::new(),
            process: ProcessOwner::Shared,
            worker: None,
            cluster: None,
        };
        let spec = JobSpec::from_json(&self.absolute(spec).to_string()).unwrap();
        jobs::run(&spec, &environment, control)
    }

    /// Runs a job that must succeed.
    pub fn succeed(&self, spec: &Value) -> JobReport {
        let report = self.run(spec);
        assert_eq!(
            report.status,
            Status::Succeeded,
            "{spec}: {:?}",
            report.error
        );
        report
    }

    fn absolute(&self, spec: &Value) -> Value {
        let join = |path: &Value| match path.as_str().unwrap() {
            MEMORY_PLACE => path.clone(),
            path => json!(self.path(path)),
        };
        let mut spec = spec.clone();
        for options in spec.as_object_mut().unwrap().values_mut() {
            for name in ["input", "output"] {
                if let Some(path) = options.get_mut(name) {
                    *path = join(path);
                }
            }
            for name in ["inputs", "spill_dir"] {
                if let Some(paths) = options.get_mut(name) {
                    *paths = paths.as_array().unwrap().iter().map(join).collect();
                }
            }
            // A checksum stays one.
            if let Some(against) = options.get_mut("against")
                && against.as_str().unwrap().parse::<Hexadecimal>().is_err()
            {
                *against = join(against);
            }
        }
        spec
    }
}

type Hexadecimal = gristmill_engine::record::checksum::Hex;

fn read(store: &dyn LocalDisk, path: &Path) -> Vec<u8> {
    let mut bytes = vec![0; store.stat(path).unwrap().unwrap().bytes as usize];
    let file = store.open(path, Caching::Cached).unwrap();
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

/// The least memory that spills records of which none is known to be longer than this.
pub fn least_memory(workers: usize, longest: u64) -> u64 {
    let refusal = MemoryLayout::new(1, workers, 100, longest).unwrap_err();
    refusal.details.needed_bytes.unwrap()
}

/// A small generator of numbers: the same everywhere, and none of the engine's.
#[derive(Debug, Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn key(&mut self) -> Key {
        let bytes = [self.next().to_be_bytes(), self.next().to_be_bytes()].concat();
        *bytes.first_chunk().unwrap()
    }
}

/// Records with these keys. Each holds its number, so that no two are equal and stability shows.
pub fn records(keys: &[Key], first_number: u64) -> Vec<u8> {
    let mut data = Vec::with_capacity(keys.len() * RECORD);
    for (number, key) in (first_number..).zip(keys) {
        data.extend_from_slice(key);
        data.extend_from_slice(&number.to_be_bytes());
        data.extend((18..RECORD).map(|i| (number as u8).wrapping_mul(31) ^ i as u8));
    }
    data
}

pub fn key_of(record: &[u8]) -> Key {
    *record.first_chunk().unwrap()
}

/// A stable sort by the first ten bytes.
pub fn naive_sort(data: &[u8]) -> Vec<u8> {
    let mut records: Vec<&[u8]> = data.chunks_exact(RECORD).collect();
    records.sort_by_key(|record| key_of(record));
    records.concat()
}

pub fn naive_checksum(data: &[u8]) -> u128 {
    let crc = |record: &[u8]| u128::from(crc32fast::hash(record));
    data.chunks_exact(RECORD).map(crc).sum()
}

pub fn naive_duplicates(data: &[u8]) -> u64 {
    let keys: Vec<Key> = data.chunks_exact(RECORD).map(key_of).collect();
    keys.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Does `work` for every number below `count`, many at once: jobs that retry spend their time waiting.
pub fn for_each_number(count: u64, work: impl Fn(u64) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed) as u64;
                    if number >= count {
                        return;
                    }
                    work(number);
                }
            });
        }
    });
}
