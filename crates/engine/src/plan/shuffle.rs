//! How a shuffle goes: into how many slices each round cuts what the map tasks left, and what that costs.
//!
//! ```text
//!   plan        fan-outs       rounds between the map tasks and the last merges
//!   immediate   [R]            none: the last merges read a segment of each run
//!   two-level   [W, R/W]       one: a slice for each node, whose runs are merged there
//!   iterative   [4, 5, 4]      two: four slices, then twenty
//! ```
//!
//! A run has an index of all its buckets, so that to cut costs nothing; a round costs one more reading and writing of
//! all. It merges as many runs as make all rounds alike: with n runs and r merges to come, the r-th root of n.
//!
//! Nothing here reads a clock or a device: the same job has the same plan wherever it is resumed.
//!
//! Decision: docs/decisions/shuffle-rounds.md.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Deserialize as Deserialized, Serialize};

use super::spill::MemoryLayout;
use gristmill_base::error::{Error, Kind, Result};

/// Rounds that may be asked for at most.
const ROUNDS_MAX: usize = 16;

/// Slices into which one round may cut a slice.
const FAN_OUT_MAX: usize = 100_000;

/// Bytes that a disk reads or writes in a second, for merges: 64 KiB and more at once.
const DEVICE_RATE: f64 = 800e6;

/// Bytes that come to a node in a second.
const LINK_RATE: f64 = 125e6;

/// Seconds that a read of a segment takes beside its bytes.
const READ_S: f64 = 100e-6;

/// The name of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialized)]
#[serde(rename_all = "kebab-case")]
pub enum ShuffleKind {
    /// The one that costs least.
    #[default]
    Auto,
    /// All partitions at once.
    Immediate,
    /// One slice for each node, then its partitions.
    TwoLevel,
    /// A few slices, again and again.
    Iterative,
}

impl ShuffleKind {
    /// Their names, as options have them.
    pub const NAMES: &'static [&'static str] = &["auto", "immediate", "two-level", "iterative"];
}

/// Into how many slices each round cuts a slice, as an option gives it: `4,5,4`. Empty where it is not given.
///
/// ```
/// use gristmill_engine::plan::shuffle::FanOuts;
/// let given: FanOuts = serde_json::from_str("\"4,5,4\"")?;
/// assert_eq!(given.0, [4, 5, 4]);
/// assert!(serde_json::from_str::<FanOuts>("\"4,x\"").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FanOuts(pub Vec<usize>);

impl<'de> Deserialize<'de> for FanOuts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else {
            return Ok(FanOuts::default());
        };
        let numbers = text.split(',').map(|number| number.trim().parse::<usize>());
        let numbers: Result<Vec<usize>, _> = numbers.collect();
        let fits = |numbers: &Vec<usize>| {
            numbers.len() <= ROUNDS_MAX
                && numbers
                    .iter()
                    .all(|number| (1..=FAN_OUT_MAX).contains(number))
        };
        let wrong = || {
            D::Error::custom(format!(
                "{text:?} is not a list of at most {ROUNDS_MAX} numbers from 1 to {FAN_OUT_MAX}, such as 4,5,4"
            ))
        };
        numbers.ok().filter(fits).map(FanOuts).ok_or_else(wrong)
    }
}

/// What a user says of the shuffle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShuffleOptions {
    /// The plan.
    pub kind: ShuffleKind,
    /// Its rounds, if they are given.
    pub rounds: FanOuts,
}

/// What decides a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShuffleSize {
    /// Bytes of all runs.
    pub bytes: u64,
    /// Runs that the map tasks leave.
    pub runs: u64,
    /// Tasks of the last merges.
    pub tasks: u64,
    /// Runs that are merged at once at most.
    pub fan_in: u64,
    /// Bytes that a merge reads of a run at once.
    pub read_bytes: u64,
    /// Nodes; 1 on one machine.
    pub nodes: u64,
    /// Tasks at once.
    pub workers: u64,
}

/// A plan, and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedShuffle {
    /// Its name.
    pub plan: &'static str,
    /// Whether the job goes by it.
    pub chosen: bool,
    /// Into how many slices each round cuts a slice; the last one gives the tasks of the last merge.
    pub fan_outs: Vec<u64>,
    /// Merge tasks of each round before the last merge, passes that memory forces among them.
    pub merges: Vec<u64>,
    /// Bytes that disks write and read, from the runs of the map tasks to what the last merge reads.
    pub device_bytes: u64,
    /// Bytes that go from node to node.
    pub link_bytes: u64,
    /// Reads of segments.
    pub reads: u64,
    /// Runs that are open at once.
    pub open_files: u64,
    /// Seconds that disks, links and reads take by this model: to compare plans, not to predict the job.
    pub seconds: f64,
}

