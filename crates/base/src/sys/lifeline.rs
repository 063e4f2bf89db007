//! Processes that end with the one that began them, however that ends: also by SIGKILL, which nobody can answer.
//!
//! The signal follows the *thread* that begins the process, not our process as a whole (prctl(2), PR_SET_PDEATHSIG): whoever
//! begins one stays with it until it is over, or is a thread that lives as long as the workers do (`worker/pool.rs`).

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::descriptors::give_back_limit;

/// Makes a command the leader of a process group of its own, which ends with us, and gives it pipes for its streams, and the
/// limit of open files that the user gave us.
pub fn bind(prepared: &mut Command) {
    prepared
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    give_back_limit(prepared);
    kill_with_parent(prepared);
}

/// Has the kernel kill the process when the thread that begins it ends, or is killed.
#[cfg(target_os = "linux")]
fn kill_with_parent(prepared: &mut Command) {
    use std::io;

    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls that are safe there; nothing is allocated (an error made of a
    // number is not).
    unsafe {
        prepared.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // We may have gone before the kernel knew: then there is another parent by now.
            if libc::getppid().cast_unsigned() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

/// Elsewhere a process ends when its standard input does.
#[cfg(not(target_os = "linux"))]
fn kill_with_parent(_prepared: &mut Command) {}
