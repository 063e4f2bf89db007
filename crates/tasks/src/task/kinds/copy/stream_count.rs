//! How many files are best copied at once: found while they are copied, from the rate of all of them together.
//!
//! ```text
//!   first number ─▶ doubled while the rate grows by a third ─▶ back ─▶ fewer while the rate stays ─▶ held
//!                        ▲                                                                            │
//!                        └──── after a while, by half as many again; at once where the rate is another ┘
//! ```
//!
//! A measure is taken over as many files as are under way, or a multiple, so that files which began together count as one wave.
//! It begins once those have ended that were under way before the number changed. More are not tried where files take several times
//! as long as the fastest one: they wait for each other, and not for an answer. A store that says it has too many requests is
//! sent fewer at once. The rules that must hold: the number stays within its bounds; there is no clock in here; and what the steps
//! lose is a few parts in a hundred of the best number's time.
//!
//! Decision: docs/decisions/copy-streams.md.

use std::time::Duration;

/// More streams must bring a third of what they would if all of them were as fast as those before: of twice as many a third more.
const WORTHWHILE: f64 = 1.0 / 3.0;

/// Files that take so many times as long as the fastest one wait for each other: more of them at once would wait longer.
const QUEUED: u32 = 4;

/// Fewer are as good if they bring so much of the best rate.
const AS_GOOD: f64 = 0.97;

/// A rate outside of these parts of the one before is that of another link, or of other files.
const SAME_LINK: (f64, f64) = (0.7, 1.4);

/// Before the first measure, so many times as many files as are under way come to their ends: connections are made meanwhile.
const FIRST_SETTLING: u64 = 1;

/// Files of a measure, at least, and its time.
const MEASURED_FILES: u64 = 8;
const MEASURED: Duration = Duration::from_millis(200);

/// Measures until the next try, at first and at most.
const HELD: (u32, u32) = (8, 32);

/// A store is busy if it turns away so many requests of a hundred files.
const BUSY_PERCENT: u64 = 2;

/// What was done until now, all counted from the beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StreamProgress {
    /// The time.
    pub(super) at: Duration,
    /// Files that were copied.
    pub(super) files: u64,
    /// Their bytes, and what a file costs beside them.
    pub(super) work: u64,
    /// Requests that stores turned away, as they had too many.
    pub(super) throttled: u64,
    /// How long the last file took; nothing where files are of very different lengths.
    pub(super) took: Option<Duration>,
}

/// The number of streams.
#[derive(Debug)]
pub(super) struct StreamCount {
    now: usize,
    least: usize,
    most: usize,
    /// Where the measure began, and how many files are not of it yet.
    since: StreamProgress,
    /// Since when requests are counted that were turned away.
    calm: StreamProgress,
    settling: u64,
    step: Step,
    /// The time of the fastest file, and of all of the last measure in the mean.
    fastest: Duration,
    mean: Duration,
    /// The best number so far and its rate; nothing before the first measure.
    best: Option<(usize, f64)>,
    /// The rate that fewer streams must reach.
    reference: f64,
    /// How long the next number is held.
    hold: u32,
    /// Measures in a row that are those of another link.
    strange: u32,
    /// A store was busy with so many.
    busy_at: Option<usize>,
}

/// What the measure under way is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// More streams.
    More,
    /// The best number once more, before fewer are tried.
    Back,
    /// Fewer.
    Fewer,
    /// The best number, for so many measures more.
    Held(u32),
}

impl StreamCount {
    /// Begins with `first` streams.
    pub(super) fn new(first: usize, (least, most): (usize, usize)) -> Self {
        let least = least.max(1);
        StreamCount {
            now: first.clamp(least, most.max(least)),
            least,
            most: most.max(least),
            since: StreamProgress::default(),
            calm: StreamProgress::default(),
            settling: FIRST_SETTLING * first as u64,
            step: Step::More,
            fastest: Duration::MAX,
            mean: Duration::ZERO,
            best: None,
            reference: 0.0,
            hold: HELD.0,
            strange: 0,
            busy_at: None,
        }
    }

    /// How many there are to be.
    pub(super) fn now(&self) -> usize {
        self.now
    }

    /// Begins with more, as long as nothing was measured.
    pub(super) fn begin_with(&mut self, first: usize) {
        if self.best.is_none() && self.busy_at.is_none() {
            self.now = first.clamp(self.now, self.most.max(self.now));
            self.settling = FIRST_SETTLING * self.now as u64;
        }
    }

    /// Fewer were under way than there are to be: what was measured says nothing.
    pub(super) fn not_full(&mut self, seen: StreamProgress) {
        self.look_at_refusals(seen);
        (self.since, self.settling) = (seen, 0);
    }

