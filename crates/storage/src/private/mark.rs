//! The mark of a user: what tells the folders of his jobs from those of others where a server gives all of them one owner
//! (`root_squash`, `all_squash`, the account of an sshfs mount).
//!
//! ```text
//!   HOME/folders  a random number, for this user alone ──▶ mark: SHA-256 of it and of the folder's name, in the folder's lock
//! ```
//!
//! Decision: docs/decisions/private-folders.md.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::chance::by_chance;
use super::file;
use gristmill_base::error::{Kind, Result};

static HOME: OnceLock<PathBuf> = OnceLock::new();

const FILE: &str = "folders";

/// A file that another job has just begun is shorter.
const NUMBER_BYTES: usize = 32;

/// Says where this user's programs keep what is theirs, before the first job begins. Without it no folder has a mark, and none is
/// known by one.
///
/// ```
/// gristmill_storage::private::mark::keep_in("/home/me/.local/share/gristmill".as_ref());
/// ```
pub fn keep_in(home: &Path) {
    let _ = HOME.set(home.to_owned());
}

/// The mark that this user's folder of this name has.
pub(crate) fn of(folder: &OsStr) -> Option<String> {
    let number = number(HOME.get()?).ok()?;
    (number.len() == NUMBER_BYTES).then(|| of_number(&number, folder))
}

fn of_number(number: &[u8], folder: &OsStr) -> String {
    let digest = Sha256::new()
        .chain_update(number)
        .chain_update(folder.as_encoded_bytes())
        .finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// This user's number, which is made where there is none.
fn number(home: &Path) -> Result<Vec<u8>> {
    let path = home.join(FILE);
    match file::read(&path) {
        Err(error) if error.kind() == Kind::NotFound => {}
        found => return found,
    }
    file::create_directory(home)?;
    let new = [(); 4].map(|()| by_chance().to_le_bytes()).concat();
    match file::create(&path, &new) {
        Err(error) if error.kind() == Kind::Exists => file::read(&path), // another job was faster
        made => made.map(|()| new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_that_of_one_user_and_one_folder() {
        let homes = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let [one, two] = homes.each_ref().map(|home| number(home.path()).unwrap());
        assert_eq!(number(homes[0].path()).unwrap(), one, "it is kept");
        let marks = [
            of_number(&one, "a".as_ref()),
            of_number(&one, "b".as_ref()),
            of_number(&two, "a".as_ref()),
        ];
        assert!(marks[0] != marks[1] && marks[0] != marks[2]);
    }
}
