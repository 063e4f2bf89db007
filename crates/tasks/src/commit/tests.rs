//! Output directories, from their beginning to their name, and what dead jobs leave of them.

use std::path::{Path, PathBuf};

use super::*;
use gristmill_base::error::Kind;
use gristmill_storage::faulty::{Fault, FaultPlan, Faulty};
use gristmill_storage::local::Local;
use gristmill_storage::{Caching, LOCK, LocalDisk, OutputStore as _, Store as _};

const KEEP: CommitOptions = CommitOptions {
    overwrite: false,
    sync: false,
};
const OVERWRITE: CommitOptions = CommitOptions {
    overwrite: true,
    sync: true,
};

/// What is in a folder, hidden names too, in order.
fn names(folder: &Path) -> Vec<String> {
    let paths = Local.list(folder).unwrap();
    paths
        .iter()
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

fn new_job(job: &str) -> Ownership {
    Ownership::of_new_job(job)
}

/// Begins an output without files that are known.
fn begin<'a>(
    store: &'a dyn LocalDisk,
    out: &Path,
    owner: &Ownership,
    bytes: u64,
    options: CommitOptions,
) -> Result<DirectoryStaging<'a>> {
    DirectoryStaging::begin(store, out, owner, (&[], bytes), options)
}

fn put(staging: &DirectoryStaging<'_>, bytes: &[u8]) {
    let path = staging.folder().staged().join("part-r-00000");
    Local
        .create(&path, bytes.len() as u64, Caching::Direct)
        .unwrap()
        .write_at(bytes, 0)
        .unwrap();
}

fn publish(staging: DirectoryStaging<'_>, part: &str) {
    let made = OutputManifest {
        names: &[part.into()],
        uploads: &[],
        success: b"{}",
    };
    Box::new(staging).publish(&made).unwrap();
}

#[test]
fn nothing_stays_of_a_job_that_fails_and_all_of_one_that_ends() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let staging = begin(&Local, &out, &new_job("j1"), 1, KEEP).unwrap();
    put(&staging, b"x");
    drop(staging);
    assert!(names(folder.path()).is_empty());
    for (job, options, bytes) in [("j2", KEEP, b"old"), ("j3", OVERWRITE, b"new")] {
        let staging = begin(&Local, &out, &new_job(job), 1, options).unwrap();
        put(&staging, bytes);
        publish(staging, "part-r-00000");
        assert_eq!(names(folder.path()), ["out"]);
        assert_eq!(names(&out), ["_SUCCESS", "part-r-00000"]);
        assert_eq!(std::fs::read(out.join("part-r-00000")).unwrap(), bytes);
    }
    let error = begin(&Local, &out, &new_job("j4"), 1, KEEP).unwrap_err();
    assert_eq!(error.kind(), Kind::Exists);
    std::fs::write(out.join("diary.txt"), "mine").unwrap();
    let error = begin(&Local, &out, &new_job("j5"), 1, OVERWRITE).unwrap_err();
    assert!(error.to_string().contains("diary.txt"), "{error}");
}

#[test]
fn dead_folders_go_and_living_ones_stay() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let dead = folder.path().join(".out.gristmill-dead");
    std::fs::create_dir_all(dead.join("output")).unwrap();
    std::fs::write(dead.join(LOCK), "").unwrap();
    let staging = begin(&Local, &out, &new_job("j1"), 1, KEEP).unwrap();
    assert_eq!(names(folder.path()), [".out.gristmill-j1"]);
    let error = begin(&Local, &out, &new_job("j2"), 1, KEEP).unwrap_err();
    assert!(
        error.to_string().contains("another job is writing"),
        "{error}"
    );
    put(&staging, b"still here");
}

#[test]
fn an_old_output_that_a_dead_job_holds_is_not_swept_away() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let dead = folder.path().join(".out.gristmill-dead");
    std::fs::create_dir_all(dead.join(OLD)).unwrap();
    std::fs::write(dead.join(LOCK), "").unwrap();
    let error = begin(&Local, &out, &new_job("j1"), 1, KEEP).unwrap_err();
    assert!(
        error.to_string().contains("holds the old output"),
        "{error}"
    );
    std::fs::create_dir_all(&out).unwrap();
    std::fs::write(out.join(SUCCESS), "{}").unwrap();
    begin(&Local, &out, &new_job("j2"), 1, OVERWRITE).unwrap();
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn an_output_beyond_the_free_space_is_refused_with_the_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let error = begin(
        &Local,
        &folder.path().join("o"),
        &new_job("j"),
        1 << 60,
        KEEP,
    )
    .unwrap_err();
    assert_eq!(error.kind(), Kind::DiskFull);
    assert!(error.to_string().contains("1152921.50 TB"), "{error}");
    assert!(names(folder.path()).is_empty());
}

fn parts() -> Vec<PathBuf> {
    vec!["part-0".into(), "part-1".into()]
}

/// What a job that was killed while it wrote leaves.
fn leave(folder: &Path, files: &[&str]) {
    std::fs::create_dir_all(folder.join(OUTPUT)).unwrap();
    std::fs::write(folder.join(LOCK), "").unwrap();
    for file in files {
        std::fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        std::fs::write(folder.join(file), *file).unwrap();
    }
}

