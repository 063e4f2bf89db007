//! Specs, reports and errors to bytes and back: whatever they hold comes back equal, damage is an error, and what
//! tasks share crosses once.

mod reports;
mod specs;

use std::sync::Arc;

use gristmill_engine::Kind;
use gristmill_engine::order::CutPoints;
use gristmill_engine::task::wire::{self, Message, Receiver, Sender};
use gristmill_engine::task::{
    AttemptId, EntryPlan, GatherSpec, OutputFile, RangeSpec, TaskReport, TaskSpec,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use self::reports::{KINDS, error, report};
use self::specs::spec;

/// Alone, and as the second message between two ends.
fn comes_back<T: Message + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = wire::to_bytes(value).unwrap();
    assert_eq!(&wire::from_bytes::<T>(&bytes).unwrap(), value);
    let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
    for _ in 0..2 {
        let bytes = sender.to_bytes(value).unwrap();
        assert_eq!(&receiver.from_bytes::<T>(&bytes).unwrap(), value);
    }
}

/// Every byte changed and every cut is an error; so are bytes that were never a message.
fn damage_shows<T: Message + std::fmt::Debug>(value: &T, noise: &[u8]) {
    let bytes = wire::to_bytes(value).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        assert!(wire::from_bytes::<T>(&damaged).is_err(), "byte {at}");
        assert!(wire::from_bytes::<T>(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert!(wire::from_bytes::<T>(noise).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_spec_comes_back(spec in spec()) {
        comes_back(&spec);
    }

    #[test]
    fn every_report_comes_back(report in report()) {
        comes_back(&report);
    }

    #[test]
    fn every_error_comes_back(error in error()) {
        comes_back(&error);
    }

    #[test]
    fn many_specs_cross_one_connection(specs in vec(spec(), 0..20)) {
        let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
        for spec in &specs {
            let bytes = sender.to_bytes(spec).unwrap();
            prop_assert_eq!(&receiver.from_bytes::<TaskSpec>(&bytes).unwrap(), spec);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn damage_is_an_error(spec in spec(), report in report(), noise in vec(any::<u8>(), 0..99)) {
        damage_shows(&spec, &noise);
        damage_shows(&report, &noise);
    }

    /// Past the checksum, too: whoever writes such bytes gets an error, not a crash.
    #[test]
    fn noise_with_a_right_checksum_is_an_error_or_a_value(noise in vec(any::<u8>(), 4..99)) {
        let mut bytes = b"spec".to_vec();
        bytes.extend(wire::VERSION.to_le_bytes());
        bytes.extend(twox_hash::XxHash3_64::oneshot(&noise).to_le_bytes());
        bytes.extend(noise);
        let _ = wire::from_bytes::<TaskSpec>(&bytes);
    }
}

/// A stage of reduces over many maps: the list of inputs and the cut points cross with the first.
#[test]
fn what_tasks_share_crosses_once() {
    let inputs: Vec<AttemptId> = (0..10_000)
        .map(|task| AttemptId { task, attempt: 0 })
        .collect();
    let inputs = Arc::new(inputs);
    let plan = Arc::new(EntryPlan {
        cuts: CutPoints::from_sample(vec![], 999),
        record_bytes: 100,
        batch_records: 1,
    });
    let spec = |offset| {
        TaskSpec::Reduce(GatherSpec {
            ranges: vec![RangeSpec {
                file: OutputFile {
                    path: "part".into(),
                    bytes: 1,
                },
                offset,
                buckets: 0..1,
            }],
            inputs: inputs.clone(),
            plan: plan.clone(),
        })
    };
    let (mut sender, mut receiver) = (Sender::default(), Receiver::default());
    let sizes: Vec<usize> = (0..100)
        .map(|offset| {
            let bytes = sender.to_bytes(&spec(offset)).unwrap();
            assert_eq!(
                receiver.from_bytes::<TaskSpec>(&bytes).unwrap(),
                spec(offset)
            );
            bytes.len()
        })
        .collect();
    assert!(sizes[0] > 40_000, "{sizes:?}");
    assert!(sizes[1..].iter().all(|bytes| *bytes < 120), "{sizes:?}");
    // Equal values count as one, wherever they lie; a process that is started anew gets them anew.
    let again = |sender: &mut Sender| {
        let TaskSpec::Reduce(mut spec) = spec(0) else {
            unreachable!()
        };
        spec.inputs = Arc::new(inputs.to_vec());
        sender.to_bytes(&TaskSpec::Reduce(spec)).unwrap().len()
    };
    assert!(again(&mut sender) < 120);
    assert!(again(&mut Sender::default()) > 40_000);
    // A message that was lost shows: what it carried is missing.
    let lost = sender.to_bytes(&spec(0)).unwrap();
    let error = wire::from_bytes::<TaskSpec>(&lost).unwrap_err();
    assert!(
        error.to_string().contains("a shared value is missing"),
        "{error}"
    );
}

#[test]
fn another_version_and_another_kind_are_told() {
    let report = TaskReport::Sample(Vec::new());
    let mut bytes = wire::to_bytes(&report).unwrap();
    let error = wire::from_bytes::<TaskSpec>(&bytes).unwrap_err();
    assert!(
        error.to_string().contains("it holds something else"),
        "{error}"
    );
    bytes[4] += 1;
    let error = wire::from_bytes::<TaskReport>(&bytes).unwrap_err();
    assert_eq!(error.kind(), Kind::BadInput);
    assert_eq!(
        error.to_string(),
        format!(
            "cannot read a task's report from another process: it has format {}, and this version reads format {}. \
             What to do: run the same version of Gristmill in all processes of the job.",
            wire::VERSION + 1,
            wire::VERSION
        )
    );
}

#[test]
fn kinds_have_the_names_that_serde_gives_them() {
    for kind in KINDS {
        assert_eq!(json!(kind), json!(kind.name()));
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
}
