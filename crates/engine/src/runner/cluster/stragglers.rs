//! Which attempts are likely to end later than a fresh one would: their tasks may have a second attempt.
//!
//! ```text
//!   attempt       ▓▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░░░░░░░   what is left of it, as fast as it is now
//!   a fresh one              ░░░░░░░            as long as those took that are done
//! ```
//!
//! Hadoop's rule: an attempt straggles if it has run longer than the mean of those that are done and one standard deviation, and
//! its end is later than that of a fresh one. Here it must be later by half a fresh attempt and a second: a second attempt costs a
//! slot, and begins with nothing. How fast it is now, its bytes say; of one that has read all of its input, or notes no bytes, only
//! how late it is.
//!
//! No clock: the time comes with each call.
//!
//! Decision: docs/decisions/second-attempts.md.

use std::collections::{BTreeMap, HashMap};
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use gristmill_tasks::task::{AttemptId, Side, TaskSpec};

/// No attempt straggles before.
const LEAST_S: f64 = 1.0;

/// How much later than a fresh one it must end: so many times what that takes, and so many seconds.
const LATER: (f64, f64) = (1.5, 1.0);

/// How fast an attempt is now is seen over half the time that a task takes, and so long at least.
const SEEN_S: f64 = 2.0;

/// An attempt that does nothing is taken for one that is so many times slower than it was.
const SLOWER_MAX: f64 = 20.0;

/// Who has read all but such a part of its input may have read all: what it does now, its bytes do not say.
const ALL_BUT: f64 = 0.1;

/// Tasks of the same kind, which take about the same time for as many bytes.
type Kind = (Discriminant<TaskSpec>, Option<Side>);

/// What was seen of the attempts of a job.
#[derive(Debug, Default)]
pub(super) struct Stragglers {
    done: HashMap<Kind, DoneAttempts>,
    running: BTreeMap<AttemptId, Seen>,
}

/// The attempts of one kind that are done.
#[derive(Debug, Default, Clone, Copy)]
struct DoneAttempts {
    count: f64,
    seconds: f64,
    squares: f64,
    bytes: f64,
}

/// An attempt that runs.
#[derive(Debug)]
struct Seen {
    kind: Kind,
    began_s: f64,
    bytes: f64,
    /// When it had done how many bytes: the last two looks, which are as far apart as it is looked at at least.
    looks: [(f64, f64); 2],
}

impl Stragglers {
    /// An attempt begins.
    pub(super) fn begin(&mut self, id: AttemptId, spec: &TaskSpec, now: Duration) {
        let began_s = now.as_secs_f64();
        let seen = Seen {
            kind: (discriminant(spec), spec.side()),
            began_s,
            bytes: 0.0,
            looks: [(began_s, 0.0); 2],
        };
        self.running.insert(id, seen);
    }

    /// It has done so many bytes.
    pub(super) fn note(&mut self, id: AttemptId, bytes: u64) {
        if let Some(seen) = self.running.get_mut(&id) {
            seen.bytes = bytes as f64;
        }
    }

    /// It is over; what it did counts if it took so long. One that is told to stop is no straggler any more, either.
    pub(super) fn end(&mut self, id: AttemptId, took: Option<Duration>) {
        if let (Some(seen), Some(took)) = (self.running.remove(&id), took) {
            let took_s = took.as_secs_f64();
            let done = self.done.entry(seen.kind).or_default();
            done.count += 1.0;
            done.seconds += took_s;
            done.squares += took_s * took_s;
            done.bytes += seen.bytes;
        }
    }

    /// The only attempts at their tasks that straggle, those first that would end last.
    pub(super) fn look(&mut self, now: Duration) -> Vec<AttemptId> {
        let now_s = now.as_secs_f64();
        let mut late = Vec::new();
        for (id, seen) in &mut self.running {
            let Some(done) = self.done.get(&seen.kind) else {
                continue;
            };
            seen.look(now_s, done.mean_s());
            if let Some(left_s) = seen.late_by(now_s, done) {
                late.push((left_s, *id));
            }
        }
        late.retain(|(_, id)| self.attempts_at(id.task) == 1);
        late.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        late.into_iter().map(|(_, id)| id).collect()
    }

    fn attempts_at(&self, task: u32) -> usize {
        let id = |attempt| AttemptId { task, attempt };
        self.running.range(id(0)..=id(u32::MAX)).count()
    }
}

impl DoneAttempts {
    fn mean_s(&self) -> f64 {
        self.seconds / self.count
    }

    fn mean_bytes(&self) -> f64 {
        self.bytes / self.count
    }

    /// The mean and one standard deviation; a quarter of the mean, where few are known.
    fn usual_s(&self) -> f64 {
        let mean_s = self.mean_s();
        let variance = self.squares / self.count - mean_s * mean_s;
        mean_s + variance.max(0.0).sqrt().max(mean_s / 4.0)
    }
}

impl Seen {
    fn look(&mut self, now_s: f64, mean_s: f64) {
        if now_s - self.looks[1].0 >= SEEN_S.max(mean_s / 2.0) {
            self.looks = [self.looks[1], (now_s, self.bytes)];
        }
    }

