//! The groups of a partition: each key once, with its values or with what an aggregate makes of them.
//!
//! ```text
//!   feed   a 1 │ a 2 │ b 7 │ c 1        next_group() a, next_pair() 1, next_pair() 2, next_group() b, ...
//! ```
//!
//! The rule that must hold: every pair of the feed is in exactly one group, also where a caller leaves values of a
//! group unread.

use std::ops::Range;

use super::feed::MergedPairs;
use gristmill_base::aggregate::{Aggregate, AggregateState};
use gristmill_base::error::{Error, JobOption, Kind, Result, show_bytes};
use gristmill_base::value::order::key_of;
use gristmill_base::value::{display, skip};

/// A result may take so much memory however little a worker has.
const ROOM_LEAST: usize = 1 << 20;

/// A longer key is cut in an error.
const SHOWN_CHARS: usize = 80;

/// What the value of a pair begins with that is no written state, which begins with another byte: its position follows, then the
/// value to be added.
pub const VALUE_MARK: u8 = u8::MAX;

/// What a pair's key holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyForm {
    /// The key is followed by what orders its values.
    pub ordered: bool,
    /// The key is ranked (`value/order.rs`).
    pub ranked: bool,
}

/// Goes through the groups of a feed, in order.
///
/// ```
/// use std::sync::Arc;
/// use gristmill_tasks::merge::groups::{KeyForm, MergedGroups};
/// use gristmill_tasks::spill::collect::{CollectPlan, PairCollector};
/// use gristmill_storage::{LocalDisk, memory::Memory};
/// use gristmill_tasks::task::{MergeRun, UserTaskKind, UserAttemptSpec, feed_of};
/// let store = Arc::new(Memory::with_room_for(1 << 20));
/// store.create_directory("/runs".as_ref())?;
/// let plan = CollectPlan {
///     partitions: 1,
///     chunk_bytes: 1 << 16,
///     buffer_bytes: 1 << 16,
///     job_id: "a-job".into(),
///     places: vec!["/runs".into()],
///     compression: Default::default(),
/// };
/// let mut pairs = PairCollector::new(store.clone(), plan, "0-0".into(), Default::default())?;
/// for (key, value) in [(b"\x02b\0", b"7"), (b"\x02a\0", b"1"), (b"\x02a\0", b"2")] {
///     pairs.append(0, key, b"", value, &|_| Ok(()))?;
/// }
/// let (runs, _) = pairs.finish(&|_| Ok(()))?;
/// let runs = Arc::new(runs.into_iter().map(MergeRun::from).collect());
/// # let spec = |work| UserAttemptSpec {
/// #     job_id: "a-job".into(), task: 0, attempt: 0, partitions: 1, places: vec![], chunk_bytes: 0, buffer_bytes: 0,
/// #     compression: Default::default(), ahead_bytes: 0, output: "/out".into(), work,
/// # };
/// let reduce = spec(UserTaskKind::Reduce { partition: 0, runs, source_bytes: 1 << 16 });
/// let mut groups = MergedGroups::new(feed_of(&reduce, store)?, KeyForm::default(), |_, _| ());
/// let mut found = Vec::new();
/// while groups.next_group()? {
///     found.push((groups.key().to_vec(), Vec::new()));
///     while groups.next_pair()? {
///         found.last_mut().unwrap().1.extend_from_slice(groups.value());
///     }
/// }
/// assert_eq!(found, [(b"\x02a\0".to_vec(), b"12".to_vec()), (b"\x02b\0".to_vec(), b"7".to_vec())]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Debug)]
pub struct MergedGroups {
    feed: MergedPairs,
    form: KeyForm,
    /// What all pairs of the group begin with, and where in it the encoding of its key is.
    group: Vec<u8>,
    key: Range<usize>,
    /// The group's number, from 1 on.
    number: u64,
    /// Whether the feed stands at a pair that nobody has had yet, of this group or the next.
    ahead: bool,
    /// Whether there may be more pairs of this group.
    inside: bool,
    ended: bool,
    /// The number of the group's first pair, from 1.
    first: u64,
    /// That of the first pair of what the caller works on, where this is more than a group; 0: it begins with the next.
    batch: Option<u64>,
    /// Pairs of the largest group so far, and its key, encoded.
    largest: (u64, Vec<u8>),
    /// Called at each pair (`false`) and where a group begins (`true`).
    seen: Seen,
}

