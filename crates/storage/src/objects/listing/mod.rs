//! One directory of an object store, listed several pages at once, in the order of the keys.
//!
//! ```text
//!   page 1, page 2                                    one request after another: a short listing has no other
//!   round:   │ next page │   │ behind a guess │   │ behind a guess │     all at once
//!   joined:  ├───────────────────────────────┤   ├────────────────┤     names seen twice are dropped
//!             ──▶ handed on, in order          gap   kept             ──▶ the next round begins in the gap
//! ```
//!
//! A page says where the next one begins, so pages follow each other. To ask for several at once takes names that lie
//! about a page apart, which are guessed from those seen so far (`guess.rs`); no name need be there. The rules that must
//! hold: a wrong guess costs a request and changes nothing of what is found; guesses are at most half as many as pages
//! were found, and end where too many are wrong; some pages are kept, not the directory. A store whose pages are not in
//! the order of the keys, or do not begin behind the name that was given, is asked for one page after another.
//!
//! A delimiter would not cut the input of a job: its files lie right below one directory.
//!
//! Decision: docs/decisions/listing-guesses.md.

mod guess;
#[cfg(test)]
mod tests;

use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use self::guess::{Letters, Stride};
use super::{Objects, Page};
use crate::io::at_once::{SHORT_AT_ONCE, at_once};
use crate::{FileKind, ListingEntry};
use gristmill_base::error::{Kind, Result};

/// Pages of one directory that are asked for at once. Each takes 1.5 MB while it is read: a plan of a million files has 10 MB left of 200.
const AT_ONCE: usize = 5;

/// Pages that are kept at most before there are no more guesses: what lies before them is found first.
const KEPT_MAX: usize = 2 * AT_ONCE;

/// Wrong guesses that cost a listing nothing yet, and their share of all pages beyond that.
const WRONG_MAX: usize = 4;
const WRONG_SHARE: usize = 3;

/// What the listings of one store have in common.
#[derive(Debug, Default)]
pub struct Guessing {
    /// Guesses that are under way.
    under_way: AtomicUsize,
    /// The store does not list from a name on.
    is_useless: AtomicBool,
}

impl Guessing {
    /// Takes up to `wanted` of the requests that may be under way.
    fn take(&self, wanted: usize) -> Guesses<'_> {
        let mut taken = 0;
        if wanted > 0 && !self.is_useless.load(Ordering::Relaxed) {
            let take = |now: usize| {
                taken = wanted.min(SHORT_AT_ONCE.saturating_sub(now));
                Some(now + taken)
            };
            let _ = self
                .under_way
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        }
        Guesses { of: self, taken }
    }

    /// A guess changes nothing: where the store has no answer, this listing makes no more of them; where it never has
    /// one, neither do others.
    fn asked(&self, answer: Result<Option<Page>>) -> Result<Option<Page>> {
        match answer {
            Err(error) if error.kind() == Kind::Cancelled => Err(error),
            Err(error) if error.retryable() => Ok(None),
            Ok(Some(page)) => Ok(Some(page)),
            Ok(None) | Err(_) => {
                self.is_useless.store(true, Ordering::Relaxed);
                Ok(None)
            }
        }
    }
}

/// Guesses that may be made, until dropped.
struct Guesses<'g> {
    of: &'g Guessing,
    taken: usize,
}

