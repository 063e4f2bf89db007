//! An input that changes while it is sorted, at any call of the job to its store: mapped input loses pages under the
//! job's feet (SIGBUS), other input ends early. The job fails and says so, or had all it needed already.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_engine::Kind;
use gristmill_engine::jobs::Status;
use gristmill_engine::runner::Control;
use gristmill_engine::storage::LocalDisk;
use gristmill_engine::storage::faulty::{Fault, FaultPlan};
use serde_json::{Value, json};

use super::support::{Place, RECORD, Tree, for_each_number};
use super::watched::{Call, Watch, Watched};

/// Large enough to be mapped.
const ROWS: u64 = 30_000;

fn terasort() -> Value {
    json!({"terasort": {"inputs": ["in"], "output": "out", "partitions": 3, "workers": 2, "no_sync": true}})
}

fn with_input() -> Place {
    let place = Place::local();
    place.succeed(&json!({"teragen": {"rows": ROWS, "output": "in", "files": 1, "no_sync": true}}));
    place
}

fn mappable(place: &Place) -> Arc<dyn LocalDisk> {
    place.store()
}

/// The same files through a store that could fail and does not, and that cannot be mapped.
fn unmappable(place: &Place) -> Arc<dyn LocalDisk> {
    place.faulty(FaultPlan {
        fault: Fault::Code(5),
        from: u64::MAX,
        to: u64::MAX,
    })
}

fn set_records(path: &Path, records: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(records * RECORD as u64).unwrap();
}

fn without_input(mut tree: Tree) -> Tree {
    tree.retain(|path, _| !path.starts_with("in"));
    tree
}

/// Returns how many reads of the input a job makes.
fn changes_are_noticed(store: fn(&Place) -> Arc<dyn LocalDisk>) -> usize {
    let place = with_input();
    let watch = Watch::new();
    let report = place.run_on(
        Watched::over(store(&place), &watch),
        &terasort(),
        &Control::default(),
    );
    assert_eq!(report.status, Status::Succeeded);
    let good = without_input(place.tree());
    let calls = watch.calls();
    // From here on the job knows what its input was.
    let first = calls
        .iter()
        .position(|call| call.operation == "create_directory")
        .unwrap();
    // Here it looks for the last time; behind that all output is written.
    let looks = |call: &Call| call.operation == "stat" && call.path.ends_with("part-m-00000");
    let last_look = calls.iter().rposition(looks).unwrap();
    let last = calls.len() - 1;
    let noticed = AtomicU64::new(0);
    let at_calls: Vec<usize> = (first..last)
        .step_by(last / 60 + 1)
        .chain(last.saturating_sub(15)..last)
        .collect();
    for_each_number(3 * at_calls.len() as u64, |number| {
        let at_call = at_calls[number as usize / 3] as u64;
        let records = [ROWS / 2 + 7, 0, ROWS + 1][number as usize % 3];
        let place = with_input();
        let input = place.path("in/part-m-00000");
        let watch = Watch::harming(at_call, move || set_records(&input, records));
        let report = place.run_on(
            Watched::over(store(&place), &watch),
            &terasort(),
            &Control::default(),
        );
        let after = without_input(place.tree());
        if report.status == Status::Succeeded {
            assert!(
                at_call > last_look as u64,
                "not noticed: {records} at call {at_call}"
            );
            assert!(
                after == good,
                "wrong output: {records} records left at call {at_call}"
            );
            return;
        }
        let failure = report.failure.unwrap();
        assert_eq!(
            failure.kind(),
            Kind::InputChanged,
            "at call {at_call}: {failure}"
        );
        assert!(failure.to_string().contains("in/part-m-00000"), "{failure}");
        assert!(after.is_empty(), "left: {:?}", after.keys());
        noticed.fetch_add(1, Ordering::Relaxed);
    });
    let (noticed, all) = (noticed.into_inner() as usize, 3 * at_calls.len());
    assert!(noticed > all / 3, "{noticed} of {all}");
    calls.iter().filter(|call| call.operation == "read").count()
}

/// Also where the input is mapped; then only the sample is read, where the page cache does not have it.
#[test]
fn input_that_changes_is_noticed() {
    let (mapped, read) = (
        changes_are_noticed(mappable),
        changes_are_noticed(unmappable),
    );
    assert!(mapped < read, "it is not mapped: {mapped} and {read} reads");
}
