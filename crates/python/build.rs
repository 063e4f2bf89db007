//! What `gristmill --version --json` says of the build: the commit and the profile.
//!
//! ```text
//!   GRISTMILL_COMMIT, if it is set    (packagers, who have no repository)
//!   else `git rev-parse HEAD`, with `+changes` where the sources of the engine differ from it
//!   else nothing: a source distribution has no repository, and git may be missing
//! ```
//!
//! And how the library is linked: what is equal is kept once, where rustc's own linker can do so. Decision:
//! docs/decisions/build-profile.md.
//!
//! A build without the variable depends on `logs/HEAD` of the repository: cargo asks again after each commit.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to a build script by the environment"
)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GRISTMILL_COMMIT");
    let commit = std::env::var("GRISTMILL_COMMIT")
        .ok()
        .or_else(commit_of_repository)
        .unwrap_or_default();
    println!("cargo::rustc-env=GRISTMILL_COMMIT={}", commit.trim());
    for (variable, from) in [
        ("GRISTMILL_PROFILE", "PROFILE"),
        ("GRISTMILL_TARGET", "TARGET"),
    ] {
        let value = std::env::var(from).unwrap_or_default();
        println!("cargo::rustc-env={variable}={value}");
    }
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") && links_by_lld() {
        let once = "--icf=all,--ignore-data-address-equality";
        println!("cargo::rustc-link-arg-cdylib=-Wl,{once}");
    }
}

/// Whether rustc links by the lld that it came with, as it does here since 1.90; one of a distribution has none.
fn links_by_lld() -> bool {
    let is_here = std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu");
    let Ok(version) = rustc_version::version() else {
        return false;
    };
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let libraries = Command::new(rustc)
        .args(["--print", "target-libdir"])
        .output();
    let has_lld = libraries.is_ok_and(|printed| {
        let folder = String::from_utf8_lossy(&printed.stdout).trim().to_owned();
        Path::new(&folder)
            .with_file_name("bin/gcc-ld/ld.lld")
            .exists()
    });
    is_here && version >= rustc_version::Version::new(1, 90, 0) && has_lld
}

/// The commit of the repository that these sources stand in.
fn commit_of_repository() -> Option<String> {
    // A source distribution that lies in another project's repository must not take that one's commit.
    let prefix = git(&["rev-parse", "--show-prefix"])?;
    if prefix.trim_end_matches('/') != "crates/python" {
        return None;
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&[
        "status",
        "--porcelain",
        "--",
        "../../crates",
        "../../Cargo.lock",
    ])?;
    let suffix = if changed.is_empty() { "" } else { "+changes" };
    Some(format!("{commit}{suffix}"))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| printed.trim().to_owned())
}
