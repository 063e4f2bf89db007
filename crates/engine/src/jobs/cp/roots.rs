//! What each source is, and where it goes.
//!
//! ```text
//!   dir          ──▶ DST/dir          dir/  dir/.  .  ──▶ DST
//!   file         ──▶ DST/file, where DST is a directory, ends with a slash, or there are several sources; else DST
//! ```
//!
//! The rules that must hold before a byte is copied: no two sources make one file; no source lies in its target, nor the target
//! in its source.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::listing::{CopyRoot, Listed, SourceListing};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_storage::FileKind;
use gristmill_storage::location::Location;
use gristmill_storage::stores::Stores;
use gristmill_tasks::split::pattern;
use gristmill_tasks::task::CopySource;

const OPERATION: &str = "copy files";

/// What the sources are, in their order.
pub(super) fn roots(
    stores: &Stores,
    inputs: &[Location],
    output: &Location,
) -> Result<Vec<CopyRoot>> {
    stores.check_writable(output)?;
    let mut sources = Vec::new();
    for input in inputs {
        let found = pattern::named(stores, &plain(input))?;
        let contents = means_contents(input);
        sources.extend(found.into_iter().map(|found| (found, contents)));
    }
    let target = plain(output);
    let there = stores.stat(&target)?.map(|stat| stat.kind);
    let is_directory =
        there == Some(FileKind::Directory) || sources.len() > 1 || means_contents(output);
    let mut roots = Vec::new();
    for (from, contents) in sources {
        let stat = stores.stat(&from)?;
        let stat = stat.ok_or_else(|| {
            Error::new(Kind::NotFound, OPERATION, "no such file or directory")
                .with_path(from.as_typed())
                .advise("check the name")
        })?;
        let named = || -> Result<Location> { Ok(target.join(name_of(&from)?)) };
        let to = match stat.kind {
            FileKind::Directory if contents => target.clone(),
            FileKind::Directory => named()?,
            _ if is_directory => named()?,
            _ => target.clone(),
        };
        roots.push(CopyRoot { from, to, stat });
    }
    if there.is_some_and(|kind| kind != FileKind::Directory)
        && (roots.len() > 1 || roots.iter().any(CopyRoot::is_directory))
    {
        return Err(Error::new(
            Kind::BadOption,
            OPERATION,
            "the target is a file, and should be a directory",
        )
        .with_path(target.as_typed())
        .advise("name a directory"));
    }
    Ok(roots)
}

/// The last name of a source.
fn name_of(from: &Location) -> Result<OsString> {
    let name = from.name().map(OsStr::to_owned);
    let is_of_web = matches!(from.scheme(), Some("http" | "https"));
    let name = name.map(
        |name| match name.as_bytes().split(|byte| *byte == b'?').next() {
            Some(path) if is_of_web => OsString::from_vec(path.to_vec()), // without its query
            _ => name,
        },
    );
    name.ok_or_else(|| {
        Error::new(
            Kind::BadOption,
            OPERATION,
            "the source has no name of its own",
        )
        .with_path(from.as_typed())
        .advise("add a slash to copy the files of the directory")
    })
}

/// Whether a name means what is in a directory, rather than the directory.
pub(super) fn means_contents(named: &Location) -> bool {
    let bytes = named.as_typed().as_os_str().as_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.") || bytes == b"." || named.name().is_none()
}

/// The same location without slashes and dots at its end.
pub(super) fn plain(named: &Location) -> Location {
    match named.local() {
        Some(path) => path.components().collect::<PathBuf>().into(),
        None => {
            let bytes = named.as_typed().as_os_str().as_bytes();
            let end = bytes.iter().rposition(|byte| *byte != b'/');
            let bytes = bytes.get(..=end.unwrap_or_default()).unwrap_or_default();
            match named.name() {
                Some(_) => PathBuf::from(OsString::from_vec(bytes.to_vec())).into(),
                None => named.clone(),
            }
        }
    }
}

/// Fails where sources and target lie in each other, or two sources would make one file.
pub(super) fn check_apart(
    stores: &Stores,
    roots: &[CopyRoot],
    listing: &SourceListing<'_>,
) -> Result<()> {
    for root in roots {
        let is_inside = match root.is_directory() {
            true => root.to.lies_in(&root.from) || root.from.lies_in(&root.to),
            false => root.to.lies_in(&root.from),
        };
        if is_inside {
            let what = "source and target are the same, or one lies in the other";
            return Err(Error::new(Kind::BadOption, OPERATION, what)
                .with("source", &root.from)
                .with("target", &root.to)
                .advise("name another target"));
        }
    }
    for (at, root) in roots.iter().enumerate() {
        for other in roots.get(at + 1..).unwrap_or_default() {
            check_pair(stores, root, other, listing)?;
        }
    }
    Ok(())
}

/// Fails where two sources would make one file: what goes into a directory of the other one is looked for there.
fn check_pair(
    stores: &Stores,
    one: &CopyRoot,
    other: &CopyRoot,
    listing: &SourceListing<'_>,
) -> Result<()> {
    if other.to.as_typed().starts_with(one.to.as_typed()) {
        check_merged(stores, one, other, listing)
    } else if one.to.as_typed().starts_with(other.to.as_typed()) {
        check_merged(stores, other, one, listing)
    } else {
        Ok(())
    }
}

fn check_merged(
    stores: &Stores,
    outer: &CopyRoot,
    inner: &CopyRoot,
    listing: &SourceListing<'_>,
) -> Result<()> {
    if !outer.is_directory() {
        return Err(collide(&outer.from, &inner.from, &inner.to));
    }
    let check = |from: &Location, to: &Location, is_directory: bool| {
        let below = to.as_typed().strip_prefix(outer.to.as_typed());
        let below = below.unwrap_or(Path::new(""));
        if below.as_os_str().is_empty() && !is_directory {
            return Err(collide(&outer.from, from, to));
        }
        let there = outer.from.join(below);
        if below.as_os_str().is_empty() || listing.selection.excludes(&there, below) {
            return Ok(());
        }
        match stores.stat(&there)?.map(|stat| stat.kind) {
            None => Ok(()),
            Some(FileKind::Directory) if is_directory => Ok(()),
            Some(_) => Err(collide(&there, from, to)),
        }
    };
    listing.root(inner, &mut |listed| match listed {
        Listed::Item(item) => {
            let is_directory = matches!(item.what, CopySource::Directory);
            check(&item.from, &item.to, is_directory)
        }
        Listed::Failed(_) | Listed::SkippedLink => Ok(()), // said when it is copied
    })
}

fn collide(one: &Location, other: &Location, to: &Location) -> Error {
    Error::new(
        Kind::BadOption,
        OPERATION,
        "two sources would make one file",
    )
    .with_path(to.as_typed())
    .with("one source", one)
    .with("the other", other)
    .advise("copy them to different directories")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_or_a_dot_at_the_end_means_what_is_in_it() {
        for (text, contents, wanted) in [
            ("a", false, "a"),
            ("a/", true, "a"),
            ("a/.", true, "a"),
            (".", true, "."),
            ("..", true, ".."),
            ("/", true, "/"),
            ("s3://b/k//", true, "s3://b/k"),
            ("s3://b/k", false, "s3://b/k"),
            ("s3://b", true, "s3://b"),
        ] {
            let named = Location::from(text);
            assert_eq!(means_contents(&named), contents, "{text}");
            assert_eq!(plain(&named).to_string(), wanted, "{text}");
        }
    }
}
