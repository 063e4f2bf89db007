//! What every store and every output does, tried on all of them; and what only object stores do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gristmill_engine::Kind;
use gristmill_engine::commit::{
    Committer, OutputManifest, Ownership, UploadCommitter, check_output, send_file,
};
use gristmill_engine::storage::local::Local;
use gristmill_engine::storage::location::Location;
use gristmill_engine::storage::memory::Memory;
use gristmill_engine::storage::objects::directory::DirectoryStore;
use gristmill_engine::storage::objects::faults::{self, Faults, Unreliable};
use gristmill_engine::storage::objects::retry::Retried;
use gristmill_engine::storage::objects::{ObjectStore, Objects, Upload};
use gristmill_engine::storage::stores::Stores;
use gristmill_engine::storage::{Caching, Caps, FileKind, ListingEntry, LocalDisk, OutputStore};
use tempfile::TempDir;

/// A store, the location of an empty directory in it, and what completes its uploads.
struct Case {
    name: &'static str,
    store: Box<dyn OutputStore>,
    root: PathBuf,
    objects: Option<Arc<dyn Objects>>,
    _folder: TempDir,
}

const FAULTY: &str = "refused=0.2,lost=0.1,throttled=0.01,seed=5";

fn cases() -> Vec<Case> {
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let memory = Memory::with_room_for(1 << 30);
    memory.create_directory("/w".as_ref()).unwrap();
    let local = folder();
    let objects = |name, objects: Arc<dyn Objects>| {
        let folder = folder();
        Case {
            name,
            store: Box::new(ObjectStore::new(objects.clone())),
            root: format!("objects://{}/w", folder.path().display()).into(),
            objects: Some(objects),
            _folder: folder,
        }
    };
    vec![
        Case {
            name: "memory",
            store: Box::new(memory),
            root: "/w".into(),
            objects: None,
            _folder: folder(),
        },
        Case {
            name: "local",
            store: Box::new(Local),
            root: local.path().to_owned(),
            objects: None,
            _folder: local,
        },
        objects("objects", Arc::new(DirectoryStore)),
        objects(
            "faulty",
            Arc::new(Retried::new(
                Unreliable::new(DirectoryStore, Faults::parse(FAULTY).unwrap()),
                Arc::default(),
            )),
        ),
    ]
}

impl Case {
    /// Writes a file in two pieces, and has it published.
    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.root.join(name);
        let file = self
            .store
            .create(&path, bytes.len() as u64, Caching::Cached)
            .unwrap();
        let (first, second) = bytes.split_at(bytes.len() / 3);
        file.write_at(first, 0).unwrap();
        file.write_at(second, first.len() as u64).unwrap();
        let upload = file.finish().unwrap();
        assert_eq!(
            upload.is_some(),
            self.store.caps(&path) == Caps::Whole,
            "{}",
            self.name
        );
        if let (Some(upload), Some(objects)) = (upload, &self.objects) {
            assert_eq!(upload.crc(), crc32fast::hash(bytes));
            objects.complete(&upload).unwrap();
        }
        path
    }

    fn read(&self, path: &Path, offset: u64, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        let file = self.store.open(path, Caching::Cached).unwrap();
        let read = file.read_at(&mut found, offset).unwrap();
        found.truncate(read);
        found
    }
}

