//! Listings against the naive one, which asks for one page after another: the same names in the same order, in few rounds.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use proptest::prelude::*;

use super::super::{DIRECTORY, KeptPart, Object, Part, Upload, UploadPart};
use super::*;
use crate::version::ReadVersion;
use gristmill_base::error::Error;

const DIRECTORY_NAME: &str = "s3://bucket/in";

/// How a store answers that is asked for what is behind a name.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manners {
    /// With what is behind it.
    Good,
    /// It knows no such request.
    Refusing,
    /// It begins at the beginning all the same.
    Ignoring,
    /// It calls such a request wrong.
    Failing,
    /// It has too much to do.
    Busy,
}

/// A directory of names; those that end with a slash are directories.
#[derive(Debug)]
struct Named {
    names: Vec<String>,
    page: usize,
    manners: Manners,
    requests: Mutex<usize>,
}

impl Named {
    fn new(names: impl IntoIterator<Item = String>, page: usize, manners: Manners) -> Self {
        let names: BTreeSet<String> = names.into_iter().collect();
        Named {
            names: names.into_iter().collect(),
            page,
            manners,
            requests: Mutex::new(0),
        }
    }

    fn from(&self, first: usize) -> Page {
        *self.requests.lock().unwrap() += 1;
        let end = (first + self.page).min(self.names.len());
        let listed = |name: &String| ListingEntry {
            path: Path::new(DIRECTORY_NAME).join(name.trim_end_matches('/')),
            stat: name.ends_with('/').then_some(DIRECTORY),
        };
        Page {
            found: self.names[first..end].iter().map(listed).collect(),
            next: (end < self.names.len()).then(|| end.to_string()),
        }
    }

    fn pages(&self) -> usize {
        self.names.len().div_ceil(self.page).max(1)
    }

    /// One page after another.
    fn naive(&self) -> Vec<PathBuf> {
        let (mut found, mut from) = (Vec::new(), Some("0".to_owned()));
        while let Some(token) = from {
            let page = self.from(token.parse().unwrap());
            found.extend(page.found.into_iter().map(|listed| listed.path));
            from = page.next;
        }
        *self.requests.lock().unwrap() = 0;
        found
    }

    fn listed(&self) -> (Vec<PathBuf>, usize) {
        let mut found = Vec::new();
        let mut each = |listed: ListingEntry| {
            found.push(listed.path);
            Ok(())
        };
        let guessing = Guessing::default();
        list_each(self, &guessing, DIRECTORY_NAME.as_ref(), &mut each).unwrap();
        assert_eq!(guessing.under_way.load(Ordering::Relaxed), 0);
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        (found, requests)
    }

    /// The same, where nobody else lists, in rounds: how many there are, and the most entries that waited at once.
    fn rounds(&self) -> (usize, usize) {
        let directory = Path::new(DIRECTORY_NAME);
        let mut walk = Walk::begin(directory, self.list(directory, None).unwrap());
        let (mut rounds, mut kept) = (1, 0);
        while !walk.is_over() {
            walk.hand_on(&mut |_| Ok(())).unwrap();
            let asked = walk.asked(walk.wanted());
            assert!(asked.len() <= AT_ONCE);
            let pages = asked.iter().map(|ask| match ask {
                Ask::Next { token, .. } => self.list(directory, Some(token)).map(Some).unwrap(),
                Ask::Behind(name) => self.list_after(directory, name).unwrap(),
            });
            let pages = pages.collect();
            walk.take(asked, pages);
            rounds += 1;
            kept = kept.max(walk.kept());
        }
        *self.requests.lock().unwrap() = 0;
        (rounds, kept)
    }
}

impl Objects for Named {
    fn list(&self, _directory: &Path, from: Option<&str>) -> Result<Page> {
        Ok(self.from(from.map_or(0, |from| from.parse().unwrap())))
    }

    fn list_after(&self, _directory: &Path, name: &str) -> Result<Option<Page>> {
        match self.manners {
            Manners::Refusing => Ok(None),
            Manners::Ignoring => Ok(Some(self.from(0))),
            Manners::Failing => Err(Error::new(Kind::Io, "list a directory", "not implemented")),
            Manners::Busy => {
                Err(
                    Error::new(Kind::Io, "list a directory", "the store answered 503")
                        .retryable_error(),
                )
            }
            Manners::Good => {
                // A directory has names below it, which come behind the guess.
                let behind = |known: &String| {
                    **known > *name || (known.ends_with('/') && name.starts_with(&**known))
                };
                let first = self.names.iter().position(behind);
                Ok(Some(self.from(first.unwrap_or(self.names.len()))))
            }
        }
    }

