//! A task's fingerprint: what decides the bytes that it writes, as one number.
//!
//! A history says what a task made; the job that goes on with it plans anew, and takes that for its own only where
//! the fingerprints agree. Folders are left out, as the same job may be named from elsewhere; so is what decides only
//! how a task goes about it (buffers, the runs that a last merge reads: their names change when one is made again,
//! what is written does not).

use std::fmt::{self, Write};
use std::path::Path;

use super::{MergeTarget, RangeSpec, RunPlan, TaskSpec, WorkKind, WorkSpec};

/// Borders that are looked at: all of them come from one sample, so that a few tell two plans apart, and a job of
/// many tasks does not spend its time on this.
const LOOKED_AT: usize = 64;

impl TaskSpec {
    /// The task's fingerprint: equal for tasks that write the same bytes to the same places of a job's folders.
    ///
    /// ```
    /// use gristmill_engine::task::{SampleSpec, TaskSpec};
    /// let task = |record_bytes| TaskSpec::Sample(SampleSpec { stretches: Vec::new(), record_bytes });
    /// assert_eq!(task(100).fingerprint(), task(100).fingerprint());
    /// assert_ne!(task(100).fingerprint(), task(200).fingerprint());
    /// ```
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::default();
        // Writing to a hash cannot fail.
        let _ = self.feed(&mut hash);
        hash.0
    }

    fn feed(&self, hash: &mut Fnv) -> fmt::Result {
        match self {
            TaskSpec::Spill(spec) => {
                let (input, chunk, typical) = (&spec.input, spec.chunk_bytes, spec.typical_bytes);
                write!(hash, "spill {input:?} {chunk} {typical} ")?;
                feed_plan(&spec.runs, hash)
            }
            TaskSpec::MergeRuns(spec) => {
                write!(hash, "merge runs {} ", spec.number)?;
                for run in &spec.runs {
                    feed_name(&run.path, hash)?;
                }
                feed_plan(&spec.plan, hash)
            }
            TaskSpec::Merge(spec) => {
                match &spec.target {
                    MergeTarget::Ranges(ranges) => feed_ranges("merge", ranges, hash)?,
                    MergeTarget::File(path) => feed_name(path, hash)?,
                    MergeTarget::Stream => hash.write_str("stream")?,
                }
                feed_plan(&spec.plan, hash)
            }
            TaskSpec::Reduce(spec) => {
                write!(hash, "{} ", spec.record_bytes)?;
                feed_ranges("reduce", &spec.ranges, hash)
            }
            TaskSpec::Generate(spec) => {
                feed_name(&spec.file.path, hash)?;
                let places = (spec.file.bytes, spec.offset, spec.start, spec.records);
                write!(hash, "{places:?} {:?} {}", spec.layout, spec.skew)
            }
            TaskSpec::Work(spec) => feed_work(spec, hash),
            // Nothing of these is ever kept.
            other => write!(hash, "{other:?}"),
        }
    }
}

fn feed_plan(plan: &RunPlan, hash: &mut Fnv) -> fmt::Result {
    let count = plan.borders.len();
    write!(hash, "{:?} {} {count} ", plan.shape, plan.unique)?;
    let step = count.div_ceil(LOOKED_AT).max(1);
    let some = plan.borders.iter().step_by(step).chain(plan.borders.last());
    some.into_iter()
        .try_for_each(|border| write!(hash, "{border:?}"))
}

fn feed_ranges(what: &str, ranges: &[RangeSpec], hash: &mut Fnv) -> fmt::Result {
    for range in ranges {
        feed_name(&range.file.path, hash)?;
        let places = (range.file.bytes, range.offset, &range.buckets);
        write!(hash, "{what} {places:?} ")?;
    }
    Ok(())
}

/// Of people's code nobody knows whether it gives the same twice: a reduce is that of these very runs, whose names have
/// the attempts in them that made them.
fn feed_work(spec: &WorkSpec, hash: &mut Fnv) -> fmt::Result {
    write!(hash, "work {} {} ", spec.partitions, spec.chunk_bytes)?;
    match &spec.work {
        WorkKind::Map {
            number,
            bytes,
            what,
        } => write!(hash, "map {number} {bytes} {what}"),
        WorkKind::Reduce {
            partition, runs, ..
        } => {
            write!(hash, "reduce {partition} ")?;
            runs.iter().try_for_each(|run| feed_name(&run.path, hash))
        }
    }
}

/// A file's name, without its folder.
fn feed_name(path: &Path, hash: &mut Fnv) -> fmt::Result {
    write!(hash, "{:?} ", path.file_name())
}

/// FNV-1a with 64 bits: the same in every process and on every machine. It tells plans apart; it keeps nobody out.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::borders::Border;
    use crate::record::shape::{Lines, Shape};
    use crate::spill::Needed;
    use crate::task::{MergeRun, MergeRunsSpec, MergeSpec, OutputFile};
    use std::sync::Arc;

    fn plan(key: &[u8], place: &str) -> Arc<RunPlan> {
        Arc::new(RunPlan {
            shape: Lines { descending: false }.kind(),
            unique: false,
            borders: vec![Border {
                key: key.to_vec(),
                position: 0,
            }],
            places: vec![place.into()],
            buffer_bytes: 1,
            needed: Needed::default(),
        })
    }

    fn merge(key: &[u8], folder: &str, offset: u64, run: &str) -> u64 {
        let file = OutputFile {
            path: Path::new(folder).join("part"),
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
        let runs = |name: &str| {
            TaskSpec::MergeRuns(MergeRunsSpec {
                plan: plan(b"k", "/a"),
                runs: vec![MergeRun {
                    path: Path::new("/x").join(name),
                    longest: 1,
                }],
                source_bytes: 7,
                number: 0,
            })
            .fingerprint()
        };
        assert_eq!(runs("run-1"), runs("run-1"));
        assert_ne!(runs("run-1"), runs("run-2"));
    }

    #[test]
    fn a_reduce_is_that_of_its_very_runs() {
        let reduce = |partition: u32, folder: &str, run: &str| {
            let runs = vec![MergeRun {
                path: Path::new(folder).join(run),
                longest: 1,
            }];
            TaskSpec::Work(WorkSpec {
                job_id: "j".into(),
                task: 0,
                attempt: 0,
                partitions: 3,
                places: vec![folder.into()],
                chunk_bytes: 1,
                buffer_bytes: 1,
                output: folder.into(),
                work: WorkKind::Reduce {
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