#[test]
fn what_is_written_is_read_in_any_range() {
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|i| (i / 7) as u8).collect();
    for case in cases() {
        for length in [0, 1, 4096, 8 << 20, bytes.len()] {
            let path = case.put(&format!("f{length}"), &bytes[..length]);
            let stat = case.store.stat(&path).unwrap().unwrap();
            assert_eq!(
                (stat.kind, stat.bytes),
                (FileKind::File, length as u64),
                "{}",
                case.name
            );
            for (offset, wanted) in [(0, 10), (3, 5000), (length / 2, length), (length, 5)] {
                let end = length.min(offset + wanted);
                let found = case.read(&path, offset as u64, wanted);
                assert!(
                    found == bytes[offset.min(end)..end],
                    "{} {length} {offset}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn names_are_listed_in_order_and_what_is_not_there_is_said_so() {
    for case in cases() {
        let missing = case.root.join("missing");
        assert!(
            case.store.stat(&missing).unwrap().is_none(),
            "{}",
            case.name
        );
        let error = case.store.open(&missing, Caching::Cached).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound, "{}", case.name);
        assert!(
            case.store.check_readable(&missing).is_err(),
            "{}",
            case.name
        );
        let paths: Vec<PathBuf> = ["b", "a", "a.b", "_SUCCESS"]
            .map(|name| case.put(name, b"x"))
            .into();
        let sorted: BTreeSet<_> = paths.into_iter().map(PathBuf::into_os_string).collect();
        let found = case.store.list(&case.root).unwrap().into_iter();
        let found: Vec<_> = found.map(PathBuf::into_os_string).collect();
        assert_eq!(
            found,
            sorted.into_iter().collect::<Vec<_>>(),
            "{}",
            case.name
        );
        let kind = case.store.stat(&case.root).unwrap().unwrap().kind;
        assert_eq!(kind, FileKind::Directory, "{}", case.name);
        let mut listed = 0;
        let mut as_stat = |found: ListingEntry| {
            listed += 1;
            let said = found.stat.is_none() || found.stat == case.store.stat(&found.path)?;
            assert!(said, "{}", case.name);
            Ok(())
        };
        case.store.list_each(&case.root, &mut as_stat).unwrap();
        assert_eq!(listed, 4, "{}", case.name);
    }
}

/// A file that was written again has another version, also where it is as long.
#[test]
fn a_file_that_changes_has_another_version() {
    for case in cases().into_iter().filter(|case| case.name != "memory") {
        let stat = |path: &Path| case.store.stat(path).unwrap().unwrap();
        let before = stat(&case.put("a", b"one"));
        std::thread::sleep(Duration::from_millis(20));
        let path = case.root.join("a");
        assert_eq!(stat(&path), before, "{}", case.name);
        assert_ne!(stat(&case.put("a", b"two")), before, "{}", case.name);
        assert_eq!(case.read(&path, 0, 9), b"two", "{}", case.name);
    }
}

fn object_cases() -> impl Iterator<Item = (PathBuf, Arc<dyn Objects>, TempDir)> {
    let of_objects = |case: Case| Some((case.root, case.objects?, case._folder));
    cases().into_iter().filter_map(of_objects)
}

fn upload(objects: &Arc<dyn Objects>, path: &Path, bytes: &[u8]) -> Upload {
    let store = ObjectStore::new(objects.clone());
    let file = store.create(path, 0, Caching::Cached).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.finish().unwrap().unwrap()
}

#[test]
fn an_upload_is_seen_when_it_is_completed_and_not_before() {
    for (root, objects, _folder) in object_cases() {
        let path = root.join("deep/a");
        let listed = || objects.list(&root, None).unwrap().found;
        let made = upload(&objects, &path, &vec![7; 9 << 20]);
        assert_eq!(made.parts.len(), 2);
        assert!(objects.head(&path).unwrap().is_none());
        assert!(listed().is_empty());
        assert!(
            objects
                .uploads(&root)
                .unwrap()
                .contains(&(path.clone(), made.id.clone()))
        );
        let kept = objects.parts(&path, &made.id).unwrap();
        assert!(made.is_kept(&kept.unwrap()));
        objects.complete(&made).unwrap();
        assert!(made.made(&objects.head(&path).unwrap().unwrap()));
        let names: Vec<PathBuf> = listed().into_iter().map(|found| found.path).collect();
        assert_eq!(names, [root.join("deep")]);
        objects.delete(&path).unwrap();
        objects.delete(&path).unwrap();
        assert!(listed().is_empty());
        let wrong = upload(&objects, &path, b"abc");
        let mut parts = wrong.clone();
        parts.parts[0].etag.push('0');
        assert!(objects.complete(&parts).is_err());
        objects.abort(&path, &wrong.id).unwrap();
        objects.abort(&path, &wrong.id).unwrap();
        assert_eq!(objects.parts(&path, &wrong.id).unwrap(), None);
    }
}

/// A file that is dropped before its end leaves no upload; nor does one that cannot be sent.
#[test]
fn a_broken_upload_ends() {
    for (root, objects, _folder) in object_cases() {
        let store = ObjectStore::new(objects.clone());
        for _ in 0..5 {
            let file = store.create(&root.join("a"), 0, Caching::Cached).unwrap();
            file.write_at(&vec![1; 9 << 20], 0).unwrap();
            assert!(file.write_at(b"x", 0).is_err(), "only at its end");
        }
        // Where the reply to its beginning was lost, nobody knows an upload's name: those are for the committer.
        for (path, id) in objects.uploads(&root).unwrap() {
            assert_eq!(objects.parts(&path, &id).unwrap(), Some(Vec::new()));
        }
    }
}

#[test]
fn a_reply_to_complete_that_is_lost_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let root = PathBuf::from(format!("objects://{}", folder.path().display()));
    for seed in 0..20 {
        let faults = Faults {
            lost: 0.3,
            seed,
            ..Faults::default()
        };
        let objects: Arc<dyn Objects> = Arc::new(Retried::new(
            Unreliable::new(DirectoryStore, faults),
            Arc::default(),
        ));
        let path = root.join(format!("a{seed}"));
        let made = upload(&objects, &path, b"abc");
        objects.complete(&made).unwrap();
        objects.complete(&made).unwrap(); // by a job that was resumed
        assert!(made.made(&objects.head(&path).unwrap().unwrap()));
        let other = Upload {
            id: "none".into(),
            ..upload(&objects, &path, b"other")
        };
        assert_eq!(objects.complete(&other).unwrap_err().kind(), Kind::NotFound);
    }
}

/// Made by two tasks, of which one tried twice; published, replaced, and given up.
#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one story of one output, told in order"
)]
fn a_committer_publishes_what_is_named_and_leaves_no_upload() {
    let folder = tempfile::tempdir().unwrap();
    let spill = [folder.path().join("spill")];
    std::fs::create_dir(&spill[0]).unwrap();
    let stores = Stores::with_variables(Arc::new(Local), |name| {
        (name == faults::VARIABLE).then(|| format!("{FAULTY},late_ms=600000"))
    });
    let target = Location::from(&*format!("objects://{}/out", folder.path().display()));
    let objects = stores.publisher(&target).unwrap();
    let begin = |overwrite| {
        let owner = Ownership::of_new_job("j");
        UploadCommitter::begin(&stores, (&target, false), &spill, &owner, overwrite)
    };
    let send = |name: &str, bytes: &[u8]| {
        let file = stores
            .create(&target.join(name), 0, Caching::Direct)
            .unwrap();
        file.write_at(bytes, 0).unwrap();
        file.finish().unwrap().unwrap()
    };
    let there = || {
        let mut names = std::fs::read_dir(folder.path().join("out")).map_or(Vec::new(), |names| {
            names
                .map(|name| name.unwrap().file_name().into_string().unwrap())
                .collect()
        });
        names.retain(|name| name != ".objects");
        names.sort();
        names
    };
    for (round, names) in [
        (0, vec!["part-0", "part-1", "part-2"]),
        (1, vec!["part-0", "part-1"]),
    ] {
        let committer = Box::new(begin(round > 0).unwrap());
        let other = begin(true).unwrap_err();
        assert!(
            other.to_string().contains("another job is writing"),
            "{other}"
        );
        send("part-0", b"of an attempt that was lost");
        let mut uploads = vec![send("part-0", b"zero"), send("part-1", b"one")];
        for name in names.iter().skip(2) {
            let made = committer.folder().path().join(name);
            std::fs::write(&made, name).unwrap();
            uploads.push(
                send_file(
                    &stores,
                    (&Location::from(made), &target.join(name)),
                    None,
                    &|| Ok(()),
                )
                .unwrap(),
            );
        }
        assert!(round > 0 || there().is_empty());
        let names: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        let made = OutputManifest {
            names: &names,
            uploads: &uploads,
            success: br#"{"parts": [{"name": "part-2"}]}"#,
        };
        committer.publish(&made).unwrap();
        let wanted = [
            &["_SUCCESS"],
            &["part-0", "part-1", "part-2"][..names.len()],
        ]
        .concat();
        assert_eq!(
            there(),
            wanted,
            "listings are late: the old names are those of its proof"
        );
        assert_eq!(objects.uploads(target.as_typed()).unwrap(), []);
        assert_eq!(
            check_output(&stores, &target, false).unwrap_err().kind(),
            Kind::Exists
        );
    }
    // A job that was killed between two completions goes on, although a part is there.
    let killed = begin(true).unwrap();
    let uploads = [send("part-0", b"zero"), send("part-1", b"one")];
    objects.delete(target.join("_SUCCESS").as_typed()).unwrap();
    objects.complete(&uploads[0]).unwrap();
    let folder_of_killed = killed.folder().path().to_owned();
    let kept = folder.path().join("kept");
    std::fs::rename(&folder_of_killed, &kept).unwrap(); // as a kill leaves it
    let _killed = std::mem::ManuallyDrop::new(killed);
    std::fs::rename(&kept, &folder_of_killed).unwrap();
    std::fs::remove_file(folder_of_killed.join("lock")).unwrap(); // held by this process still
    let owner = Ownership::of_resumed_job("j");
    let adopted = UploadCommitter::begin(&stores, (&target, false), &spill, &owner, false);
    owner.take_over();
    let names = ["part-0".into(), "part-1".into()];
    let made = OutputManifest {
        names: &names,
        uploads: &uploads,
        success: b"{}",
    };
    Box::new(adopted.unwrap()).publish(&made).unwrap();
    assert_eq!(there(), ["_SUCCESS", "part-0", "part-1"]);
    let given_up = begin(true).unwrap();
    send("part-0", b"never seen");
    drop(given_up);
    assert_eq!(objects.uploads(target.as_typed()).unwrap(), []);
    assert_eq!(there().len(), 3);
    // One upload that the store has lost: nothing is published, and what was completed goes.
    let committer = Box::new(begin(true).unwrap());
    let uploads = [send("part-0", b"new"), send("part-1", b"new")];
    objects
        .abort(uploads[1].path.as_typed(), &uploads[1].id)
        .unwrap();
    let names = ["part-0".into(), "part-1".into()];
    let made = OutputManifest {
        names: &names,
        uploads: &uploads,
        success: b"{}",
    };
    assert!(committer.publish(&made).is_err());
    assert!(!there().contains(&"_SUCCESS".to_owned()) && !there().contains(&"part-0".to_owned()));
    assert_eq!(std::fs::read_dir(&spill[0]).unwrap().count(), 0);
}