    /// How many seconds are left of it, if it straggles.
    fn late_by(&self, now_s: f64, done: &DoneAttempts) -> Option<f64> {
        let ran_s = now_s - self.began_s;
        if ran_s < done.usual_s().max(LEAST_S) {
            return None;
        }
        let larger = (self.bytes / done.mean_bytes().max(1.0)).max(1.0);
        let fresh_s = done.mean_s() * larger;
        let left_bytes = done.mean_bytes() - self.bytes;
        let left_s = if left_bytes > done.mean_bytes() * ALL_BUT {
            left_bytes / self.bytes_per_s(now_s)
        } else {
            ran_s - fresh_s // it is late already: as much again
        };
        (left_s > LATER.0 * fresh_s + LATER.1).then_some(left_s)
    }

    /// How fast it is now.
    fn bytes_per_s(&self, now_s: f64) -> f64 {
        let (at_s, bytes) = self.looks[0];
        let now = (self.bytes - bytes) / (now_s - at_s).max(f64::MIN_POSITIVE);
        now.max(self.bytes / (now_s - self.began_s) / SLOWER_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_tasks::task::SampleSpec;

    const MB: u64 = 1 << 20;

    fn spec() -> TaskSpec {
        TaskSpec::Sample(SampleSpec {
            stretches: Vec::new(),
            record_bytes: 100,
        })
    }

    fn id(task: u32, attempt: u32) -> AttemptId {
        AttemptId { task, attempt }
    }

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Ten tasks of 100 MB that took ten seconds, and one that has run since the beginning.
    fn with_ten_done() -> Stragglers {
        let mut seen = Stragglers::default();
        (0..=10).for_each(|task| seen.begin(id(task, 0), &spec(), at(0.0)));
        for task in 0..10 {
            seen.note(id(task, 0), 100 * MB);
            seen.end(id(task, 0), Some(at(9.5 + f64::from(task) / 10.0)));
        }
        seen
    }

    /// Runs task 10 at these rates, in MB/s for each half second; says when it was first a straggler.
    fn first_seen(rates: impl IntoIterator<Item = f64>) -> Option<f64> {
        let (mut seen, mut done, mut now_s) = (with_ten_done(), 0.0, 0.0);
        for rate in rates {
            now_s += 0.5;
            done += rate / 2.0;
            seen.note(id(10, 0), (done * MB as f64) as u64);
            if seen.look(at(now_s)) == [id(10, 0)] {
                return Some(now_s);
            }
        }
        None
    }

    #[test]
    fn an_attempt_that_is_slow_or_hangs_straggles_once_others_would_be_done() {
        let usual_s = 12.5;
        assert_eq!(first_seen([1.0; 100]), Some(usual_s), "a tenth as fast");
        assert_eq!(first_seen([0.0; 100]), Some(usual_s), "it hangs");
        let slowed = [10.0; 10].into_iter().chain([1.0; 90]);
        assert_eq!(first_seen(slowed), Some(usual_s), "slow from the middle on");
        assert_eq!(first_seen([10.0; 20]), None, "as fast as others");
        assert_eq!(first_seen([6.0; 34]), None, "a fresh one would end later");
        assert_eq!(first_seen([10.0; 60]), None, "it has more to do");
        let ends_late = [10.0; 19].into_iter().chain([0.0; 3]);
        assert_eq!(first_seen(ends_late), None, "all but done");
        let reads_first = [200.0].into_iter().chain([0.0; 100]);
        assert_eq!(first_seen(reads_first), Some(26.0), "it has read all");
        let reads_nearly_all = [199.0].into_iter().chain([0.0; 100]);
        assert_eq!(first_seen(reads_nearly_all), Some(26.0));
    }

    #[test]
    fn the_latest_come_first_and_those_with_a_second_attempt_not_at_all() {
        let mut seen = with_ten_done();
        seen.begin(id(11, 0), &spec(), at(0.0));
        seen.note(id(10, 0), 20 * MB);
        seen.note(id(11, 0), 10 * MB);
        assert_eq!(seen.look(at(20.0)), [id(11, 0), id(10, 0)]);
        seen.begin(id(11, 1), &spec(), at(20.0));
        assert_eq!(seen.look(at(21.0)), [id(10, 0)]);
        seen.end(id(11, 0), None);
        seen.end(id(10, 0), None);
        assert_eq!(seen.look(at(22.0)), []);
    }

    #[test]
    fn of_short_tasks_and_of_the_first_of_their_kind_nobody_knows() {
        let mut seen = Stragglers::default();
        seen.begin(id(0, 0), &spec(), at(0.0));
        assert_eq!(seen.look(at(1000.0)), [], "none is done");
        let mut seen = Stragglers::default();
        (0..2).for_each(|task| seen.begin(id(task, 0), &spec(), at(0.0)));
        seen.end(id(0, 0), Some(at(0.01)));
        assert_eq!(seen.look(at(0.9)), [], "short");
        assert_eq!(seen.look(at(1.1)), [id(1, 0)], "no bytes are noted");
    }
}