    /// Learns of a file that was copied.
    pub(super) fn look(&mut self, seen: StreamProgress) {
        self.fastest = seen
            .took
            .map_or(self.fastest, |took| took.min(self.fastest));
        if self.look_at_refusals(seen) {
            return;
        }
        let files = seen.files.saturating_sub(self.since.files);
        if self.settling > 0 {
            if files >= self.settling {
                (self.since, self.settling) = (seen, 0);
            }
            return;
        }
        let took = seen.at.saturating_sub(self.since.at);
        let is_wave = files.is_multiple_of(self.now as u64);
        if files < MEASURED_FILES || took < MEASURED || !is_wave {
            return;
        }
        let work = seen.work.saturating_sub(self.since.work);
        let before = self.now;
        self.mean = took.mul_f64(before as f64 / files as f64);
        self.decide(work as f64 / took.as_secs_f64());
        self.since = seen;
        self.settling = if self.now == before { 0 } else { before as u64 };
    }

    /// Whether a store turned away too many requests: then there are fewer streams from now on.
    fn look_at_refusals(&mut self, seen: StreamProgress) -> bool {
        let files = seen.files.saturating_sub(self.calm.files);
        if self.settling == 0 && files < MEASURED_FILES.max(self.now as u64) {
            return false;
        }
        let refused = seen.throttled.saturating_sub(self.calm.throttled);
        self.calm = seen;
        if self.settling > 0 || refused * 100 <= files * BUSY_PERCENT {
            return false;
        }
        let before = self.now as u64;
        self.be_busy();
        (self.since, self.settling) = (seen, before);
        true
    }

    /// Goes on from a measure.
    fn decide(&mut self, rate: f64) {
        let Some((streams, best)) = self.best else {
            self.keep(rate);
            return self.try_more();
        };
        match self.step {
            Step::More if rate >= best * worthwhile(self.now, streams) => {
                self.keep(rate);
                self.try_more();
            }
            Step::More => (self.now, self.step) = (streams, Step::Back),
            Step::Back => {
                self.keep((rate + best) / 2.0);
                self.try_fewer();
            }
            Step::Fewer if rate >= self.reference * AS_GOOD => {
                self.best = Some((self.now, rate));
                self.try_fewer();
            }
            Step::Fewer => {
                self.now = streams;
                self.hold();
            }
            Step::Held(left) => self.held(left, (rate, best)),
        }
    }

    fn held(&mut self, left: u32, (rate, best): (f64, f64)) {
        let (low, high) = SAME_LINK;
        let is_strange = rate < best * low || rate > best * high;
        self.strange = if is_strange { self.strange + 1 } else { 0 };
        if self.strange > 1 {
            (self.hold, self.strange) = (HELD.0, 0);
            self.keep(rate);
            return self.try_more();
        }
        if !is_strange {
            self.keep((rate + best) / 2.0);
        }
        match left {
            0 => {
                // A store that was busy gets a little more than it had when it was not.
                self.busy_at = self.busy_at.map(|streams| streams + streams.div_ceil(8));
                self.fastest = Duration::MAX; // it may answer later by now
                self.try_more();
            }
            _ => self.step = Step::Held(left - 1),
        }
    }

    /// This number is the best so far.
    fn keep(&mut self, rate: f64) {
        self.best = Some((self.now, rate));
        self.reference = rate;
    }

    fn try_more(&mut self) {
        let more = match self.hold {
            held if held == HELD.0 => self.now * 2,
            _ => self.now + (self.now / 2).max(1),
        };
        let below_busy = self.busy_at.map_or(usize::MAX, |streams| streams * 3 / 4);
        let more = more.min(below_busy).min(self.most);
        let is_queued = self.mean > self.fastest.saturating_mul(QUEUED);
        if more <= self.now || is_queued {
            return self.try_fewer();
        }
        (self.now, self.step) = (more, Step::More);
    }

    fn try_fewer(&mut self) {
        let fewer = (self.now * 3).div_ceil(4).min(self.now - 1);
        let fewer = fewer.max(self.least);
        if fewer == self.now {
            return self.hold();
        }
        (self.now, self.step) = (fewer, Step::Fewer);
    }

    fn hold(&mut self) {
        self.step = Step::Held(self.hold);
        self.hold = (2 * self.hold).min(HELD.1);
    }

    /// A store has too many requests: it gets as many as went well before, if those were fewer; else fewer than now, and what was
    /// measured says nothing.
    fn be_busy(&mut self) {
        self.busy_at = Some(self.now);
        self.hold = HELD.1;
        match self.best {
            Some((streams, _)) if streams < self.now => {
                self.now = streams;
                self.hold();
            }
            _ => {
                self.now = (self.now * 3 / 4).max(self.least);
                self.best = None;
            }
        }
    }
}

/// How much the rate must grow by.
fn worthwhile(now: usize, before: usize) -> f64 {
    let more = now as f64 / before as f64 - 1.0;
    1.0 + WORTHWHILE * more
}

#[cfg(test)]
mod tests;