/// Of an output that is one object: what a job that was killed has completed is published, what the store has lost is not.
#[test]
fn one_object_is_published_once_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let spill = [folder.path().to_owned()];
    let stores = Stores::with_variables(Arc::new(Local), |name| {
        (name == faults::VARIABLE).then(|| FAULTY.to_owned())
    });
    let target = Location::from(&*format!("objects://{}/out", folder.path().display()));
    let objects = stores.publisher(&target).unwrap();
    for (bytes, is_lost) in [(b"first", false), (b"other", true)] {
        let owner = Ownership::of_new_job("j");
        let committer = UploadCommitter::begin(&stores, (&target, true), &spill, &owner, true);
        let committer = Box::new(committer.unwrap());
        let file = stores.create(&target, 0, Caching::Direct).unwrap();
        file.write_at(bytes, 0).unwrap();
        let upload = file.finish().unwrap().unwrap();
        if is_lost {
            objects.abort(target.as_typed(), &upload.id).unwrap();
        } else {
            objects.complete(&upload).unwrap();
        }
        let made = OutputManifest {
            names: &[],
            uploads: &[upload],
            success: b"",
        };
        let published = committer.publish(&made).map_err(|error| error.kind());
        assert_eq!(published, if is_lost { Err(Kind::Proof) } else { Ok(()) });
        assert_eq!(std::fs::read(folder.path().join("out")).unwrap(), b"first");
    }
}
