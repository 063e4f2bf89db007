//! What the standard library lacks of files: renames that refuse or exchange, holes, space, who may read, what is cached.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, IntoRawFd};
pub use std::os::unix::fs::symlink;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat, statvfs};

/// Whether an error says that the system, or the file system, has no such call.
pub fn not_supported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
        || matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP))
}

/// Whether an error says that a file system has no locks: it is mounted without, or no server answers for them.
pub fn has_no_locks(error: &io::Error) -> bool {
    not_supported(error) || error.raw_os_error() == Some(libc::ENOLCK)
}

/// Whether an error says that what was opened is neither a file nor a directory: a link, or what nobody is behind.
pub fn is_special(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ELOOP | libc::ENXIO | libc::ENODEV)
    )
}

/// Fails unless the process may read a file, which is not opened for that.
pub fn check_readable(path: &Path) -> io::Result<()> {
    may(path, Access::READ_OK)
}

/// Fails unless the process may make files in a directory.
pub fn check_writable(directory: &Path) -> io::Result<()> {
    may(directory, Access::WRITE_OK | Access::EXEC_OK)
}

/// Fails unless the process may write to a file.
pub fn check_writable_file(file: &Path) -> io::Result<()> {
    may(file, Access::WRITE_OK)
}

/// Whether no other file can take the name of this one in a directory that may be written: it is a mount point, or neither
/// it nor its sticky directory is ours.
pub fn keeps_its_name(file: &Path) -> bool {
    if linux::is_mount_point(file) {
        return true;
    }
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = std::fs::metadata(parent.unwrap_or(Path::new(".")));
    let (Ok(parent), Ok(file)) = (parent, std::fs::metadata(file)) else {
        return false;
    };
    let (us, sticky) = (super::processes::user(), parent.mode() & 0o1000 != 0);
    sticky && us != 0 && parent.uid() != us && file.uid() != us
}

fn may(path: &Path, what: Access) -> io::Result<()> {
    Ok(accessat(CWD, path, what, AtFlags::EACCESS)?)
}

/// Hands what was written to a file over to whoever keeps it, as closing the file does, and says what became of it: a
/// server may find only then that it has no room. Of a disk's file nothing happens.
pub fn hand_over(file: &File) -> io::Result<()> {
    let again = file.try_clone()?.into_raw_fd();
    // SAFETY: a descriptor of our own, which nothing uses any more.
    match unsafe { libc::close(again) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Bytes that this user can still write below a path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = statvfs(path)?;
    Ok(found.f_bavail * found.f_frsize)
}

/// Renames, and fails where `to` exists.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    linux::rename(from, to, false)
}

/// Exchanges two names at once.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    linux::rename(one, other, true)
}

/// Takes the blocks of a range from a file; they read as zeros, and the length stays.
pub fn punch_hole(file: &File, blocks: &Range<u64>) -> io::Result<()> {
    linux::fallocate(file, blocks, true)
}

/// Gives a file its length, at least, and its blocks.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    match bytes {
        0 => Ok(()),
        _ => linux::fallocate(file, &(0..bytes), false),
    }
}

/// Opens a file past the page cache, where the system has that.
pub fn open_direct(options: &mut OpenOptions, path: &Path) -> Option<File> {
    let direct = options.custom_flags(linux::DIRECT?);
    direct.open(path).ok()
}

/// Opens a file to be read, without waiting for whoever is behind it; `None` of a link, which is not followed.
pub fn open_no_link(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    match options.open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Makes a folder, and those above it, for nobody else to look into.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes one folder for nobody else to look into; it does not exist.
pub fn create_one_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// As `chmod a+x`. What may not be changed may be executable already: starting it shows.
pub fn make_executable(path: &Path) {
    if let Ok(found) = std::fs::metadata(path) {
        let mode = found.permissions().mode();
        if mode & 0o111 != 0o111 {
            let _ = std::fs::set_permissions(path, PermissionsExt::from_mode(mode | 0o111));
        }
    }
}

/// One byte for each page of a window of a file, its lowest bit set where the page is in memory.
pub fn page_states(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut states = vec![0_u8; bytes.div_ceil(super::page_bytes())];
    linux::is_cached(file, offset, bytes, &mut states).then_some(states)
}

/// Calls and flags that only Linux has.
#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::AsRawFd;

    use rustix::fs::{
        FallocateFlags, RenameFlags, StatxAttributes, StatxFlags, fallocate as allocate,
        renameat_with, statx,
    };

    use super::*;

    pub(super) const DIRECT: Option<i32> = Some(libc::O_DIRECT);

    /// Exchanges two names, or fails where `to` exists.
    pub(super) fn rename(from: &Path, to: &Path, exchange: bool) -> io::Result<()> {
        let how = match exchange {
            true => RenameFlags::EXCHANGE,
            false => RenameFlags::NOREPLACE,
        };
        Ok(renameat_with(CWD, from, CWD, to, how)?)
    }

    /// Makes a hole of a range, or gives it its blocks.
    pub(super) fn fallocate(file: &File, range: &Range<u64>, hole: bool) -> io::Result<()> {
        let how = match hole {
            true => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            false => FallocateFlags::empty(),
        };
        Ok(allocate(file, how, range.start, range.end - range.start)?)
    }

    /// What statx(2) says of the root of a mount.
    pub(super) fn is_mount_point(path: &Path) -> bool {
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::empty());
        found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }

    /// Fills `states`, which has a byte for each page of the window.
    pub(super) fn is_cached(
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
        states: &mut [u8],
    ) -> bool {
        let (null, fd, offset) = (
            std::ptr::null_mut(),
            file.as_raw_fd(),
            offset as libc::off_t,
        );
        // SAFETY: a new shared mapping that is never touched, only asked about, and unmapped.
        unsafe {
            let start = libc::mmap(null, bytes, libc::PROT_READ, libc::MAP_SHARED, fd, offset);
            if start == libc::MAP_FAILED {
                return false;
            }
            let told = libc::mincore(start, bytes, states.as_mut_ptr()) == 0;
            libc::munmap(start, bytes);
            told
        }
    }
}

/// Elsewhere the answers of a file system that has none of it.
#[cfg(not(target_os = "linux"))]
mod linux {
    use super::*;

    pub(super) const DIRECT: Option<i32> = None;

    pub(super) fn rename(_from: &Path, _to: &Path, _exchange: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn fallocate(_file: &File, _range: &Range<u64>, _hole: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_mount_point(_path: &Path) -> bool {
        false
    }

    pub(super) fn is_cached(_: BorrowedFd<'_>, _: u64, _: usize, _: &mut [u8]) -> bool {
        false
    }
}