/// Is told of pairs and groups.
pub type Seen = fn(&MergedGroups, bool);

impl MergedGroups {
    /// The groups of `feed`, whose keys are of this form. `seen` is told of each pair.
    pub fn new(feed: MergedPairs, form: KeyForm, seen: Seen) -> Self {
        MergedGroups {
            feed,
            form,
            group: Vec::new(),
            key: 0..0,
            number: 0,
            ahead: false,
            inside: false,
            ended: false,
            first: 0,
            batch: None,
            largest: (0, Vec::new()),
            seen,
        }
    }

    /// The present group's key, encoded.
    pub fn key(&self) -> &[u8] {
        &self.group[self.key.clone()]
    }

    /// The present pair's value.
    pub fn value(&self) -> &[u8] {
        self.feed.pair().1
    }

    /// What the present pair is ordered by within its group, where keys are ordered.
    #[inline]
    pub fn order(&self) -> &[u8] {
        let key = self.feed.pair().0;
        key.get(self.group.len()..).unwrap_or_default()
    }

    /// The present group's number, from 1 on; of all groups, at the end.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Pairs and bytes gone through.
    pub fn seen(&self) -> (u64, u64) {
        self.feed.seen()
    }

    /// What the caller works on: the numbers of its first pair and of that of its last group, and how many bytes at the
    /// beginning of a key are the group's.
    pub fn given(&self) -> (u64, u64, usize) {
        let given = self.batch.unwrap_or(self.first);
        (given, self.first, self.group.len())
    }

    /// The largest group gone through: its pairs, and its key, as users would write it.
    pub fn largest(&self) -> (u64, String) {
        let (pairs, key) = &self.largest;
        (*pairs, display(key, SHOWN_CHARS))
    }

    /// The caller has done with all pairs so far, and works on several groups at once from here on.
    pub fn begin_batch(&mut self) {
        let next = self.feed.seen().0 + 1;
        self.batch = Some(if self.inside { next } else { 0 });
    }

    /// Goes to the first pair of the next group; false at the end.
    pub fn next_group(&mut self) -> Result<bool> {
        while self.inside {
            self.next_pair()?;
        }
        if self.ended || (!self.ahead && !self.advance()?) {
            self.end_group(self.seen().0 + 1);
            return Ok(false);
        }
        self.end_group(self.seen().0);
        let key = self.feed.pair().0;
        let end = if self.form.ranked {
            let (encoding, end) = key_of(key)?;
            self.key = encoding;
            end
        } else {
            let end = if self.form.ordered {
                skip(key)?
            } else {
                key.len()
            };
            self.key = 0..end;
            end
        };
        self.group.clear();
        self.group.extend_from_slice(&key[..end]);
        self.number += 1;
        (self.ahead, self.inside) = (true, true);
        self.first = self.feed.seen().0;
        if self.batch == Some(0) {
            self.batch = Some(self.first);
        }
        (self.seen)(self, true);
        Ok(true)
    }

    /// Sees whether the group before the pair of this number is the largest one so far.
    #[inline]
    fn end_group(&mut self, next: u64) {
        let pairs = next - self.first;
        if self.number > 0 && pairs > self.largest.0 {
            self.largest = (pairs, self.key().to_vec());
        }
    }

