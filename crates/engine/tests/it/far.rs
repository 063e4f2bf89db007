//! Object stores whose replies come late: how many requests are under way, how many there are in all, and that bytes
//! are what they were, with faults and in little memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use gristmill_engine::Result;
use gristmill_engine::split::lines::{LineOptions, LineRecordReader};
use gristmill_engine::storage::io::read_ahead::{RANGES_AT_ONCE, read_into, read_through};
use gristmill_engine::storage::io::window::{BEHIND_BYTES, in_order};
use gristmill_engine::storage::objects::directory::DirectoryStore;
use gristmill_engine::storage::objects::faults::{Faults, Unreliable};
use gristmill_engine::storage::objects::part_uploader::PartUploader;
use gristmill_engine::storage::objects::retry::Retried;
use gristmill_engine::storage::objects::{
    KeptPart, Object, ObjectStore, Objects, Page, Part, Upload, UploadPart,
};
use gristmill_engine::storage::version::ReadVersion;
use gristmill_engine::storage::{Caching, OutputStore as _, Store as _};
use gristmill_engine::{Error, Kind};
use tempfile::TempDir;

/// How many requests of a kind there were, and were at once.
#[derive(Debug, Default)]
struct Counted {
    all: AtomicUsize,
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Counted {
    /// A request that takes some time: others begin meanwhile if they may.
    fn during<T>(&self, request: impl FnOnce() -> T) -> T {
        self.all.fetch_add(1, Ordering::SeqCst);
        let now = 1 + self.now.fetch_add(1, Ordering::SeqCst);
        self.peak.fetch_max(now, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        let done = request();
        self.now.fetch_sub(1, Ordering::SeqCst);
        done
    }

    fn counts(&self) -> (usize, usize) {
        let (all, peak) = (&self.all, &self.peak);
        (all.load(Ordering::SeqCst), peak.load(Ordering::SeqCst))
    }
}

/// Objects far away.
#[derive(Debug, Default)]
struct Far<O> {
    inner: O,
    heads: Counted,
    gets: Counted,
    puts: Counted,
    /// The part that cannot be sent, by its number; 0 for none.
    refused: u32,
}

impl<O: Objects> Objects for Far<O> {
    fn head(&self, path: &Path) -> Result<Option<Object>> {
        self.heads.during(|| self.inner.head(path))
    }
    fn list(&self, directory: &Path, from: Option<&str>) -> Result<Page> {
        self.inner.list(directory, from)
    }
    fn get(
        &self,
        path: &Path,
        version: &ReadVersion,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize> {
        let get = || self.inner.get(path, version, buffer, offset);
        self.gets.during(get)
    }
    fn delete(&self, path: &Path) -> Result<()> {
        self.inner.delete(path)
    }
    fn begin(&self, path: &Path) -> Result<String> {
        self.inner.begin(path)
    }
    fn put_part(&self, path: &Path, id: &str, number: u32, part: &Part) -> Result<UploadPart> {
        if number == self.refused {
            return Err(Error::new(Kind::DiskFull, "write the output", "no more"));
        }
        let put = || self.inner.put_part(path, id, number, part);
        self.puts.during(put)
    }
    fn parts(&self, path: &Path, id: &str) -> Result<Option<Vec<KeptPart>>> {
        self.inner.parts(path, id)
    }
    fn complete(&self, upload: &Upload) -> Result<()> {
        self.inner.complete(upload)
    }
    fn abort(&self, path: &Path, id: &str) -> Result<()> {
        self.inner.abort(path, id)
    }
    fn uploads(&self, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        self.inner.uploads(path)
    }
}

/// A store far away, in which every sixth request fails at first, and a place in it.
fn far(refused: u32) -> (Arc<Far<impl Objects>>, PathBuf, TempDir) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = format!("objects://{}/a", folder.path().display());
    let faults = Faults {
        refused: 0.1,
        lost: 0.07,
        seed: 3,
        ..Faults::default()
    };
    let objects = Far {
        inner: Retried::new(Unreliable::new(DirectoryStore, faults), Arc::default()),
        heads: Counted::default(),
        gets: Counted::default(),
        puts: Counted::default(),
        refused,
    };
    (Arc::new(objects), path.into(), folder)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at / 5 % 251) as u8).collect()
}

#[test]
fn parts_are_sent_at_once_and_in_order() {
    let want = bytes(60_000_000);
    for granted in [1, 3] {
        let (objects, path, _folder) = far(0);
        let store = ObjectStore::new(objects.clone());
        let file = store.create(&path, 0, Caching::Direct).unwrap();
        file.send_by(&PartUploader::new(granted));
        for (number, piece) in want.chunks(999_999).enumerate() {
            file.write_at(piece, number as u64 * 999_999).unwrap();
        }
        let upload = file.finish().unwrap().unwrap();
        assert_eq!(upload.crc(), crc32fast::hash(&want));
        assert_eq!(objects.puts.counts(), (8, granted));
        objects.complete(&upload).unwrap();
        let mut found = vec![0; want.len() + 1];
        let file = store.open(&path, Caching::Direct).unwrap();
        assert_eq!(file.read_at(&mut found, 0).unwrap(), want.len());
        found.pop();
        assert!(found == want);
    }
}