#[test]
fn a_dead_jobs_folder_is_taken_over_and_only_then_cleared_away() {
    let root = tempfile::tempdir().unwrap();
    let (out, left) = (
        root.path().join("out"),
        root.path().join(".out.gristmill-j"),
    );
    leave(&left, &["output/part-0", "output/_SUCCESS", "output/stray"]);
    let other = root.path().join(".out.gristmill-other");
    leave(&other, &[]);
    for take in [false, true] {
        let taken = Ownership::of_resumed_job("j");
        let names_of = parts();
        let adopt = || DirectoryStaging::begin(&Local, &out, &taken, (&names_of, 1), KEEP);
        let staging = adopt().unwrap();
        assert_eq!(names(&staging.folder().staged()), ["part-0"]);
        assert!(!other.exists(), "of another job that is dead");
        assert_eq!(adopt().unwrap_err().kind(), Kind::Exists);
        if take {
            taken.take_over();
        }
        drop(staging);
        assert_eq!(left.exists(), !take);
    }
    // Where there is nothing, it begins anew.
    let resumed = Ownership::of_resumed_job("j");
    let staging = DirectoryStaging::begin(&Local, &out, &resumed, (&parts(), 1), KEEP).unwrap();
    let part = Local.create(
        &staging.folder().staged().join("part-0"),
        1,
        Caching::Cached,
    );
    part.unwrap().write_at(b"x", 0).unwrap();
    publish(staging, "part-0");
    assert_eq!(names(root.path()), ["out"]);
}

/// A kill between any two renames of a publication file by file.
#[test]
fn a_publication_that_was_broken_off_is_undone() {
    let moves = [
        ("out/_SUCCESS", "old/_SUCCESS"),
        ("out/part-0", "old/part-0"),
        ("output/part-0", "out/part-0"),
        ("output/part-1", "out/part-1"),
    ];
    for killed_after in 0..=moves.len() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        let left = out.join(".gristmill-j");
        leave(
            &left,
            &["output/part-0", "output/part-1", "output/_SUCCESS"],
        );
        std::fs::create_dir(left.join(OLD)).unwrap();
        std::fs::write(out.join("_SUCCESS"), "old").unwrap();
        std::fs::write(out.join("part-0"), "old").unwrap();
        let place = |name: &str| match name.strip_prefix("out/") {
            Some(name) => out.join(name),
            None => left.join(name),
        };
        for (from, to) in &moves[..killed_after] {
            std::fs::rename(place(from), place(to)).unwrap();
        }
        let taken = Ownership::of_resumed_job("j");
        let staging = DirectoryStaging::begin(&Local, &out, &taken, (&parts(), 1), OVERWRITE);
        assert_eq!(
            names(&staging.unwrap().folder().staged()),
            ["part-0", "part-1"]
        );
        assert_eq!(std::fs::read(out.join("part-0")).unwrap(), b"old");
        assert_eq!(names(&out), [".gristmill-j", "_SUCCESS", "part-0"]);
    }
}

#[test]
fn links_are_refused_and_what_was_published_is_cleared_up() {
    let root = tempfile::tempdir().unwrap();
    let (out, left) = (
        root.path().join("out"),
        root.path().join(".out.gristmill-j"),
    );
    leave(&left, &[]);
    let precious = root.path().join("precious");
    std::fs::write(&precious, "mine").unwrap();
    std::os::unix::fs::symlink(&precious, left.join("output/part-0")).unwrap();
    let taken = Ownership::of_resumed_job("j");
    let refused = DirectoryStaging::begin(&Local, &out, &taken, (&parts(), 1), KEEP);
    assert_eq!(refused.unwrap_err().kind(), Kind::BadInput);
    assert!(clear_published(&Local, &out, &[], "j").is_err());
    std::fs::remove_file(left.join("output/part-0")).unwrap();
    let spill = root.path().join(".gristmill-spill-j");
    leave(&spill, &["run-1"]);
    clear_published(&Local, &out, &[root.path().to_owned()], "j").unwrap();
    assert_eq!(names(root.path()), ["precious"]);
}

/// Whether a file of these bytes is anywhere in a folder.
fn is_in(folder: &Path, bytes: &[u8]) -> bool {
    let paths = Local.list(folder).unwrap();
    paths.iter().any(|path| match path.is_dir() {
        true => is_in(path, bytes),
        false => std::fs::read(path).unwrap() == bytes,
    })
}

/// Among them: a disk that does not make the new name durable, so that the old one may come back.
#[test]
fn whatever_fails_an_old_output_is_kept() {
    for call in 0.. {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("part-0"), "old").unwrap();
        std::fs::write(out.join(SUCCESS), "{}").unwrap();
        let plan = FaultPlan {
            fault: Fault::Code(5),
            from: call,
            to: call + 1,
        };
        let store = Faulty::new(Local, plan);
        let write = || {
            let staging = begin(&store, &out, &new_job("j"), 1, OVERWRITE)?;
            std::fs::write(staging.folder().staged().join("part-0"), "new").unwrap();
            let made = OutputManifest {
                names: &["part-0".into()],
                uploads: &[],
                success: b"{}",
            };
            Box::new(staging).publish(&made)
        };
        let published = write();
        if store.calls() <= call {
            published.unwrap();
            assert!(call > 10 && !is_in(root.path(), b"old"));
            return;
        }
        assert!(published.is_ok() || is_in(root.path(), b"old"), "{call}");
    }
}

#[test]
fn places_for_runs_are_taken_over() {
    let root = tempfile::tempdir().unwrap();
    let given = [root.path().to_owned()];
    leave(&root.path().join(".gristmill-spill-j"), &["run-1"]);
    let taken = Ownership::of_resumed_job("j");
    drop(SpillDirs::begin(&Local, &given, &taken).unwrap());
    assert!(root.path().join(".gristmill-spill-j/run-1").exists());
    let places = SpillDirs::begin(&Local, &given, &taken).unwrap();
    assert!(SpillDirs::begin(&Local, &given, &taken).is_err());
    taken.take_over();
    drop(places);
    assert!(names(root.path()).is_empty());
}