    /// Goes to the next pair of this group; false where it has no more.
    #[inline]
    pub fn next_pair(&mut self) -> Result<bool> {
        if !self.inside {
            return Ok(false);
        }
        if self.ahead {
            self.ahead = false;
            return Ok(true);
        }
        if !self.advance()? {
            self.inside = false;
            return Ok(false);
        }
        let key = self.feed.pair().0;
        // A key that begins with the group's is of the group, unless 255 follows: that belongs to an escaped zero (the
        // encoding of "" begins that of "\0"), and no encoding begins with it.
        let same = if self.form.ordered {
            key.strip_prefix(self.group.as_slice())
                .is_some_and(|rest| rest.first() != Some(&u8::MAX))
        } else {
            key == self.group
        };
        (self.inside, self.ahead) = (same, !same);
        Ok(same)
    }

    /// Goes to the next group and merges the states that are its values, or adds [values](VALUE_MARK) themselves; `result` is the aggregate, encoded. False at
    /// the end.
    ///
    /// # Errors
    /// Besides those of the feed: the result of a key would take more than `room` bytes of memory, or a state is none.
    pub fn next_aggregate(
        &mut self,
        aggregate: &Aggregate,
        room: usize,
        result: &mut Vec<u8>,
    ) -> Result<bool> {
        let Some(state) = self.next_state(aggregate, room)? else {
            return Ok(false);
        };
        result.clear();
        aggregate.finish(&state, result)?;
        Ok(true)
    }

    /// The same, which gives the merged state; none at the end.
    ///
    /// # Errors
    /// As of [`Self::next_aggregate`].
    pub fn next_state(
        &mut self,
        aggregate: &Aggregate,
        room: usize,
    ) -> Result<Option<AggregateState>> {
        if !self.next_group()? {
            return Ok(None);
        }
        let room = room.max(ROOM_LEAST);
        let mut state = aggregate.empty();
        let (mut merged, mut looked) = (0, ROOM_LEAST / 16);
        while self.next_pair()? {
            self.merge_pair(aggregate, &mut state)?;
            merged += self.value().len();
            // A look takes as long as the state is large: each byte is looked at some nine times.
            if merged > looked {
                looked = merged + merged / 8;
                let taken = aggregate.finish_bytes(&state);
                if taken > room {
                    return Err(self.too_large(aggregate, merged, room));
                }
            }
        }
        Ok(Some(state))
    }

    /// Merges the state that is the present pair's value, or adds the [value](VALUE_MARK) itself.
    ///
    /// # Errors
    /// It is no state of this aggregate, or no value that it takes.
    #[inline]
    pub fn merge_pair(&self, aggregate: &Aggregate, state: &mut AggregateState) -> Result<()> {
        let more = self.value();
        match more.split_first() {
            Some((&VALUE_MARK, value)) => add_value(aggregate, state, value),
            _ => aggregate.merge(state, more),
        }
    }

    fn too_large(&self, aggregate: &Aggregate, merged: usize, room: usize) -> Error {
        let (name, key) = (aggregate.name(), display(self.key(), SHOWN_CHARS));
        let (read, room) = (show_bytes(merged as u64), show_bytes(room as u64));
        let message = format!(
            "{name} holds all values of a key in memory: {read} of those of {key} need more than {room}, the memory of a worker"
        );
        Error::new(Kind::Memory, "reduce a key", message).advise_options(
            "give more {}, or fewer {}; or write a reduce function, which gets the values one by one",
            [JobOption::Memory.named(), JobOption::Workers.named()],
        )
    }

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        if self.ended || !self.feed.advance()? {
            self.ended = true;
            return Ok(false);
        }
        (self.seen)(self, false);
        Ok(true)
    }
}

/// Adds a value that stands behind its position.
fn add_value(aggregate: &Aggregate, state: &mut AggregateState, given: &[u8]) -> Result<()> {
    let Some((position, value)) = given.split_first_chunk() else {
        return Err(Error::bug("reduce a key", "a value has no position"));
    };
    aggregate.add(state, value, u64::from_be_bytes(*position))
}
