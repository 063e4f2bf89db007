//! A part that has much more to do than the others: said at the job's end, with the key that makes it so.

use crate::plan::mapreduce::{MapReduceSpec, UserCodeCommand};
use gristmill_tasks::task::UserTaskReport;

/// Pairs of a part from which on it matters: fewer are reduced in some hundredths of a second.
const WORTH_SAYING_PAIRS: u64 = 10_000;

/// What the largest of the parts is, if it has more than twice the mean. `reduced` are the pairs of all parts.
pub(super) fn uneven(
    spec: &MapReduceSpec,
    largest: &UserTaskReport,
    reduced: u64,
) -> Option<String> {
    let (parts, pairs) = (u64::from(spec.partitions), largest.records_in);
    if !matches!(spec.command, UserCodeCommand::Mapreduce)
        || pairs < WORTH_SAYING_PAIRS
        || pairs.saturating_mul(parts) <= reduced.saturating_mul(2)
    {
        return None;
    }
    let name = largest.files.first()?.name.display();
    let times = pairs as f64 * parts as f64 / reduced.max(1) as f64;
    let group = &largest.largest_group;
    let why = if group.pairs * 2 > pairs {
        format!(
            "{} of them are of the key {}, and a key is in one part. To share them among parts, make several keys of it in \
             the map, or fewer pairs with combine= or a native reduction",
            group.pairs, group.key
        )
    } else {
        "to make parts even, give other cuts, another partition_by, or more parts".to_owned()
    };
    Some(format!(
        "{name} has {pairs} of the {reduced} pairs, {times:.1} times the mean of {parts} parts: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_tasks::task::{LargestGroup, UserTaskFile};

    fn said(parts: u32, pairs: u64, reduced: u64, of_key: u64) -> Option<String> {
        let spec = MapReduceSpec {
            partitions: parts,
            ..serde_json::from_str(
                r#"{"name": "j", "inputs": [], "splits": [], "partitions": 1, "output": "o"}"#,
            )
            .unwrap()
        };
        let report = UserTaskReport {
            records_in: pairs,
            files: vec![UserTaskFile {
                name: "part-r-00001".into(),
                bytes: 0,
                records: 0,
                crc: None,
            }],
            largest_group: LargestGroup {
                pairs: of_key,
                key: "'hot'".into(),
            },
            ..Default::default()
        };
        uneven(&spec, &report, reduced)
    }

    #[test]
    fn a_part_over_twice_the_mean_is_said_with_its_key() {
        let hot = said(8, 90_000, 100_000, 90_000).unwrap();
        assert!(hot.starts_with(
            "part-r-00001 has 90000 of the 100000 pairs, 7.2 times the mean of 8 parts: 90000 of them are of the key 'hot'"
        ));
        assert!(
            said(8, 30_000, 100_000, 10)
                .unwrap()
                .contains("give other cuts")
        );
        assert_eq!(said(8, 25_000, 100_000, 25_000), None);
        assert_eq!(said(8, 9_999, 10_000, 9_999), None);
        assert_eq!(said(1, 90_000, 90_000, 90_000), None);
    }
}