/// What a job says of its shuffle, and where it runs.
#[derive(Debug, Clone)]
pub struct JobShuffle {
    /// What the user says.
    pub options: ShuffleOptions,
    /// The nodes that it is planned for; 1 on one machine.
    pub nodes: usize,
    /// Tasks at once.
    pub workers: usize,
}

impl JobShuffle {
    /// What decides the plan for so many bytes, in so many runs, which so many tasks merge at last.
    fn size(
        &self,
        memory_layout: &MemoryLayout,
        (bytes, runs, tasks): (u64, u64, u64),
    ) -> ShuffleSize {
        let fan_in = memory_layout.fan_in();
        ShuffleSize {
            bytes,
            runs,
            tasks,
            fan_in: fan_in as u64,
            read_bytes: memory_layout.source_bytes(&vec![0; fan_in]) as u64,
            nodes: self.nodes as u64,
            workers: self.workers as u64,
        }
    }

    /// The fan-outs for so many bytes, in so many runs, which so many tasks merge at last.
    pub fn fan_outs(&self, memory_layout: &MemoryLayout, numbers: (u64, u64, u64)) -> Vec<u64> {
        self.options.fan_outs(self.size(memory_layout, numbers))
    }

    /// All plans for them, and which one the job goes by.
    pub fn alternatives(
        &self,
        memory_layout: &MemoryLayout,
        numbers: (u64, u64, u64),
    ) -> Vec<PlannedShuffle> {
        self.options.alternatives(self.size(memory_layout, numbers))
    }
}

impl ShuffleOptions {
    /// Whether a plan is asked for that has rounds: then what would fit in memory goes by runs, too.
    pub fn has_rounds(&self) -> bool {
        let one = matches!(self.kind, ShuffleKind::Auto | ShuffleKind::Immediate);
        !one || !self.rounds.0.is_empty()
    }

    /// Fails where the options contradict each other.
    pub fn check(&self) -> Result<()> {
        let other = named(self.kind).filter(|plan| plan.kind != ShuffleKind::Iterative);
        let Some(NamedPlan { name, .. }) = other.filter(|_| !self.rounds.0.is_empty()) else {
            return Ok(());
        };
        let message = format!("rounds are those of an iterative shuffle, and {name} was given");
        Err(Error::new(Kind::BadOption, "read the options", message).of_option("rounds"))
    }

    /// The fan-outs of a shuffle of this size: all but the last are those of rounds.
    ///
    /// ```
    /// use gristmill_engine::plan::shuffle::{ShuffleKind, ShuffleOptions, ShuffleSize};
    /// let size = ShuffleSize {
    ///     bytes: 5 << 30, runs: 300, tasks: 80, fan_in: 200, read_bytes: 64 << 10, nodes: 1, workers: 2,
    /// };
    /// let of = |kind| ShuffleOptions { kind, ..ShuffleOptions::default() }.fan_outs(size);
    /// assert_eq!((of(ShuffleKind::Immediate), of(ShuffleKind::Auto)), (vec![80], vec![80]));
    /// assert_eq!((of(ShuffleKind::TwoLevel), of(ShuffleKind::Iterative)), (vec![2, 40], vec![5, 5, 4]));
    /// ```
    pub fn fan_outs(&self, size: ShuffleSize) -> Vec<u64> {
        self.chosen(size).fan_outs
    }

    /// All plans for a shuffle of this size, and which one the job goes by.
    pub fn alternatives(&self, size: ShuffleSize) -> Vec<PlannedShuffle> {
        let chosen = self.chosen(size);
        let mut plans: Vec<_> = PLANS.iter().map(|plan| plan.cost(size)).collect();
        match plans.iter_mut().find(|plan| plan.plan == chosen.plan) {
            Some(plan) => plan.chosen = true,
            None => plans.push(PlannedShuffle {
                chosen: true,
                ..chosen
            }),
        }
        plans
    }

    fn chosen(&self, size: ShuffleSize) -> PlannedShuffle {
        match (self.rounds.0.as_slice(), named(self.kind)) {
            ([], Some(plan)) => plan.cost(size),
            ([], None) => cheapest(size),
            (given, _) => cost("rounds", given.iter().map(|n| *n as u64).collect(), size),
        }
    }
}

/// A plan by name.
struct NamedPlan {
    kind: ShuffleKind,
    name: &'static str,
    fan_outs: fn(ShuffleSize) -> Vec<u64>,
}

/// From the one that writes least on: another plan is a line here, and its kind.
const PLANS: [NamedPlan; 3] = [
    NamedPlan {
        kind: ShuffleKind::Immediate,
        name: "immediate",
        fan_outs: |size| vec![size.tasks],
    },
    NamedPlan {
        kind: ShuffleKind::TwoLevel,
        name: "two-level",
        fan_outs: |size| {
            let groups = match size.nodes {
                ..=1 => size.workers,
                nodes => nodes,
            };
            let groups = groups.clamp(1, size.tasks.max(1));
            vec![groups, size.tasks.div_ceil(groups)]
        },
    },
    NamedPlan {
        kind: ShuffleKind::Iterative,
        name: "iterative",
        fan_outs: |size| {
            let each = root(size.tasks, 3).max(2);
            vec![each, each, size.tasks.div_ceil(each * each).max(1)]
        },
    },
];

