//! A pair between map and reduce: where it goes, what orders it, and how it comes back.
//!
//! ```text
//!   plain order       key: the key's bytes, as they sort            value: the value
//!   order by fields   key: the fields, as they sort                 value: | key bytes u32 | key | value |
//! ```

use crate::hadoop::comparator::Comparator;
use crate::hadoop::keyfields::KeyFields;
use crate::hadoop::partition::{HadoopPartitioner, part_of_long};
use crate::hadoop::value::{WritableClass, number};
use gristmill_base::error::{Error, Kind, Result};

use super::definition::{PartitionStep, StreamingDefinition};

/// How pairs are put and taken.
#[derive(Debug, Clone)]
pub struct PairCodec {
    class: WritableClass,
    comparator: Option<Comparator>,
    partitioner: HadoopPartitioner,
    partitions: u32,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl PairCodec {
    /// As the job says; `cuts` are those of a total order.
    pub fn new(
        definition: &StreamingDefinition,
        partitions: u32,
        cuts: &[Vec<u8>],
    ) -> Result<Self> {
        let separator = definition.key_separator.as_bytes();
        let comparator = match &definition.comparator {
            Some(option) => Some(Comparator::new(KeyFields::parse(option, separator)?)),
            None => None,
        };
        let partitioner = match &definition.partitioner {
            PartitionStep::Hash => HadoopPartitioner::Hash,
            PartitionStep::Fields(option) => {
                HadoopPartitioner::Fields(KeyFields::parse(option, separator)?)
            }
            PartitionStep::FirstFields(count) => {
                HadoopPartitioner::Fields(KeyFields::first(*count, separator))
            }
            PartitionStep::Binary(left, right) => HadoopPartitioner::Binary {
                left: *left,
                right: *right,
            },
            PartitionStep::Total(_) => HadoopPartitioner::Ranges(cuts.to_vec()),
        };
        Ok(PairCodec {
            class: definition.map_classes().0,
            comparator,
            partitioner,
            partitions,
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    /// The partition of a pair, and what stands for its key and its value.
    #[inline]
    pub fn put<'a>(&'a mut self, key: &'a [u8], value: &'a [u8]) -> (u32, &'a [u8], &'a [u8]) {
        let partition = match (self.class, &self.partitioner) {
            _ if self.partitions <= 1 => 0,
            (WritableClass::Text, partitioner) => partitioner.part(key, self.partitions),
            // Fields are those of the key's text, whatever the key is: so it is in Hadoop.
            (class, partitioner @ HadoopPartitioner::Fields(_)) => {
                self.key.clear();
                class.display(key, &mut self.key);
                partitioner.part(&self.key, self.partitions)
            }
            (WritableClass::Long | WritableClass::Int, _) => {
                part_of_long(number(key), self.partitions)
            }
            (_, partitioner) => partitioner.part(key, self.partitions),
        };
        if let Some(comparator) = &self.comparator {
            self.key.clear();
            comparator.encode(key, &mut self.key);
            self.value.clear();
            self.value
                .extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes());
            self.value.extend_from_slice(key);
            self.value.extend_from_slice(value);
            return (partition, &self.key, &self.value);
        }
        if matches!(self.class, WritableClass::Long | WritableClass::Int) {
            self.key.clear();
            self.class.sort_key(key, &mut self.key);
            return (partition, &self.key, value);
        }
        (partition, key, value)
    }

    /// The pair that those stand for.
    #[inline]
    pub fn take<'a>(&'a mut self, key: &'a [u8], value: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        if self.comparator.is_some() {
            let damaged = || Error::new(Kind::Bug, "read a pair", "its key is cut off");
            let (len, rest) = value.split_first_chunk::<4>().ok_or_else(damaged)?;
            return rest
                .split_at_checked(u32::from_le_bytes(*len) as usize)
                .ok_or_else(damaged);
        }
        if matches!(self.class, WritableClass::Long | WritableClass::Int) {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.class.from_sort_key(&mut self.key);
            return Ok((&self.key, value));
        }
        Ok((key, value))
    }

    /// The class of the keys.
    pub fn class(&self) -> WritableClass {
        self.class
    }
}
