//! What a native job does with records: an operator, which runs in map and reduce tasks.
//!
//! ```text
//!   records ──Mapper──▶ key, order, value ── sorted, merged ──▶ groups ──Reducer──▶ records of a part, or of files that it names
//!                              ▲                                  │
//!                              └───────────Regrouper, once────────┘   where an operator asks for it
//! ```
//!
//! Records are lines, lines with fields, or rows of a table, of one input or of several, which have numbers. A mapper may bring
//! values of equal keys together before it gives them away. A job's file in the engine has its options, and makes its operator of
//! them; [`NativeExecutor`](super::NativeExecutor) reads, spills, merges and writes for all.
//!
//! Decision: docs/decisions/native-operators.md.

use std::fmt::Debug;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::input_ranges::{InputRanges, place_of};
use super::part_writer::PartFiles;
use crate::hadoop::partition::HadoopPartitioner;
use crate::merge::groups::{KeyForm, MergedGroups};
use crate::spill::Progress;
use crate::spill::collect::PairCollector;
use gristmill_base::error::{Error, Result};
use gristmill_base::record::objects::ObjectKeys;
use gristmill_base::record::table_keys::TableKeys;
use gristmill_storage::lines::LineEnd;

/// Bytes of side inputs that a map task has room for, however little memory the job has: the least task has more than twice as much,
/// and vectors grow.
pub const SIDE_BYTES: usize = 320 << 10;

/// What a native job does with records.
pub trait Operator: Debug + Send + Sync {
    /// Whether a mapper holds pairs back, to bring them together: it has half of the memory for that.
    fn combines(&self) -> bool {
        false
    }

    /// Whether a key, which is an encoded value then, is followed by what orders its values, and does not begin with 255.
    fn ordered(&self) -> bool {
        false
    }

    /// Whether what its [regroupers](Self::regrouper) make of the groups of the mappers' pairs is reduced, and not these groups.
    fn regroups(&self) -> bool {
        false
    }

    /// What each part, or each file, begins with: a header, with its end.
    fn header(&self) -> &[u8] {
        &[]
    }

    /// Where reducers [name](PartFiles::begin) the files that they write, and there are no parts: how many files one may write.
    fn files_max(&self) -> Option<u64> {
        None
    }

    /// What maps the records of a task. It may hold so many bytes, if it [combines](Self::combines).
    ///
    /// # Errors
    /// There is no such memory.
    fn mapper(&self, memory: usize) -> Result<Box<dyn Mapper + '_>>;

    /// What makes other pairs of a partition, where the operator [regroups](Self::regroups). It may hold so many bytes.
    ///
    /// # Errors
    /// There is no such memory.
    fn regrouper(&self, _memory: usize) -> Result<Box<dyn Regrouper + '_>> {
        Err(Error::bug("regroup pairs", "the operator does not"))
    }

    /// What writes the records of map tasks, where there are no partitions. It may hold [`SIDE_BYTES`].
    ///
    /// # Errors
    /// The operator needs partitions.
    fn part_mapper(&self) -> Result<Box<dyn PartMapper + '_>> {
        Err(Error::bug("map a split", "the operator needs partitions"))
    }

    /// What reduces a partition. It may hold so many bytes.
    ///
    /// # Errors
    /// There is no such memory.
    fn reducer(&self, memory: usize) -> Result<Box<dyn Reducer + '_>>;
}

/// Maps the records of one task.
pub trait Mapper {
    /// Takes the next records.
    ///
    /// # Errors
    /// A record is none of those that the operator takes, or its pairs cannot be kept.
    fn records(&mut self, records: &Records<'_>, pairs: &mut Pairs<'_>) -> Result<()>;

    /// Gives away what was held back; says what that was in all, if anything ever is.
    ///
    /// # Errors
    /// Pairs cannot be kept.
    fn end(&mut self, _pairs: &mut Pairs<'_>) -> Result<Option<Combined>> {
        Ok(None)
    }
}