/// The plan of a kind; nothing where the cost decides.
fn named(kind: ShuffleKind) -> Option<&'static NamedPlan> {
    PLANS.iter().find(|plan| plan.kind == kind)
}

impl NamedPlan {
    fn cost(&self, size: ShuffleSize) -> PlannedShuffle {
        cost(self.name, (self.fan_outs)(size), size)
    }
}

/// The plan that takes the least time; of equal ones the first. A round is worth its tasks only where passes over all runs are
/// forced, and cross a network.
fn cheapest(size: ShuffleSize) -> PlannedShuffle {
    let [immediate, others @ ..] = &PLANS;
    let immediate = immediate.cost(size);
    if size.nodes < 2 || immediate.merges.is_empty() {
        return immediate;
    }
    let others = others.iter().map(|plan| plan.cost(size));
    others.fold(immediate, |best, plan| {
        if plan.seconds < best.seconds {
            plan
        } else {
            best
        }
    })
}

/// How many runs a round merges to one, where there are so many and so many merges are to come, the last among them.
///
/// ```
/// use gristmill_engine::plan::shuffle::round_fan_in;
/// assert_eq!((round_fan_in(100, 3), round_fan_in(20, 2), round_fan_in(3, 2), round_fan_in(1, 5)), (5, 5, 2, 2));
/// ```
pub fn round_fan_in(runs: u64, merges: u32) -> u64 {
    root(runs, merges).max(2)
}

/// The least number whose power is at least as large.
fn root(number: u64, power: u32) -> u64 {
    let near = (number as f64).powf(1.0 / f64::from(power.max(1))) as u64;
    let is_enough = |root: &u64| u128::from(*root).pow(power) >= u128::from(number);
    (near.saturating_sub(1)..=near + 2)
        .find(is_enough)
        .unwrap_or(near)
}

