//! Sockets that a fork inherits and must not use: those that a runtime of its parent drives.
//!
//! ```text
//!   parent   runtime ─▶ epoll ─▶ sockets, and a mark among them       the list is in /proc/self/fdinfo
//!   child    the same epoll, the same sockets: what it did to them it would do to the parent's
//!            cut_off(mark): each of these descriptors is nothing that can be written, from here on
//! ```
//!
//! Code that holds on to such a socket, in a cache that nobody else can clear, finds that it is broken when it writes, and
//! what it takes back from epoll is not the parent's. The numbers stay taken.

use std::fs::{self, File};
use std::io::{self, Error};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// What a link to an epoll descriptor says.
const EPOLL: &str = "anon_inode:[eventpoll]";

/// In a child: makes all sockets nothing that are waited for where `mark` is, and what waits for them. Fails where that
/// cannot be found out, or is not there.
pub fn cut_off(mark: RawFd) -> io::Result<()> {
    let marked = (mark, fs::metadata(open_file(mark))?.ino());
    let nothing = File::open("/dev/null")?;
    let mut found = false;
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A descriptor of the directory itself is gone by now.
        if !fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == EPOLL) {
            continue;
        }
        let waited = waited_for(&fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?);
        if !waited.contains(&marked) {
            continue;
        }
        found = true;
        for (socket, inode) in waited {
            // What the parent has opened since is listed, too; here its number may be another file's.
            let here = fs::metadata(open_file(socket));
            if here.is_ok_and(|here| here.ino() == inode && here.file_type().is_socket()) {
                replace(socket, &nothing)?;
            }
        }
        replace(number, &nothing)?;
    }
    match found {
        true => Ok(()),
        false => Err(Error::other("no epoll has the mark")),
    }
}

fn open_file(descriptor: RawFd) -> String {
    format!("/proc/self/fd/{descriptor}")
}

/// The descriptors that an epoll waits for, and their inodes: `tfd: 5 events: 1d data: f pos:0 ino:61af sdev:7`.
fn waited_for(info: &str) -> Vec<(RawFd, u64)> {
    let lines = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    let parsed = lines.filter_map(|line| {
        let number = line.split_whitespace().next()?.parse().ok()?;
        let (_, inode) = line.split_once("ino:")?;
        let inode = u64::from_str_radix(inode.split_whitespace().next()?, 16).ok()?;
        Some((number, inode))
    });
    parsed.collect()
}

fn replace(descriptor: RawFd, by: &File) -> io::Result<()> {
    // SAFETY: both are open, and no memory is involved. Who holds `descriptor` holds a file still.
    match unsafe { libc::dup2(by.as_raw_fd(), descriptor) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_epoll_waits_for_is_read() {
        let info = "pos:\t0\nflags:\t02\ntfd:        5 events:       1d data: ff  pos:0 ino:61af sdev:7\n\
                    tfd:       12 events: 80000019 data:  1  pos:0 ino:1a sdev:8\n";
        assert_eq!(waited_for(info), [(5, 0x61af), (12, 0x1a)]);
        assert!(waited_for("tfd: x\ntfd: 5").is_empty());
    }

    #[test]
    fn a_mark_that_is_nowhere_is_an_error() {
        let file = File::open("/dev/null").unwrap();
        assert!(cut_off(file.as_raw_fd()).is_err());
    }
}