/// Makes pairs of the groups of one partition, which are merged and grouped anew. Their keys are whole: no order follows them.
pub trait Regrouper {
    /// Gives the pairs of the next group, or of some more of one with many pairs; false where there is no more.
    ///
    /// # Errors
    /// The group does not fit in memory, or cannot be read, or its pairs cannot be kept.
    fn next(&mut self, groups: &mut MergedGroups, pairs: &mut Pairs<'_>) -> Result<bool>;
}

/// Writes what becomes of the records of one task, in their order.
pub trait PartMapper {
    /// Holds records of a [side input](super::NativeSplit::sides), which come first.
    ///
    /// # Errors
    /// A record is none of those that the operator takes, or the side inputs take more than [`SIDE_BYTES`].
    fn hold(&mut self, records: &Records<'_>) -> Result<()>;

    /// Takes the next records.
    ///
    /// # Errors
    /// A record is none of those that the operator takes, or the part cannot be written.
    fn records(&mut self, records: &Records<'_>, part: &mut PartFiles) -> Result<()>;
}

/// Reduces the groups of one partition.
pub trait Reducer {
    /// Writes what becomes of the next group, or of some more of one with many pairs; false where there is no more.
    ///
    /// # Errors
    /// The group does not fit in memory, or cannot be read or written.
    fn next(&mut self, groups: &mut MergedGroups, part: &mut PartFiles) -> Result<bool>;

    /// Writes what comes behind all groups.
    ///
    /// # Errors
    /// It cannot be written.
    fn end(&mut self, _part: &mut PartFiles) -> Result<()> {
        Ok(())
    }
}

/// How the records of an input are told from each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordForm {
    /// Lines, many at once.
    Lines(LineEnd),
    /// Lines, one by one, with their fields: what stands between bytes like this; without one, between blanks.
    Fields(LineEnd, Option<u8>),
    /// Rows of a table, one by one, with their fields, and with codes of its keys.
    Rows(TableKeys),
    /// Lines that are JSON objects, one by one, with where the values of paths lie, and with codes of keys.
    Objects(ObjectKeys),
}

/// Records as a mapper gets them.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    /// The number of their input.
    pub input: usize,
    /// Whole lines, each but perhaps the last with its end; or one line or row with its end, if it has one.
    pub bytes: &'a [u8],
    /// What ends lines.
    pub end: LineEnd,
    /// Where the fields of one record lie, with their quotes.
    pub fields: &'a [Range<usize>],
    /// The code of the keys of a row, or of an object.
    pub code: &'a [u8],
    /// Where the first of them stands among all records of the job, in the order of the input.
    pub position: u64,
    /// The number of their file among all files of the job, in the order of the input.
    pub file: u32,
    /// Where the first of them begins in its file, decoded if that is compressed. How the input is cut changes nothing of it.
    pub offset: u64,
}

impl<'a> Records<'a> {
    /// The [place](place_of) of a record of theirs that begins there in the file.
    ///
    /// # Errors
    /// The file is too long.
    #[inline]
    pub fn place_of(&self, offset: u64) -> Result<u64> {
        place_of(self.file, offset)
    }

    /// Lines that came many at once, one by one: where each begins in its file, and its bytes without its end.
    #[inline]
    pub fn lines(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let mut next = self.offset;
        self.end.lines_of(self.bytes).map(move |line| {
            let offset = next;
            next += line.len() as u64 + 1;
            (offset, line)
        })
    }
}

/// What a mapper held back, in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Combined {
    /// Pairs.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// Takes the pairs of a mapper, or of a regrouper.
pub struct Pairs<'a> {
    pub(super) collector: &'a mut PairCollector,
    pub(super) progress: Progress<'a>,
    /// The part of the input that each partition is, to a regrouper.
    pub(super) ranges: &'a InputRanges,
}

impl Pairs<'_> {
    /// Takes a pair, which comes where its key and then `order` say. The hash of the key decides its partition.
    ///
    /// # Errors
    /// It does not fit in memory, or a run cannot be written.
    #[inline]
    pub fn give(&mut self, key: &[u8], order: &[u8], value: &[u8]) -> Result<()> {
        self.give_to(Self::part_of(key, self.partitions()), key, order, value)
    }

    /// Takes a pair of a partition.
    ///
    /// # Errors
    /// As of [`Self::give`].
    #[inline]
    pub fn give_to(&mut self, part: u32, key: &[u8], order: &[u8], value: &[u8]) -> Result<()> {
        self.collector
            .append(part, key, order, value, self.progress)
    }

    /// Takes what a regrouper has of a [place](place_of) of the input: partitions are ranges of the input, and it comes in its order.
    ///
    /// # Errors
    /// As of [`Self::give`].
    #[inline]
    pub fn give_at(&mut self, place: u64, value: &[u8]) -> Result<()> {
        let part = self.ranges.range_of(place);
        self.give_to(part, &place.to_be_bytes(), b"", value)
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> u32 {
        self.collector.partitions()
    }

    /// The partition of a key, by its hash as Hadoop has it.
    #[inline]
    pub(super) fn part_of(key: &[u8], partitions: u32) -> u32 {
        HadoopPartitioner::Hash.part(key, partitions)
    }
}

impl Debug for Pairs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pairs")
            .field("collector", &self.collector)
            .finish_non_exhaustive()
    }
}

impl dyn Operator {
    /// What keys hold in the runs of a job of this operator.
    pub(super) fn key_form(&self) -> KeyForm {
        KeyForm {
            ordered: self.ordered(),
            ranked: false,
        }
    }

    /// The same of the pairs that reducers get.
    pub(super) fn reduced_form(&self) -> KeyForm {
        match self.regroups() {
            true => KeyForm::default(),
            false => self.key_form(),
        }
    }
}