/// What a plan costs, where runs and slices are even.
fn cost(plan: &'static str, fan_outs: Vec<u64>, size: ShuffleSize) -> PlannedShuffle {
    let (mut runs, mut slices) = (size.runs.max(1), 1_u64);
    let (mut reads, mut merges, mut open_files) = (0, Vec::new(), 0);
    let (mut crossings, mut device_bytes) = (0.0, size.bytes); // the map tasks write
    let rounds = fan_outs.len().saturating_sub(1) as u32;
    let all_tasks = size.tasks.max(1);
    let others = (size.nodes.max(1) - 1) as f64 / size.nodes.max(1) as f64;
    let segments = |slices: u64, runs: u64| {
        let segment_bytes = size.bytes / (slices * runs).max(1);
        slices * runs * segment_bytes.div_ceil(size.read_bytes.max(1)).max(1)
    };
    let mut merge = |slices: u64, runs: u64, fan_in: u64| {
        let left = runs.div_ceil(fan_in);
        merges.push(slices * left);
        reads += segments(slices, runs);
        device_bytes += 2 * size.bytes;
        open_files = open_files.max(size.workers * fan_in.min(runs));
        left
    };
    for (round, fan_out) in (0..rounds).zip(&fan_outs) {
        slices = (slices * fan_out).min(all_tasks);
        if runs > 1 {
            let fan_in = round_fan_in(runs, rounds - round + 1).min(size.fan_in);
            runs = merge(slices, runs, fan_in);
            crossings += if round == 0 { others } else { 0.0 };
        }
    }
    while runs > size.fan_in {
        runs = merge(slices, runs, size.fan_in);
        crossings += if slices == 1 { others } else { 0.0 };
    }
    reads += segments(all_tasks.max(slices), runs);
    open_files = open_files.max(size.workers * runs);
    device_bytes += size.bytes;
    crossings += if slices == 1 { others } else { 0.0 };
    let link_bytes = (crossings * size.bytes as f64) as u64;
    let nodes = size.nodes.max(1) as f64;
    let seconds = device_bytes as f64 / DEVICE_RATE / nodes
        + link_bytes as f64 / LINK_RATE / nodes
        + reads as f64 * READ_S / size.workers.max(1) as f64;
    PlannedShuffle {
        plan,
        chosen: false,
        fan_outs,
        merges,
        device_bytes,
        link_bytes,
        reads,
        open_files,
        seconds: (seconds * 1000.0).round() / 1000.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(bytes: u64, runs: u64, tasks: u64, nodes: u64) -> ShuffleSize {
        ShuffleSize {
            bytes,
            runs,
            tasks,
            fan_in: 200,
            read_bytes: 1 << 20,
            nodes,
            workers: 2 * nodes,
        }
    }

    fn plans(size: ShuffleSize) -> [PlannedShuffle; 3] {
        let plans = ShuffleOptions::default().alternatives(size);
        plans.try_into().unwrap()
    }

    #[test]
    fn a_round_costs_one_more_reading_and_writing_of_all() {
        let [immediate, two_level, iterative] = plans(size(1000 << 20, 100, 16, 1));
        assert_eq!(immediate.device_bytes >> 20, 2000); // written by the map tasks, read by the last merge
        assert_eq!(
            (two_level.device_bytes >> 20, iterative.device_bytes >> 20),
            (4000, 6000)
        );
        assert_eq!((immediate.merges, two_level.merges), (vec![], vec![20])); // two slices of ten runs each
        assert_eq!(iterative.merges, [3 * 20, 9 * 4]);
        assert_eq!((immediate.open_files, two_level.open_files), (200, 20));
        assert_eq!(immediate.link_bytes + two_level.link_bytes, 0);
        assert!(immediate.chosen && !two_level.chosen);
    }

    /// 100 TB on 40 nodes, in runs of 1 GB: passes are forced by 200 open runs, and each of them crosses the network unless
    /// slices have nodes.
    #[test]
    fn slices_of_nodes_spare_crossings_where_passes_are_forced() {
        let [immediate, two_level, _] = plans(size(100_000_000 << 20, 100_000, 640, 40));
        let share = |plan: &PlannedShuffle| plan.link_bytes as f64 / (100_000_000_u64 << 20) as f64;
        assert_eq!(immediate.merges, [500, 3]);
        assert!((share(&immediate) - 3.0 * 39.0 / 40.0).abs() < 0.01);
        assert!((share(&two_level) - 39.0 / 40.0).abs() < 0.01);
        assert!(two_level.chosen && !immediate.chosen);
        assert_eq!(two_level.fan_outs, [40, 16]);
        assert_eq!(two_level.merges, [40 * 500, 40 * 3]);
    }

    /// 1 PB on 3,658 nodes, as Hadoop once sorted it: 80,000 maps and 20,000 reduces.
    #[test]
    fn a_petabyte_on_thousands_of_nodes() {
        let [immediate, two_level, iterative] =
            plans(size(1_000_000_000 << 20, 80_000, 20_000, 3_658));
        assert_eq!(immediate.merges, [400, 2]);
        assert_eq!(two_level.fan_outs, [3_658, 6]);
        assert_eq!(two_level.merges, [3_658 * 400, 3_658 * 2]);
        assert!(two_level.link_bytes < immediate.link_bytes / 2);
        // A piece of a run in a slice for each node is shorter than what is read at once: fewer slices first spare reads.
        assert_eq!(
            (two_level.reads, iterative.reads),
            (3_171_388_800, 3_002_579_392)
        );
        assert!(iterative.chosen);
    }

    #[test]
    fn many_short_runs_are_no_reason_for_rounds() {
        let tiny = |nodes| ShuffleOptions::default().fan_outs(size(10_000, 128, 12, nodes));
        assert_eq!((tiny(1), tiny(2)), (vec![12], vec![12]));
        let forced = ShuffleOptions::default().fan_outs(size(10_000, 1000, 12, 1));
        assert_eq!(forced, [12], "on one machine nothing crosses");
    }

    #[test]
    fn roots_are_the_least_that_are_enough() {
        for (number, power, expected) in [
            (0, 3, 0),
            (1, 3, 1),
            (8, 3, 2),
            (9, 3, 3),
            (10_000, 2, 100),
            (10_001, 2, 101),
        ] {
            assert_eq!(root(number, power), expected, "{number} {power}");
        }
    }

    #[test]
    fn rounds_that_are_given_are_those_of_an_iterative_shuffle() {
        let given = |kind, fan_outs: &[usize]| ShuffleOptions {
            kind,
            rounds: FanOuts(fan_outs.to_vec()),
        };
        assert!(given(ShuffleKind::TwoLevel, &[4, 4]).check().is_err());
        assert!(given(ShuffleKind::Auto, &[4, 4]).check().is_ok());
        let asked = given(ShuffleKind::Iterative, &[4, 5, 4]);
        let plans = asked.alternatives(size(1 << 30, 100, 80, 1));
        let chosen: Vec<_> = plans.iter().filter(|plan| plan.chosen).collect();
        assert_eq!(
            (plans.len(), chosen.len(), chosen[0].plan),
            (4, 1, "rounds")
        );
        assert_eq!(chosen[0].fan_outs, [4, 5, 4]);
        assert!(asked.has_rounds() && !ShuffleOptions::default().has_rounds());
    }
}
