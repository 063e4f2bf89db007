//! A task's fingerprint: what decides the bytes that it writes, as one number.
//!
//! A history says what a task made; a resumed job plans anew, and takes that for its own only where the fingerprints
//! agree. Folders are left out, as the same job may be named from elsewhere; so is what decides only how a task goes
//! about it (buffers, the runs that a last merge reads: their names change when one is made again, what is written does
//! not).

use std::fmt::{self, Write};
use std::path::Path;

use super::ranges::RangeSpec;
use super::runs::RunPlan;
use gristmill_base::order::borders::Border;
use gristmill_storage::sorted_run::RunCompression;

/// Borders that are looked at: all of them come from one sample, so that a few tell two plans apart, and a job of
/// many tasks does not spend its time on this.
const LOOKED_AT: usize = 64;

/// FNV-1a with 64 bits: the same in every process and on every machine. It tells plans apart; it keeps nobody out.
#[derive(Debug)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The number.
    pub(super) fn value(&self) -> u64 {
        self.0
    }

    /// A file's name, without its folder.
    pub(super) fn name(&mut self, path: &Path) -> fmt::Result {
        write!(self, "{:?} ", path.file_name())
    }

    /// How runs are compressed: those of a job that wants them otherwise are made again.
    pub(super) fn compression(&mut self, compression: RunCompression) -> fmt::Result {
        match compression {
            RunCompression::None => Ok(()),
            _ => write!(self, "{} ", compression.name()),
        }
    }

    /// How runs are made.
    pub(super) fn plan(&mut self, plan: &RunPlan) -> fmt::Result {
        let count = plan.borders.len();
        write!(self, "{:?} {} {count} ", plan.shape, plan.unique)?;
        self.compression(plan.compression)?;
        self.borders(&plan.borders)
    }

    /// Where buckets begin.
    pub(super) fn borders(&mut self, borders: &[Border]) -> fmt::Result {
        let step = borders.len().div_ceil(LOOKED_AT).max(1);
        let mut some = borders.iter().step_by(step).chain(borders.last());
        some.try_for_each(|border| write!(self, "{border:?}"))
    }

    /// Ranges of the output.
    pub(super) fn ranges(&mut self, what: &str, ranges: &[RangeSpec]) -> fmt::Result {
        for range in ranges {
            self.name(range.file.path.as_typed())?;
            let places = (range.file.bytes, range.offset, &range.buckets);
            write!(self, "{what} {places:?} ")?;
        }
        Ok(())
    }
}

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }
}

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use std::ops::Range;

    use super::*;
    use crate::spill::MemoryModel;
    use crate::task::{
        MergeRun, MergeRunsSpec, MergeSpec, MergeTarget, OutputFile, TaskSpec, UserTaskKind,
        UserTaskPlan, UserTaskSpec,
    };
    use gristmill_base::record::shape::{LineShape, Shape};

    fn plan(key: &[u8], place: &str) -> Arc<RunPlan> {
        Arc::new(RunPlan {
            shape: LineShape { descending: false }.kind(),
            unique: false,
            borders: vec![Border {
                key: key.to_vec(),
                position: 0,
            }],
            places: vec![place.into()],
            buffer_bytes: 1,
            compression: Default::default(),
            needed: MemoryModel::default(),
        })
    }

    fn merge(key: &[u8], folder: &str, offset: u64, run: &str) -> u64 {
        let file = OutputFile {
            path: Path::new(folder).join("part").into(),
            bytes: 10,
        };
        let run = MergeRun {
            path: run.into(),
            longest: 1,
        };
        TaskSpec::Merge(MergeSpec {
            plan: plan(key, folder),
            runs: Arc::new(vec![run]),
            source_bytes: 7,
            target: MergeTarget::Ranges(vec![RangeSpec {
                file,
                offset,
                buckets: 0..1,
            }]),
        })
        .fingerprint()
    }

    #[test]
    fn what_decides_the_bytes_shows_and_where_the_folders_are_does_not() {
        let one = merge(b"k", "/a", 3, "run-1");
        assert_eq!(one, merge(b"k", "b/c", 3, "run-2"));
        assert_ne!(one, merge(b"l", "/a", 3, "run-1"));
        assert_ne!(one, merge(b"k", "/a", 4, "run-1"));
        let runs = |name: &str, slice: Option<Range<usize>>| {
            TaskSpec::MergeRuns(MergeRunsSpec {
                plan: plan(b"k", "/a"),
                runs: vec![MergeRun {
                    path: Path::new("/x").join(name),
                    longest: 1,
                }],
                source_bytes: 7,
                number: 0,
                slice: slice.clone(),
                home: None,
            })
            .fingerprint()
        };
        assert_eq!(runs("run-1", None), runs("run-1", None));
        assert_ne!(runs("run-1", None), runs("run-2", None));
        assert_ne!(runs("run-1", None), runs("run-1", Some(0..1)));
        assert_ne!(runs("run-1", Some(1..2)), runs("run-1", Some(0..1)));
    }

    #[test]
    fn a_reduce_is_that_of_its_very_runs() {
        let reduce = |partition: u32, folder: &str, run: &str| {
            let runs = vec![MergeRun {
                path: Path::new(folder).join(run),
                longest: 1,
            }];
            let plan = Arc::new(UserTaskPlan {
                partitions: 3,
                places: vec![folder.into()],
                chunk_bytes: 1,
                buffer_bytes: 1,
                ahead_bytes: 0,
                compression: Default::default(),
                attempts: folder.into(),
                uploads_to: None,
                is_one_file: false,
            });
            TaskSpec::User(UserTaskSpec {
                plan,
                work: UserTaskKind::Reduce {
                    partition,
                    runs: Arc::new(runs),
                    source_bytes: 7,
                },
            })
            .fingerprint()
        };
        let one = reduce(1, "/a", "run-00001-0-0000");
        assert_eq!(one, reduce(1, "/b", "run-00001-0-0000"));
        assert_ne!(one, reduce(2, "/a", "run-00001-0-0000"));
        assert_ne!(one, reduce(1, "/a", "run-00001-1-0000"));
    }
}