    fn head(&self, _path: &Path) -> Result<Option<Object>> {
        unreachable!("listings ask for pages alone")
    }
    fn get(&self, _: &Path, _: &ReadVersion, _: &mut [u8], _: u64) -> Result<usize> {
        unreachable!("listings ask for pages alone")
    }
    fn delete(&self, _path: &Path) -> Result<()> {
        unreachable!("listings ask for pages alone")
    }
    fn begin(&self, _path: &Path) -> Result<String> {
        unreachable!("listings ask for pages alone")
    }
    fn put_part(&self, _: &Path, _: &str, _: u32, _: &Part) -> Result<UploadPart> {
        unreachable!("listings ask for pages alone")
    }
    fn parts(&self, _: &Path, _: &str) -> Result<Option<Vec<KeptPart>>> {
        unreachable!("listings ask for pages alone")
    }
    fn complete(&self, _upload: &Upload) -> Result<()> {
        unreachable!("listings ask for pages alone")
    }
    fn abort(&self, _path: &Path, _id: &str) -> Result<()> {
        unreachable!("listings ask for pages alone")
    }
    fn uploads(&self, _path: &Path) -> Result<Vec<(PathBuf, String)>> {
        unreachable!("listings ask for pages alone")
    }
}

fn mixed(number: u64) -> u64 {
    super::super::retry::mixed(number)
}

/// Names as programs make them, and how many rounds a hundred pages of them may take.
fn families(count: u64) -> Vec<(&'static str, Vec<String>, usize)> {
    let of = |name: &dyn Fn(u64) -> String| (0..count).map(name).collect::<Vec<_>>();
    vec![
        ("counted", of(&|n| format!("part-{n:05}")), 35),
        (
            "counted twice",
            of(&|n| format!("part-{:06}-{:05}.tbl", n / 1000, n % 1000)),
            35,
        ),
        (
            "spark",
            of(&|n| format!("part-{n:05}-3f0c9a-c000.snappy.parquet")),
            35,
        ),
        ("hashes", of(&|n| format!("{:016x}.json", mixed(n))), 35),
        (
            "times",
            of(&|n| {
                let (minutes, seconds) = (n / 60, n % 60);
                let (hours, days) = (minutes / 60, minutes / 1440);
                format!(
                    "2026-{:02}-{:02}T{:02}:{:02}:{seconds:02}.log",
                    days / 28 + 1,
                    days % 28 + 1,
                    hours % 24,
                    minutes % 60
                )
            }),
            45,
        ),
        ("not padded", of(&|n| format!("file{n}.txt")), 60),
        (
            "directories",
            of(&|n| format!("day={:05}{}", n, if n % 3 == 0 { "/" } else { "" })),
            35,
        ),
    ]
}

#[test]
fn long_listings_take_few_rounds_and_few_requests_more() {
    for (family, names, rounds_max) in families(100_000) {
        let named = Named::new(names, 1000, Manners::Good);
        let wanted = named.naive();
        let (found, requests) = named.listed();
        assert!(found == wanted, "{family}");
        let (rounds, kept) = named.rounds();
        assert!(rounds <= rounds_max, "{family}: {rounds} rounds");
        assert!(requests <= 155, "{family}: {requests} requests");
        assert!(
            kept <= (KEPT_MAX + AT_ONCE) * named.page,
            "{family}: {kept}"
        );
    }
}

#[test]
fn short_listings_take_as_many_requests_as_they_have_pages() {
    for count in [0, 1, 99, 100, 101, 199, 200] {
        for (family, names, _) in families(count) {
            let named = Named::new(names, 100, Manners::Good);
            let wanted = named.naive();
            assert_eq!(named.listed(), (wanted, named.pages()), "{family}");
        }
    }
}

#[test]
fn a_store_that_lists_from_no_name_is_asked_for_page_after_page() {
    for manners in [
        Manners::Refusing,
        Manners::Ignoring,
        Manners::Failing,
        Manners::Busy,
    ] {
        for (family, names, _) in families(3_000) {
            let named = Named::new(names, 100, manners);
            let (wanted, pages) = (named.naive(), named.pages());
            let (found, requests) = named.listed();
            assert!(found == wanted, "{family}");
            assert!(requests <= pages + 2, "{family}: {requests}");
        }
    }
}

/// A store that has no order of keys lists all the same.
#[test]
fn pages_in_any_order() {
    let mut named = Named::new([], 10, Manners::Good);
    named.names = (0..200).map(|n| format!("{:x}", mixed(n))).collect();
    let wanted = named.naive();
    assert_eq!(named.listed(), (wanted, named.pages()));
}

proptest! {
    /// Whatever the names are.
    #[test]
    fn any_names(
        names in proptest::collection::vec("[ab0-9é]{1,3}[-/.]?[a-z0-9]{0,5}/?", 0..600),
        page in 1_usize..20,
    ) {
        // What is below a directory is no name of this one.
        let short = |name: String| match name.split_once('/') {
            Some((first, _)) => format!("{first}/"),
            None => name,
        };
        let named = Named::new(names.into_iter().map(short), page, Manners::Good);
        let wanted = named.naive();
        let (found, requests) = named.listed();
        prop_assert_eq!(found, wanted);
        prop_assert!(requests <= named.pages() * 2 + 8);
    }
}