impl Drop for Guesses<'_> {
    fn drop(&mut self) {
        self.of.under_way.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

/// Hands on what lies right below `directory`, in the order of the keys.
///
/// # Errors
/// Those of the requests, and of `each`.
pub fn list_each(
    objects: &dyn Objects,
    guessing: &Guessing,
    directory: &Path,
    each: &mut dyn FnMut(ListingEntry) -> Result<()>,
) -> Result<()> {
    let first = objects.list(directory, None)?;
    if first.next.is_none() {
        return first.found.into_iter().try_for_each(each);
    }
    let mut walk = Walk::begin(directory, first);
    loop {
        walk.hand_on(each)?;
        if walk.is_over() {
            return Ok(());
        }
        let guesses = guessing.take(walk.wanted());
        let asked = walk.asked(guesses.taken);
        let pages = at_once(&asked, asked.len(), |ask| match ask {
            Ask::Next { token, .. } => objects.list(directory, Some(token)).map(Some),
            Ask::Behind(name) => guessing.asked(objects.list_after(directory, name)),
        })?;
        drop(guesses);
        walk.take(asked, pages);
    }
}

/// A request for a page.
#[derive(Debug)]
enum Ask {
    /// The one that follows a stretch, by its number.
    Next { stretch: usize, token: String },
    /// The one behind a guess.
    Behind(String),
}

/// A thing that is listed, and its name in the order of the keys.
#[derive(Debug)]
struct ListedName {
    name: String,
    listed: ListingEntry,
}

/// Names that are known without a gap.
#[derive(Debug)]
struct Stretch {
    /// Those behind this one ...
    after: String,
    /// ... up to this one are in `found`, or were handed on.
    last: String,
    found: Vec<ListedName>,
    /// Where the next page begins; nothing where the directory ends.
    next: Option<String>,
}

impl Stretch {
    fn push(&mut self, page: Vec<ListedName>, next: Option<String>) {
        if let Some(last) = page.last() {
            self.last.clone_from(&last.name);
        }
        self.found.extend(page);
        self.next = next;
    }

    /// Whether what begins behind a name leaves no gap.
    fn reaches(&self, name: &str) -> bool {
        self.next.is_none() || *self.last >= *name
    }

    /// Takes over what a stretch that it reaches has more.
    fn join(&mut self, other: Stretch) {
        if self.next.is_none() || (other.last <= self.last && other.next.is_some()) {
            return;
        }
        let known = other.found.partition_point(|entry| entry.name <= self.last);
        let more = other.found.into_iter().skip(known).collect();
        self.push(more, other.next);
    }
}

/// A listing under way.
#[derive(Debug)]
struct Walk<'d> {
    directory: &'d Path,
    /// In order; the first one is handed on as it grows, others lie behind a gap.
    stretches: Vec<Stretch>,
    letters: Letters,
    stride: Option<Stride>,
    /// Where the first stretch ended when this round began.
    from: String,
    /// What a page holds.
    page_entries: usize,
    handed_on: usize,
    requests: usize,
    /// One page is asked for after another.
    is_plain: bool,
}

impl<'d> Walk<'d> {
    fn begin(directory: &'d Path, page: Page) -> Self {
        let found = entries(directory, page.found);
        let mut walk = Walk {
            directory,
            page_entries: found.len().max(1),
            is_plain: !is_in_order("", &found),
            stretches: Vec::new(),
            letters: Letters::default(),
            stride: None,
            from: String::new(),
            handed_on: 0,
            requests: 1,
        };
        let mut front = Stretch {
            after: String::new(),
            last: String::new(),
            found: Vec::new(),
            next: None,
        };
        front.push(found, page.next);
        walk.stretches.push(front);
        walk
    }

    fn is_over(&self) -> bool {
        self.stretches
            .first()
            .is_none_or(|front| front.next.is_none())
    }

    /// Hands on what is known from the beginning on, and learns from it where names lie.
    fn hand_on(&mut self, each: &mut dyn FnMut(ListingEntry) -> Result<()>) -> Result<()> {
        let Some(front) = self.stretches.first_mut() else {
            return Ok(());
        };
        let found = mem::take(&mut front.found);
        self.handed_on += found.len();
        if front.next.is_some() && !self.is_plain && !found.is_empty() {
            found
                .iter()
                .for_each(|entry| self.letters.learn(&entry.name));
            self.letters.compare();
            let from = mem::replace(&mut self.from, front.last.clone());
            self.stride = (!from.is_empty()).then_some(Stride {
                from,
                to: front.last.clone(),
                entries: found.len(),
            });
        }
        found.into_iter().try_for_each(|entry| each(entry.listed))
    }

    /// Entries that wait for those before them.
    fn kept(&self) -> usize {
        let behind = self.stretches.iter().skip(1);
        behind.map(|stretch| stretch.found.len()).sum()
    }

    /// Guesses that are worth their requests.
    fn wanted(&self) -> usize {
        let pages = (self.handed_on + self.kept()) / self.page_entries;
        let wrong = self.requests.saturating_sub(pages);
        let are_kept = self.kept() >= KEPT_MAX * self.page_entries;
        let left = (WRONG_MAX + pages / WRONG_SHARE).saturating_sub(wrong);
        if self.is_plain {
            return 0;
        }
        // With many kept, what lies before them is all that is wanted; that is where the guesses are.
        let most = if are_kept { AT_ONCE / 2 } else { AT_ONCE };
        (pages / 2).min(most - 1).min(2 * left)
    }

