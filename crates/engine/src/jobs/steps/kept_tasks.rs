//! Which tasks of a dead job that made runs need not be done again.
//!
//! ```text
//!   run     there, without holes; or gone, and what it was merged to is kept
//!   merge   its run as above, and all tasks whose runs went into it are kept: or it would be repeated without them
//!   slice   the same; it leaves holes in its sources, which are of use only as long as it is kept
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gristmill_tasks::task::Checkpoint;

/// The tasks that made runs and need not be done again. They are struck out until no reason is left: a run that is
/// gone and was merged to nothing that is kept, one in which a slice that is gone left holes, or a merge of runs of a task
/// that is done again. Those that are `spoiled` are done again in any case.
pub(super) fn tasks_of_runs(
    kept: &BTreeMap<u32, (u64, Checkpoint)>,
    spoiled: &BTreeSet<u32>,
    is_there: &dyn Fn(&Path) -> bool,
) -> BTreeSet<u32> {
    let (mut made_by, mut merged_by) = (BTreeMap::new(), BTreeMap::new());
    for (task, (_, kept)) in kept {
        made_by.extend(kept.runs().iter().map(|run| (&*run.path, *task)));
        if !kept.is_slice() {
            merged_by.extend(kept.sources().iter().map(|name| (&**name, *task)));
        }
    }
    let made_runs = |kept: &Checkpoint| {
        matches!(
            kept,
            Checkpoint::Spill(_) | Checkpoint::MergeRuns { .. } | Checkpoint::User(_)
        )
    };
    let with_runs = kept.iter().filter(|(_, (_, kept))| made_runs(kept));
    let with_runs = with_runs.map(|(task, _)| *task);
    let mut whole: BTreeSet<u32> = with_runs.filter(|task| !spoiled.contains(task)).collect();
    loop {
        let merged = |name: &Path| merged_by.get(name).is_some_and(|task| whole.contains(task));
        let again = kept.iter().filter(|(task, _)| !whole.contains(task));
        let slices = again.filter(|(_, (_, kept))| kept.is_slice());
        let with_holes: BTreeSet<&Path> = slices
            .flat_map(|(_, (_, kept))| kept.sources().iter().map(|name| &**name))
            .collect();
        let is_usable = |name: &Path| is_there(name) && !with_holes.contains(name);
        let stays = |task: &&u32| {
            let Some((_, kept)) = kept.get(task) else {
                return false;
            };
            let mut runs = kept.runs().iter();
            let sources_stay = kept.sources().iter().all(|name| {
                let maker = made_by.get(&**name);
                maker.is_some_and(|task| whole.contains(task))
            });
            sources_stay && runs.all(|run| is_usable(&run.path) || merged(&run.path))
        };
        let left: BTreeSet<u32> = whole.iter().filter(stays).copied().collect();
        if left.len() == whole.len() {
            return left;
        }
        whole = left;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use gristmill_tasks::spill::SpilledRun;

    fn run(name: &str) -> SpilledRun {
        SpilledRun {
            path: name.into(),
            ..SpilledRun::default()
        }
    }

    fn spill(names: &[&str]) -> (u64, Checkpoint) {
        (
            0,
            Checkpoint::Spill(names.iter().map(|name| run(name)).collect()),
        )
    }

    fn merge(name: &str, of: &[&str]) -> (u64, Checkpoint) {
        let of = of.iter().map(PathBuf::from).collect();
        let run = run(name);
        let is_slice = name.starts_with('/');
        (0, Checkpoint::MergeRuns { run, of, is_slice })
    }

    #[test]
    fn a_run_may_be_gone_only_where_what_it_became_is_there() {
        let kept = BTreeMap::from([
            (0, spill(&["a"])),
            (1, spill(&["b1", "b2"])),
            (2, spill(&["c"])),
            (3, merge("ab", &["a", "b1"])),
            (4, merge("bc", &["b2", "c"])),
        ]);
        let whole = |there: &[&str]| {
            let found = tasks_of_runs(&kept, &BTreeSet::new(), &|name| {
                there.contains(&name.to_str().unwrap())
            });
            found.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(whole(&["ab", "bc"]), [0, 1, 2, 3, 4]);
        assert_eq!(whole(&["a", "b1", "b2", "c", "ab", "bc"]), [0, 1, 2, 3, 4]);
        assert_eq!(whole(&["a", "b1", "b2", "c"]), [0, 1, 2]);
        // Of what was merged to "ab" everything is done again, and so is "bc", for it has a run of task 1.
        assert_eq!(whole(&["bc"]), [] as [u32; 0]);
        assert_eq!(whole(&["bc", "c"]), [2]);
        assert_eq!(whole(&["a", "bc", "c"]), [0, 2]);
    }

    #[test]
    fn a_run_with_holes_is_of_use_only_where_what_was_in_them_is_there() {
        let kept = BTreeMap::from([
            (0, spill(&["a"])),
            (1, spill(&["b"])),
            (2, merge("/low", &["a", "b"])),
            (3, merge("/high", &["a", "b"])),
            (4, spill(&["c"])),
            (5, merge("all", &["/low"])),
        ]);
        let whole = |there: &[&str]| {
            let found = tasks_of_runs(&kept, &BTreeSet::new(), &|name| {
                there.contains(&name.to_str().unwrap())
            });
            found.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(
            whole(&["a", "b", "c", "/low", "/high", "all"]),
            [0, 1, 2, 3, 4, 5]
        );
        assert_eq!(whole(&["a", "b", "c", "/high", "all"]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(
            whole(&["a", "b", "c", "/low"]),
            [4],
            "holes of what was high"
        );
        assert_eq!(
            whole(&["c", "/low", "/high", "all"]),
            [4],
            "a slice is not all of a run"
        );
    }
}
