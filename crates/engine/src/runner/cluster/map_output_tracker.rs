//! What tasks made, and which agent keeps it: what is lost with an agent, and what runs are called that were made again.
//!
//! The rule that must hold: no output is made of two versions of one task. A task that is done again has its old names for
//! those who read it only if it gives the runs that it gave before, by their checksums; else the driver hears that it differs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::found::{FoundRuns, NOBODY};
use gristmill_storage::run_name::RunName;
use gristmill_tasks::spill::SpilledRun;
use gristmill_tasks::task::{MergeRun, ReleasedSpace};

/// So many agents are near to a task at most: a reduce of ten thousand maps has something on each of them.
const NEAR: usize = 16;

/// A run, as far as another one can be compared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownRun {
    path: PathBuf,
    number: u64,
    records: u64,
    bytes: u64,
    index_crc: u32,
    /// Whether no task needs it any more, as far as all goes well.
    is_spent: bool,
}

impl KnownRun {
    fn of(run: &SpilledRun) -> Self {
        KnownRun {
            path: run.path.clone(),
            number: run.number,
            records: run.records,
            bytes: run.bytes,
            index_crc: run.index_crc,
            is_spent: false,
        }
    }

    /// Whether it went with an agent, and is missed.
    fn is_lost_with(&self, agent: u32) -> bool {
        !self.is_spent && RunName::of(&self.path).is_some_and(|run| run.agent == agent)
    }
}

/// What an attempt made, beside what the task had made before.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputComparison {
    /// The same, or the first: what its runs were called, and what they are called now.
    Same(BTreeMap<RunName, RunName>),
    /// Something else.
    Differs,
}

/// The runs of a task.
#[derive(Debug)]
struct TaskOutput {
    /// Where it ran; of one that is kept, no agent's: its runs may have been found by several.
    agent: u32,
    runs: Vec<KnownRun>,
    is_lost: bool,
}

/// What all tasks made.
#[derive(Debug, Default)]
pub(super) struct MapOutputTracker {
    tasks: BTreeMap<u32, TaskOutput>,
    /// The task that made a run.
    by: BTreeMap<PathBuf, u32>,
    version: u64,
}

impl MapOutputTracker {
    /// Notes what a task made on an agent, and compares it with what the task had made before.
    pub(super) fn note(
        &mut self,
        (task, agent): (u32, u32),
        runs: &[SpilledRun],
    ) -> OutputComparison {
        let runs: Vec<KnownRun> = runs.iter().map(KnownRun::of).collect();
        let noted = match self.tasks.get(&task) {
            Some(before) => {
                moves(&before.runs, &runs).map_or(OutputComparison::Differs, OutputComparison::Same)
            }
            None => OutputComparison::Same(BTreeMap::new()),
        };
        if noted == OutputComparison::Differs {
            self.forget(task);
        }
        self.version += u64::from(!runs.is_empty());
        for run in &runs {
            self.by.insert(run.path.clone(), task);
        }
        let is_lost = false;
        if !runs.is_empty() {
            self.tasks.insert(
                task,
                TaskOutput {
                    agent,
                    runs,
                    is_lost,
                },
            );
        }
        noted
    }

    /// The agents that keep most of what these runs are, the one with most first.
    pub(super) fn nearest(&self, runs: &[MergeRun]) -> Vec<u32> {
        let bytes = self.bytes_of_agents(runs);
        let mut agents: Vec<u32> = bytes.keys().copied().collect();
        agents.sort_by_key(|agent| Reverse(bytes.get(agent)));
        agents.truncate(NEAR);
        agents
    }

    /// The agent that keeps more than half of what these runs are.
    pub(super) fn keeper(&self, runs: &[MergeRun]) -> Option<u32> {
        let bytes = self.bytes_of_agents(runs);
        let all: u64 = bytes.values().sum();
        let mut agents = bytes.into_iter();
        agents
            .find(|(_, bytes)| *bytes > all / 2)
            .map(|(agent, _)| agent)
    }

    fn bytes_of_agents(&self, runs: &[MergeRun]) -> BTreeMap<u32, u64> {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for run in runs {
            let of_task = self.by.get(&run.path).and_then(|task| self.tasks.get(task));
            let Some(of_task) = of_task.filter(|of_task| !of_task.is_lost) else {
                continue;
            };
            // Of one that was made again, and has another name, the size is that of any.
            let known = of_task.runs.iter().find(|known| known.path == run.path);
            let known = known.or(of_task.runs.first());
            *bytes.entry(of_task.agent).or_default() += known.map_or(0, |known| known.bytes);
        }
        bytes
    }

