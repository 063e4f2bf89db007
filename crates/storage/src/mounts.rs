//! Mounts that several machines share: what may not be assumed of them, in one place.
//!
//! | on a disk of this machine | on a shared mount |
//! |---|---|
//! | whole blocks are read and written past the cache | all goes through the cache: its client keeps that whole, and no other way |
//! | input is mapped | input is read: a file that is gone is an error to be told (ESTALE), not a signal |
//! | an open file stays what it is | it is opened again by its name, and must be the same file |
//! | a write that succeeded is in the file | a server may say later that it has no room: it is asked before the file is closed |
//! | a lock tells whether a job lives | the lock's file names its process, too (`lock.rs`) |
//! | what is removed is gone | open files stay under other names, until they are closed (`removal.rs`) |
//!
//! Ranges of one file are written by tasks of one machine only, so that no page is written by two clients (`shared.rs`). What a reader
//! elsewhere sees, and when, is the mount's own: docs/guide/places.md.
//!
//! Decision: docs/decisions/shared-mounts.md.

use std::fmt;
use std::path::Path;

use super::location::existing_parent;
use gristmill_base::sys::mounts::{self, Mount};

/// A mount that several machines share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedMount {
    mount: Mount,
}

impl SharedMount {
    /// The mount that a path lies in, or would lie in, if it is such a one.
    ///
    /// ```
    /// use gristmill_storage::mounts::SharedMount;
    /// assert_eq!(SharedMount::of("/proc".as_ref()), None);
    /// ```
    pub fn of(path: &Path) -> Option<Self> {
        mounts::shared(existing_parent(path)).map(|mount| SharedMount { mount })
    }

    /// Whether a lock that was taken on one machine is seen on all others that have the same mount.
    pub(super) fn locks_reach_all(&self) -> bool {
        let has = |option: &str| self.mount.options.split(',').any(|given| given == option);
        match self.mount.kind.as_str() {
            "nfs" | "nfs4" => !["nolock", "local_lock=flock", "local_lock=all"]
                .into_iter()
                .any(has),
            "cifs" | "smb3" => !has("nobrl"),
            "lustre" => has("flock"),
            "ceph" | "gpfs" | "gfs2" | "ocfs2" | "fuse.glusterfs" | "fuse.ceph-fuse" => true,
            _ => false,
        }
    }
}

/// Its kind: `nfs4`, `fuse.sshfs`.
impl fmt::Display for SharedMount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mount.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_reach_all_only_where_the_mount_says_so() {
        let reach = |kind: &str, options: &str| {
            let (kind, options) = (kind.to_owned(), options.to_owned());
            SharedMount {
                mount: Mount { kind, options },
            }
            .locks_reach_all()
        };
        assert!(reach("nfs4", "rw,vers=4.2,local_lock=none"));
        assert!(!reach("nfs", "rw,vers=3,nolock") && !reach("nfs4", "rw,local_lock=all"));
        assert!(reach("lustre", "rw,flock") && !reach("lustre", "rw,localflock"));
        assert!(reach("cifs", "rw") && !reach("cifs", "rw,nobrl"));
        assert!(!reach("fuse.sshfs", "rw") && !reach("9p", "rw") && !reach("virtiofs", "rw"));
    }
}
