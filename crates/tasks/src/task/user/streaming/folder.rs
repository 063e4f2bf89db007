//! The working directory of a task's attempt: the job's files as links, its archives as folders of what is in them.
//!
//! ```text
//!   <spill folder>/task-3-0/mapper.py ──▶ where the user has it
//!                          /dict      ──▶ <spill folder>/archives/dict/   unpacked once for the job
//! ```

use std::fs;
use std::path::{Component, Path, PathBuf};

use gristmill_base::error::{Error, Kind, Result};
use gristmill_base::sys::files::{create_private_directory, symlink};

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder, with links of these names in it.
    pub fn make(path: PathBuf, links: &[(PathBuf, PathBuf)]) -> Result<Self> {
        let _ = fs::remove_dir_all(&path); // of an attempt that was killed, if any
        let failed = |path: &Path, error: &std::io::Error| {
            Error::from_io("make a task's working directory", path, error)
        };
        create_private_directory(&path).map_err(|error| failed(&path, &error))?;
        let folder = Folder(path);
        for (name, target) in links {
            let link = folder.0.join(name);
            if let Some(parent) = link.parent().filter(|parent| *parent != folder.0) {
                fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
            }
            match symlink(target, &link) {
                Ok(()) => {}
                // The same file named twice is one file.
                Err(error)
                    if error.kind() == std::io::ErrorKind::AlreadyExists && same(&link, target) => {
                }
                Err(error) => {
                    return Err(failed(&link, &error)
                        .advise("give each file a name of its own, as in -files a/x#x1,b/x#x2"));
                }
            }
        }
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // goes with the job's folder otherwise
    }
}

fn same(link: &Path, target: &Path) -> bool {
    matches!((fs::canonicalize(link), fs::canonicalize(target)), (Ok(a), Ok(b)) if a == b)
}

/// Unpacks a `.zip` or `.jar`, a `.tar`, or a compressed tar file, into a new folder.
pub fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(Kind::BadInput, "unpack an archive", error.to_string())
            .with_path(archive)
            .advise("check that it is a whole .zip, .jar, .tar, .tar.gz or .tgz file")
    };
    create_private_directory(folder)
        .map_err(|error| Error::from_io("unpack an archive", folder, &error))?;
    let file = fs::File::open(archive)
        .map_err(|error| Error::from_io("unpack an archive", archive, &error))?;
    let name = archive.to_string_lossy().to_lowercase();
    if name.ends_with(".zip") || name.ends_with(".jar") {
        let mut zip = zip::ZipArchive::new(file).map_err(|error| failed(&error))?;
        return zip.extract(folder).map_err(|error| failed(&error));
    }
    let unpacked = if name.ends_with(".tgz") || name.ends_with(".tar.gz") {
        tar::Archive::new(flate2::read::MultiGzDecoder::new(file)).unpack(folder)
    } else if name.ends_with(".tar") {
        tar::Archive::new(file).unpack(folder)
    } else {
        // Hadoop leaves a file of another kind in the folder as it is.
        fs::copy(
            archive,
            folder.join(archive.file_name().unwrap_or_default()),
        )
        .map(|_| ())
    };
    unpacked.map_err(|error| failed(&error))
}

/// Whether a link's name stays in the folder.
pub fn is_inside(name: &Path) -> bool {
    !name.as_os_str().is_empty()
        && name
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_made_and_go_with_the_folder() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("script");
        fs::write(&file, "text").unwrap();
        let path = home.path().join("task");
        let links = vec![
            ("a".into(), file.clone()),
            ("sub/b".into(), file.clone()),
            ("a".into(), file.clone()),
        ];
        let folder = Folder::make(path.clone(), &links).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("sub/b")).unwrap(),
            "text"
        );
        drop(folder);
        assert!(!path.exists() && file.exists());
        let other = vec![("a".into(), file), ("a".into(), home.path().to_owned())];
        let error = Folder::make(path, &other).unwrap_err();
        assert!(error.to_string().contains("#x1"), "{error}");
    }

    #[test]
    fn archives_become_folders() {
        let home = tempfile::tempdir().unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o644);
        header.set_cksum();
        builder
            .append_data(&mut header, "in/side", &b"ab"[..])
            .unwrap();
        let tar = home.path().join("a.tar");
        fs::write(&tar, builder.into_inner().unwrap()).unwrap();
        unpack(&tar, &home.path().join("out")).unwrap();
        assert_eq!(fs::read(home.path().join("out/in/side")).unwrap(), b"ab");
        fs::write(home.path().join("b.zip"), "no zip").unwrap();
        let error = unpack(&home.path().join("b.zip"), &home.path().join("out2")).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(is_inside("a/b".as_ref()) && !is_inside("../a".as_ref()));
        assert!(!is_inside("/a".as_ref()) && !is_inside("".as_ref()));
    }
}