    /// Counts what has changed.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Forgets what a task made; gives the runs that an agent keeps, and which.
    pub(super) fn forget(&mut self, task: u32) -> (u32, Vec<PathBuf>) {
        let Some(of_task) = self.tasks.remove(&task) else {
            return (0, Vec::new());
        };
        self.by.retain(|_, by| *by != task);
        let runs = of_task.runs.into_iter();
        let kept = runs.filter(|run| !of_task.is_lost && !run.is_spent);
        (of_task.agent, kept.map(|run| run.path).collect())
    }

    /// Notes what a task made for a driver that is dead: runs that were found, and others that nobody needs as far as all goes well.
    pub(super) fn keep(&mut self, task: u32, runs: &[SpilledRun]) {
        let known = |run: &SpilledRun| KnownRun {
            is_spent: FoundRuns::is_gone(&run.path),
            ..KnownRun::of(run)
        };
        let runs: Vec<KnownRun> = runs.iter().map(known).collect();
        for run in &runs {
            self.by.insert(run.path.clone(), task);
        }
        let (agent, is_lost) = (NOBODY, false);
        let of_task = TaskOutput {
            agent,
            runs,
            is_lost,
        };
        self.tasks.insert(task, of_task);
    }

    /// The task that made a run.
    pub(super) fn task_of(&self, run: &Path) -> Option<u32> {
        self.by.get(run).copied()
    }

    /// Notes that a task's runs are gone; whether they were there.
    pub(super) fn lose(&mut self, task: u32) -> bool {
        let of_task = self.tasks.get_mut(&task);
        of_task.is_some_and(|of_task| !std::mem::replace(&mut of_task.is_lost, true))
    }

    /// Notes that an agent is gone with all that it kept; the tasks that this was of.
    pub(super) fn lose_agent(&mut self, agent: u32) -> Vec<u32> {
        let of_agent = self.tasks.iter_mut();
        let is_needed = |of: &TaskOutput| !of.is_lost && of.runs.iter().any(|run| !run.is_spent);
        let had = |of: &TaskOutput| {
            of.agent == agent || of.runs.iter().any(|run| run.is_lost_with(agent))
        };
        let of_agent = of_agent.filter(|(_, of)| had(of) && is_needed(of));
        let lost = of_agent.map(|(task, of_task)| {
            of_task.is_lost = true;
            *task
        });
        lost.collect()
    }

    /// Notes that no task needs a run any more. It is known all the same: if what was made of it is lost, it is made again.
    pub(super) fn spent(&mut self, spent: &ReleasedSpace) {
        let task = self.by.get(&spent.run).filter(|_| spent.bytes.is_none());
        let of_task = task.and_then(|task| self.tasks.get_mut(task));
        let runs = of_task.into_iter().flat_map(|of_task| &mut of_task.runs);
        runs.filter(|run| run.path == spent.run)
            .for_each(|run| run.is_spent = true);
    }
}

