//! The engine from the outside: whole jobs, through `jobs::run`, on every store.
//!
//! Beside each job stands a naive answer (`support`): a stable sort of all records, a walk over keys, a record
//! built digit by digit. What the options decide must show in the output; what workers, memory, store, retries
//! and faults decide must not.
//!
//! ```text
//!   agents       jobs in agents: what user code failed at there
//!   mapreduce    jobs of people's own code: results, attempts, proofs
//!   oracle       terasort against a stable sort, over inputs, workers, partitions, budgets, stores
//!   faults       every call of a store fails once, for good, with a full disk, short, or with a flipped bit
//!   changes      an input that is cut off or grows while it is sorted, mapped and read
//!   collect      pairs collected, aggregated, fed: against naive ones
//!   commit       what stays of an old output when its replacement fails
//!   cancel       at every call, and at random moments
//!   validators   teravalidate against a walk after Hadoop's rules, and planted damage
//!   resume       jobs that die at every call, and others that go on with them
//!   shared       outputs on a disk that machines share: staged, renamed; cancelling
//!   simulation   the driver on a virtual clock, over thousands of broken clusters; it dies, too
//!   spill        terasort and sort in less memory than their input, against naive sorts, with the path taken
//!   spill_faults every call of a job that spills goes wrong; runs are damaged between spill and merge
//!   spill_places directories for runs: in order, full, vanishing, with what dead jobs left
//!   streams      sort from pipes to pipes: faults, cancelling, ends that go away
//!   teragen      records against the formulas, files, sums
//!   wire         specs, reports and errors to bytes and back
//! ```

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which fail with a backtrace"
)]

mod agents;
mod cancel;
mod changes;
mod collect;
mod commit;
mod far;
mod faults;
mod mapreduce;
mod oracle;
mod places;
mod resume;
mod shared;
mod simulation;
mod spill;
mod spill_case;
mod spill_faults;
mod spill_places;
mod spill_source;
mod streams;
mod support;
mod teragen;
mod validators;
mod watched;
mod wire;