    /// The requests of a round, with so many guesses at most: what follows each stretch, and guesses in the first gap and
    /// behind all that is known.
    fn asked(&self, guesses: usize) -> Vec<Ask> {
        let are_kept = self.kept() >= KEPT_MAX * self.page_entries;
        let followed = if are_kept { 1 } else { AT_ONCE };
        let stretches = self.stretches.iter().enumerate().take(followed);
        let next = stretches.filter_map(|(stretch, known)| {
            let token = known.next.clone()?;
            Some(Ask::Next { stretch, token })
        });
        let mut asked: Vec<_> = next.collect();
        let Some(stride) = &self.stride else {
            return asked;
        };
        let gap_ends = self.stretches.get(1).map(|behind| &*behind.after);
        let ends = self
            .stretches
            .last()
            .filter(|last| !are_kept && last.next.is_some());
        let is_unknown = |name: &String| {
            gap_ends.is_none_or(|end| &**name < end) || ends.is_some_and(|end| *name > end.last)
        };
        let most = guesses.min(AT_ONCE.saturating_sub(asked.len()));
        let names = stride.guesses(&self.letters, self.page_entries, guesses + 2 * KEPT_MAX);
        asked.extend(
            names
                .into_iter()
                .filter(is_unknown)
                .take(most)
                .map(Ask::Behind),
        );
        asked
    }

    /// Takes the pages of a round.
    fn take(&mut self, asked: Vec<Ask>, pages: Vec<Option<Page>>) {
        self.requests += asked.len();
        let mut guessed = Vec::new();
        for (ask, page) in asked.into_iter().zip(pages) {
            let Some(page) = page else {
                self.is_plain = true;
                continue;
            };
            let (mut found, next) = (entries(self.directory, page.found), page.next);
            self.page_entries = self.page_entries.max(found.len());
            match ask {
                Ask::Next { stretch, .. } => {
                    let Some(known) = self.stretches.get_mut(stretch) else {
                        continue;
                    };
                    self.is_plain |= !is_in_order(&known.last, &found);
                    known.push(found, next);
                }
                Ask::Behind(name) => {
                    // The guess lies in a directory: what comes before knows it.
                    let around = found
                        .iter()
                        .take_while(|entry| name.starts_with(&entry.name));
                    found.drain(..around.count());
                    self.is_plain |= !is_in_order(&name, &found);
                    let mut behind = Stretch {
                        last: name.clone(),
                        after: name,
                        found: Vec::new(),
                        next: None,
                    };
                    behind.push(found, next);
                    guessed.push(behind);
                }
            }
        }
        if self.is_plain {
            self.stretches.truncate(1); // what stands in it is right whatever the order
            return;
        }
        self.stretches.extend(guessed);
        self.join();
    }

    /// Puts stretches together where they touch.
    fn join(&mut self) {
        let mut stretches = mem::take(&mut self.stretches);
        stretches.sort_by(|a, b| a.after.cmp(&b.after));
        for stretch in stretches {
            match self.stretches.last_mut() {
                Some(before) if before.reaches(&stretch.after) => before.join(stretch),
                _ => self.stretches.push(stretch),
            }
        }
    }
}

/// What is listed, by its name below the directory.
fn entries(directory: &Path, found: Vec<ListingEntry>) -> Vec<ListedName> {
    let above = directory.as_os_str().len();
    let entry = |listed: ListingEntry| {
        let path = listed.path.as_os_str().as_bytes();
        let name = String::from_utf8_lossy(path.get(above..).unwrap_or_default());
        let mut name = name.trim_start_matches('/').to_owned();
        if listed
            .stat
            .is_some_and(|stat| stat.kind == FileKind::Directory)
        {
            name.push('/');
        }
        ListedName { name, listed }
    };
    found.into_iter().map(entry).collect()
}

/// Whether a page has the names behind one, in order.
fn is_in_order(after: &str, found: &[ListedName]) -> bool {
    found.first().is_none_or(|entry| *entry.name > *after)
        && found.is_sorted_by(|a, b| a.name < b.name)
}