/// What the runs of a task that was done again were called, and what they are called now; nothing if they are others.
fn moves(before: &[KnownRun], now: &[KnownRun]) -> Option<BTreeMap<RunName, RunName>> {
    let what = |known: &KnownRun| (known.records, known.bytes, known.index_crc);
    let name = |known: &KnownRun| RunName::of(&known.path);
    let moved = before.iter().map(|run| {
        let again = now.iter().find(|again| again.number == run.number)?;
        (what(again) == what(run)).then_some((name(run)?, name(again)?))
    });
    moved
        .collect::<Option<_>>()
        .filter(|_| before.len() == now.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(path: &str, index_crc: u32) -> SpilledRun {
        SpilledRun {
            path: path.into(),
            number: path[path.len() - 4..].parse().unwrap(),
            index_crc,
            ..SpilledRun::default()
        }
    }

    fn name(path: &str) -> RunName {
        RunName::of(path.as_ref()).unwrap()
    }

    fn moved(noted: OutputComparison) -> BTreeMap<RunName, RunName> {
        match noted {
            OutputComparison::Same(moved) => moved,
            OutputComparison::Differs => panic!("they differ"),
        }
    }

    #[test]
    fn runs_that_are_made_again_are_found_by_their_first_names() {
        let mut made = MapOutputTracker::default();
        let first = [
            run("agent:0/0/run-00003-0-0000", 7),
            run("agent:0/1/run-00003-0-0001", 8),
        ];
        assert_eq!(
            made.note((3, 0), &first),
            OutputComparison::Same(BTreeMap::new())
        );
        made.note((4, 1), &[run("agent:1/0/run-00004-0-0000", 9)]);
        assert_eq!(made.task_of(&first[1].path), Some(3));
        assert_eq!(made.lose_agent(0), [3]);
        assert!(made.lose_agent(0).is_empty() && !made.lose(3));
        let again = [
            run("agent:1/0/run-00003-1-0000", 7),
            run("agent:1/0/run-00003-1-0001", 8),
        ];
        let moved = moved(made.note((3, 1), &again));
        assert_eq!(
            moved[&name("agent:0/1/run-00003-0-0001")],
            name("agent:1/0/run-00003-1-0001")
        );
        assert_eq!(made.lose_agent(1), [3, 4]);
        let other = [
            run("agent:2/0/run-00003-2-0000", 7),
            run("agent:2/0/run-00003-2-0001", 1),
        ];
        assert_eq!(made.note((3, 2), &other), OutputComparison::Differs);
        // From here on the new ones are its runs, and the old ones nobody's.
        assert_eq!(made.task_of(&first[1].path), None);
        assert_eq!(made.task_of(&other[1].path), Some(3));
        assert_eq!(made.forget(3), (2, other.map(|run| run.path).into()));
        assert_eq!(
            made.note((3, 0), &first),
            OutputComparison::Same(BTreeMap::new())
        );
        assert_eq!(
            made.note((3, 1), &again[..1]),
            OutputComparison::Differs,
            "fewer"
        );
    }

    #[test]
    fn agents_are_near_to_tasks_that_read_what_they_keep() {
        let mut made = MapOutputTracker::default();
        let sized = |path: &str, bytes| SpilledRun {
            bytes,
            ..run(path, 1)
        };
        made.note((0, 2), &[sized("agent:2/0/run-00000-0-0000", 30)]);
        made.note((1, 5), &[sized("agent:5/0/run-00001-0-0000", 70)]);
        made.note((2, 2), &[sized("agent:2/0/run-00002-0-0000", 50)]);
        let reads = |names: &[&str]| -> Vec<MergeRun> {
            let read = |name: &&str| MergeRun {
                path: name.into(),
                longest: 1,
            };
            names.iter().map(read).collect()
        };
        let all = [
            "agent:2/0/run-00000-0-0000",
            "agent:5/0/run-00001-0-0000",
            "agent:2/0/run-00002-0-0000",
        ];
        assert_eq!(made.nearest(&reads(&all)), [2, 5]);
        assert_eq!(made.nearest(&reads(&all[..2])), [5, 2]);
        made.lose_agent(2);
        assert_eq!(made.nearest(&reads(&all)), [5]);
        let again = made.note((0, 1), &[sized("agent:1/0/run-00000-1-0000", 30)]);
        assert!(matches!(again, OutputComparison::Same(_)));
        assert_eq!(made.nearest(&reads(&all[..1])), [1], "by its first name");
        assert_eq!(made.nearest(&[]), [] as [u32; 0]);
    }

    #[test]
    fn what_was_given_back_is_not_missed_and_found_when_it_is_made_again() {
        let mut made = MapOutputTracker::default();
        let runs = [
            run("agent:0/0/run-00003-0-0000", 7),
            run("agent:0/0/run-00003-0-0001", 8),
        ];
        made.note((3, 0), &runs);
        let spent = |run: &SpilledRun| ReleasedSpace {
            run: run.path.clone(),
            bytes: None,
        };
        runs.iter().for_each(|run| made.spent(&spent(run)));
        assert!(made.lose_agent(0).is_empty());
        // What was made of them was lost, and so the driver has them made again.
        let again = [
            run("agent:1/0/run-00003-1-0000", 7),
            run("agent:1/0/run-00003-1-0001", 8),
        ];
        let moved = moved(made.note((3, 1), &again));
        assert_eq!(
            moved[&name("agent:0/0/run-00003-0-0000")],
            name("agent:1/0/run-00003-1-0000")
        );
        assert_eq!(made.lose_agent(1), [3]);
    }

    #[test]
    fn what_was_kept_is_lost_with_each_agent_that_found_some_of_it() {
        let mut made = MapOutputTracker::default();
        let found = |task| {
            [
                run("agent:0/1/run-00003-0-0000", task),
                run("agent:1/1/run-00003-0-0001", task),
            ]
        };
        made.keep(3, &found(3));
        made.keep(4, &[run("agent:0/1/run-00004-0-0000", 4)]);
        let gone = FoundRuns::gone("run-00005-0-0000".as_ref());
        made.keep(5, &[run(gone.to_str().unwrap(), 5)]);
        assert_eq!(made.lose_agent(1), [3]);
        assert_eq!(made.lose_agent(0), [4]);
        assert!(made.lose_agent(NOBODY).is_empty());
        // One that is gone is found again by the name that stands for it.
        let again = [run("agent:2/0/run-00005-1-0000", 5)];
        let OutputComparison::Same(moved) = made.note((5, 2), &again) else {
            panic!("they are the same");
        };
        let moved = &moved[&name(gone.to_str().unwrap())];
        assert_eq!(*moved, name("agent:2/0/run-00005-1-0000"));
    }
}
