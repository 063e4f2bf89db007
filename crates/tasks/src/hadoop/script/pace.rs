//! How long to leave a script's pipe alone: each time that we come to it a thread of ours wakes, which drives the script
//! from its processor and its cache.
//!
//! ```text
//!   pipe full (or empty)                      so much has moved as is worth it: come back
//!   ──────┬──────────────────────────────────────────────┬────────▶ time
//!         └─ rest: as long as the script takes to read (write) so much, if it goes on as since the last rest
//! ```
//!
//! A script that is too fast for a rest, or that does not move, is waited for as ever.
//!
//! Decision: docs/decisions/script-pace.md.

use std::time::{Duration, Instant};

/// What is worth coming back for, of pipes that hold more than twice as much: the few kilobytes that scripts read or write
/// at once are not.
const WORTH_BYTES: usize = 256 << 10;

/// What a script does next is not known: a rest is no longer. One that is faster is not left alone at all: all else may be
/// waiting for it.
const REST_MAX: Duration = Duration::from_millis(10);
const REST_MIN: Duration = Duration::from_millis(5);

/// The pace of one direction of a script.
#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes that have moved since there was nothing to do last, and when that was.
    bytes: usize,
    since: Instant,
    /// How long to rest by what had moved then.
    before: Duration,
    worth_bytes: usize,
}

impl Pace {
    /// Of a pipe that holds `pipe_bytes`.
    pub(super) fn new(pipe_bytes: usize) -> Self {
        Pace {
            bytes: 0,
            since: Instant::now(),
            before: Duration::ZERO,
            worth_bytes: WORTH_BYTES.min(pipe_bytes / 2),
        }
    }

    /// Bytes have moved.
    pub(super) fn moved(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// How long to rest, in whole milliseconds, now that there is nothing to do. The script must have been slow twice in
    /// succession: once it is while we sort what it wrote.
    pub(super) fn rest_ms(&mut self) -> u16 {
        let now = rest_of(self.bytes, self.since.elapsed(), self.worth_bytes);
        let rest = now.min(self.before);
        (self.bytes, self.since, self.before) = (0, Instant::now(), now);
        if rest < REST_MIN {
            return 0;
        }
        u16::try_from(rest.as_millis()).unwrap_or(u16::MAX)
    }
}

fn rest_of(bytes: usize, took: Duration, worth_bytes: usize) -> Duration {
    if bytes == 0 {
        return Duration::ZERO;
    }
    let rest_s = took.as_secs_f64() * worth_bytes as f64 / bytes as f64;
    Duration::from_secs_f64(rest_s.min(REST_MAX.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_as_long_as_what_is_worth_it_takes() {
        let ms = Duration::from_millis;
        let rest = |bytes, took| rest_of(bytes, took, 1000).as_millis();
        assert_eq!((rest(500, ms(4)), rest(4000, ms(4))), (8, 1));
        assert_eq!((rest(1, ms(4)), rest(1, Duration::MAX)), (10, 10));
        assert_eq!(rest(0, ms(4)), 0); // nobody knows how long it takes
    }

    #[test]
    fn a_script_that_is_slow_once_is_not_left_alone() {
        let mut pace = Pace::new(100);
        assert_eq!((pace.worth_bytes, pace.rest_ms()), (50, 0));
        let mut slow = |bytes| {
            pace.moved(bytes);
            pace.since = Instant::now()
                .checked_sub(Duration::from_millis(20))
                .unwrap();
            pace.rest_ms()
        };
        assert_eq!(
            [slow(20), slow(20), slow(10_000), slow(20), slow(20)],
            [0, 10, 0, 0, 10]
        );
    }
}
