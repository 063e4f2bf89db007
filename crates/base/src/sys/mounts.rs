//! Which kind of file system a file lies in, where that is one that several machines may share, or one in memory.
//!
//! statfs(2) gives a number for each kind, and for all of FUSE one: which of them it is stands in /proc/self/mountinfo. The
//! first is asked of each file that is opened, the second once for a directory.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A mounted file system, as the table of mounts names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its kind: `nfs4`, `fuse.sshfs`.
    pub kind: String,
    /// Its options, with commas between them.
    pub options: String,
}

/// Numbers of the kinds that machines share (linux/magic.h, and what Lustre, GPFS, BeeGFS, PanFS and VirtualBox use), with
/// the name to show where the table of mounts has none.
const SHARED: [(u32, &str); 19] = [
    (0x0000_6969, "nfs"),
    (0x0000_517b, "smbfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb3"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x0102_1997, "9p"),
    (FUSE, "fuse"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0xaad7_aaea, "panfs"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
    (0x7375_7245, "coda"),
    (0x2003_0528, "orangefs"),
    (0x786f_4256, "vboxsf"),
    (0x0027_e0eb, "acfs"),
];

/// Numbers of the kinds that are kept in memory.
const IN_MEMORY: [(u32, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

/// FUSE, and virtiofs.
const FUSE: u32 = 0x6573_5546;

/// File systems of FUSE over a disk of this machine.
const OVER_A_DISK: [&str; 10] = [
    "fuseblk",
    "fuse.fuse-overlayfs",
    "fuse.overlayfs",
    "fuse.ntfs-3g",
    "fuse.exfat",
    "fuse.ext4",
    "fuse.gocryptfs",
    "fuse.encfs",
    "fuse.bindfs",
    "fuse.mergerfs",
];

/// Whether a file lies in a file system of a kind that machines share. Of FUSE all count: the question is asked for each
/// file, and has to be a cheap one.
pub fn may_be_shared(file: BorrowedFd<'_>) -> bool {
    kind_number(file).is_some_and(|number| named(number).is_some())
}

/// The file system of a directory or file that is there, if machines share it.
pub fn shared(path: &Path) -> Option<Mount> {
    use std::os::fd::AsFd;
    let file = File::open(path).ok()?;
    let name = named(kind_number(file.as_fd())?)?;
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let listed = find(&table, file.metadata().ok()?.dev());
    let mount = listed.unwrap_or_else(|| Mount {
        kind: name.to_owned(),
        options: String::new(),
    });
    (!OVER_A_DISK.contains(&mount.kind.as_str())).then_some(mount)
}

/// The kind of file system that a directory or file lies in, if that is kept in memory.
pub fn in_memory(path: &Path) -> Option<&'static str> {
    use std::os::fd::AsFd;
    let number = kind_number(File::open(path).ok()?.as_fd())?;
    let mut all = IN_MEMORY.iter();
    all.find(|(known, _)| *known == number)
        .map(|(_, name)| *name)
}

fn named(number: u32) -> Option<&'static str> {
    let mut all = SHARED.iter();
    all.find(|(known, _)| *known == number)
        .map(|(_, name)| *name)
}

#[cfg(target_os = "linux")]
fn kind_number(file: BorrowedFd<'_>) -> Option<u32> {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "the kernel's numbers have 32 bits, whatever structures make of them"
    )]
    rustix::fs::fstatfs(file)
        .ok()
        .map(|found| found.f_type as u32)
}

/// Elsewhere the kinds have no numbers.
#[cfg(not(target_os = "linux"))]
fn kind_number(_file: BorrowedFd<'_>) -> Option<u32> {
    None
}

/// The mount of a device in the text of /proc/self/mountinfo (proc(5)):
/// `36 35 98:0 /root /point rw,noatime master:1 - KIND SOURCE OPTIONS`.
fn find(table: &str, device: u64) -> Option<Mount> {
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let of_device = |line: &&str| line.split(' ').nth(2) == Some(&number);
    let (own, rest) = table.lines().rfind(of_device)?.split_once(" - ")?;
    let mut rest = rest.split(' ');
    let kind = rest.next()?.to_owned();
    let options = [own.split(' ').nth(5), rest.nth(1)];
    Some(Mount {
        kind,
        options: options.into_iter().flatten().collect::<Vec<_>>().join(","),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
40 27 0:50 / /mnt/my\\040disk rw,noatime shared:7 master:1 - fuse.sshfs me@host:/data rw,user_id=0
41 27 0:51 /a /mnt/b ro - nfs4 server:/a rw,vers=4.2,local_lock=none
";

    #[test]
    fn a_mount_is_found_by_its_device() {
        let found = |minor| find(TABLE, libc::makedev(0, minor));
        let mount = found(50).unwrap();
        assert_eq!(
            (&*mount.kind, &*mount.options),
            ("fuse.sshfs", "rw,noatime,rw,user_id=0")
        );
        assert_eq!(found(51).unwrap().options, "ro,rw,vers=4.2,local_lock=none");
        assert_eq!(found(52), None);
        assert_eq!(find("a line\n1 2 0:5 / /\n", libc::makedev(0, 5)), None);
    }

    #[test]
    fn the_table_of_this_system_names_each_mount() {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let device = std::fs::metadata("/proc").unwrap().dev();
        assert_eq!(find(&table, device).unwrap().kind, "proc");
        assert_eq!(in_memory("/proc".as_ref()), None);
        if let Some(shared) = std::fs::metadata("/dev/shm")
            .ok()
            .and_then(|found| find(&table, found.dev()))
        {
            assert_eq!(
                in_memory("/dev/shm".as_ref()).is_some(),
                shared.kind == "tmpfs"
            );
        }
        // A file system of the kernel's own is nobody else's.
        let file = File::open("/proc").unwrap();
        assert!(!may_be_shared(file.as_fd()));
        assert_eq!(shared("/proc".as_ref()), None);
    }
}