/// The error of a part that is on its way fails the upload, and it ends.
#[test]
fn a_part_that_cannot_be_sent_ends_the_upload() {
    for refused in [1, 4, 8] {
        let (objects, path, _folder) = far(refused);
        let store = ObjectStore::new(objects.clone());
        let file = store.create(&path, 0, Caching::Direct).unwrap();
        file.send_by(&PartUploader::new(3));
        let piece = vec![7; 8 << 20];
        let written = (0..8_u64).try_for_each(|at| file.write_at(&piece, at << 23));
        let ended = written.and_then(|()| file.finish().map(drop));
        assert_eq!(ended.unwrap_err().kind(), Kind::DiskFull);
        drop(file);
        assert_eq!(objects.uploads(&path).unwrap(), []);
    }
}

/// What is read is asked for in ranges of 8 MB at least, many at once, and handed on in order.
#[test]
fn ranges_are_asked_for_at_once_and_handed_on_in_order() {
    let want = bytes(90_000_000);
    let (objects, path, folder) = far(0);
    std::fs::write(folder.path().join("a"), &want).unwrap();
    let store = ObjectStore::new(objects.clone());
    let found = store.stat(&path).unwrap().unwrap();
    let file = store.open_found(&path, &found, Caching::Direct).unwrap();
    assert_eq!(objects.heads.counts().0, 1, "it was looked at before");
    for (block, bytes) in [(1 << 20, want.len()), (4_096_000, want.len() + 5)] {
        let (gets, _) = objects.gets.counts();
        let (mut memory, mut read) = (vec![0; bytes], Vec::new());
        let gather = |data: &[u8]| {
            assert!(data.len() <= block);
            read.extend_from_slice(data);
            Ok(())
        };
        read_into(&*file, 0, &mut memory, block, gather).unwrap();
        assert!(read == want);
        let (all, peak) = objects.gets.counts();
        assert!(all - gets <= want.len() / 8_000_000, "{all}");
        assert_eq!(peak, RANGES_AT_ONCE);
    }
    for count in [2, 5] {
        let mut read = Vec::new();
        let gather = |data: &[u8]| {
            read.extend_from_slice(data);
            Ok(())
        };
        let range = 5..want.len() as u64 + 9;
        let buffers = &mut Vec::new();
        read_through(&*file, range, (8 << 20, count), buffers, gather).unwrap();
        assert!(read == want[5..]);
        assert!(buffers.len() <= count);
    }
    std::fs::write(folder.path().join("a"), b"another").unwrap();
    let opened = store.open_found(&path, &found, Caching::Direct).unwrap();
    let replaced = opened.read_at(&mut [0; 5], 0);
    assert_eq!(replaced.unwrap_err().kind(), Kind::InputChanged);
    assert_eq!(objects.heads.counts().0, 1);
}

/// Lines of all splits of a file far away: each line once, each byte asked for once but at the borders of splits.
#[test]
fn lines_are_read_in_few_requests() {
    let mut text = Vec::new();
    for number in 0_u64.. {
        if text.len() > 40_000_000 {
            break;
        }
        let words = (number % 37) as usize;
        text.extend(format!("{number} {}\n", "word ".repeat(words)).into_bytes());
    }
    let (objects, path, folder) = far(0);
    std::fs::write(folder.path().join("a"), &text).unwrap();
    let store = ObjectStore::new(objects.clone());
    let found = store.stat(&path).unwrap().unwrap();
    let bytes = found.bytes;
    for (memory, splits, requests) in [(64_000_000, 1, 5), (64_000_000, 4, 4), (8_000_000, 2, 12)] {
        store.memory().set_bytes(memory);
        let (gets, _) = objects.gets.counts();
        let mut read = Vec::new();
        for number in 0..splits {
            let range = number * bytes / splits..(number + 1) * bytes / splits;
            let window = range.start.saturating_sub(4096)..range.end + BEHIND_BYTES;
            let file = store.open_found(&path, &found, Caching::Cached).unwrap();
            let file = in_order(file, window);
            let options = LineOptions::default();
            let mut lines =
                LineRecordReader::of_range(file, &path, bytes, range, &options).unwrap();
            while let Some(line) = lines.next_line().unwrap() {
                read.extend_from_slice(line.bytes);
                read.push(b'\n');
            }
        }
        assert!(read == text);
        let (all, peak) = objects.gets.counts();
        assert_eq!(all - gets, requests);
        assert!(peak >= 2);
    }
    std::fs::write(folder.path().join("a"), &text[1..]).unwrap();
    let file = store.open_found(&path, &found, Caching::Cached).unwrap();
    let read = in_order(file, 0..bytes).read_at(&mut [0; 5], 0);
    assert_eq!(read.unwrap_err().kind(), Kind::InputChanged);
}
