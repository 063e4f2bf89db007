//! Reports of attempts, as the driver is sent them.

use std::collections::BTreeMap;

use crate::runner::messages::{WorkerUse, reply_bytes};
use gristmill_base::error::{Error, Kind, Result};
use gristmill_tasks::task::TaskReport;

/// The longest report: with those before it, it fits in one reply (`storage/net/http_client.rs`).
const REPORT_BYTES_MAX: usize = 32 << 20;

/// How an attempt ended, as the driver is sent it. A report that is too long fails the attempt.
pub(super) fn report_bytes(used: WorkerUse, outcome: Result<TaskReport>) -> Vec<u8> {
    let counters = outcome.as_ref().map_or(0, counters_bytes);
    let reply = reply_bytes(used, outcome).and_then(|reply| match reply.len() {
        bytes if bytes > REPORT_BYTES_MAX => Err(too_long(bytes, counters)),
        _ => Ok(reply),
    });
    let reply = reply.or_else(|error| reply_bytes(used, Err(error)));
    reply.unwrap_or_default()
}

fn counters_bytes(report: &TaskReport) -> usize {
    let TaskReport::User(report) = report else {
        return 0;
    };
    let groups = report.counters.iter();
    let of_group = |(group, names): (&String, &BTreeMap<String, i64>)| {
        group.len()
            + names
                .keys()
                .map(|name| name.len() + size_of::<i64>())
                .sum::<usize>()
    };
    groups.map(of_group).sum()
}

fn too_long(bytes: usize, counters: usize) -> Error {
    let message = format!(
        "its report takes {bytes} bytes, {counters} of them for counters of user code, and an agent sends at most {REPORT_BYTES_MAX}"
    );
    Error::new(Kind::UserCode, "report a task", message)
        .advise("count fewer things: what is counted for each key belongs in the output")
        .final_error()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::messages::reply_of;
    use gristmill_storage::net::requests::RequestCounts;
    use gristmill_tasks::task::UserTaskReport;

    #[test]
    fn a_report_that_is_too_long_fails_its_attempt() {
        let used = WorkerUse {
            peak_bytes: 7,
            requests: RequestCounts::default(),
        };
        let report = |counters: u32| {
            let names = (0..counters).map(|n| (format!("{n:0100}"), 1)).collect();
            TaskReport::User(UserTaskReport {
                counters: BTreeMap::from([("mine".to_owned(), names)]),
                ..UserTaskReport::default()
            })
        };
        let sent = report_bytes(used, Ok(report(10)));
        assert!(reply_of(&sent).unwrap().1.is_ok());
        let sent = report_bytes(used, Ok(report(400_000)));
        assert!(sent.len() < 10_000);
        let (used, outcome) = reply_of(&sent).unwrap();
        let error = outcome.unwrap_err();
        assert_eq!(used.peak_bytes, 7);
        assert!(!error.retryable());
        let said = error.to_string();
        assert!(said.contains("43200004 of them for counters"), "{said}");
        assert!(said.contains("at most 33554432"), "{said}");
    }
}
