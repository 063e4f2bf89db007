//! Streams over links that are simulated: each number is compared with the best fixed one, and with the first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

/// What a file meets: seconds, and how often it was turned away.
type Link = fn(now: f64, under_way: usize, files: u64) -> (f64, u64);

/// A link of so many files a second, which answers after 20 ms.
fn of_rate(rate: f64, under_way: usize) -> (f64, u64) {
    ((under_way as f64 / rate).max(0.02), 0)
}

const BOUNDS: (usize, usize) = (1, 512);

/// A copy of many files of one length.
struct Copy {
    link: Link,
    files: u64,
    /// Parts in a hundred by which the times of files differ.
    noise: u64,
}

struct Outcome {
    took_s: f64,
    /// The number after each file.
    streams: Vec<usize>,
    throttled: u64,
}

impl Copy {
    /// With so many streams, or with those that are found from them on.
    fn run(&self, first: usize, finds: bool) -> Outcome {
        let mut count = StreamCount::new(first, BOUNDS);
        let (mut seen, mut streams) = (StreamProgress::default(), Vec::new());
        let (mut begun, mut now_us) = (0, 0);
        let mut under_way = BinaryHeap::new();
        while seen.files < self.files {
            let most = if finds { count.now() } else { first };
            while under_way.len() < most && begun < self.files {
                begun += 1;
                let now = now_us as f64 / 1e6;
                let (took, away) = (self.link)(now, under_way.len() + 1, begun);
                seen.throttled += away;
                let chance = (begun * 2_654_435_761) % 201;
                let noise = 1.0 + (chance as f64 - 100.0) / 100.0 * self.noise as f64 / 100.0;
                let took_us = (took * noise * 1e6) as u64;
                under_way.push(Reverse((now_us + took_us, took_us)));
            }
            let Reverse((ended_us, took_us)) = under_way.pop().unwrap();
            now_us = ended_us;
            seen.took = Some(Duration::from_micros(took_us));
            seen.files += 1;
            seen.work += 100_000;
            seen.at = Duration::from_micros(now_us);
            match under_way.len() + 1 < most {
                true => count.not_full(seen),
                false => count.look(seen),
            }
            streams.push(count.now());
        }
        Outcome {
            took_s: now_us as f64 / 1e6,
            throttled: seen.throttled,
            streams,
        }
    }

    /// What is found takes at most so much of the time of the best fixed number, and of the first one.
    fn check(&self, first: usize, (of_best, of_first): (f64, f64)) -> Outcome {
        let found = self.run(first, true);
        let fixed = (0..10).map(|power| self.run(1 << power, false).took_s);
        let best = fixed.fold(f64::INFINITY, f64::min);
        let begun = self.run(first, false).took_s;
        let last = found.streams.last();
        assert!(
            found.took_s <= best * of_best,
            "from {first}: {} s, best {best} s, {last:?}",
            found.took_s
        );
        assert!(
            found.took_s <= begun * of_first,
            "from {first}: {} s, fixed {begun} s, {last:?}",
            found.took_s
        );
        found
    }
}

/// The changes of the number in the last half.
fn changes(outcome: &Outcome) -> usize {
    let half = &outcome.streams[outcome.streams.len() / 2..];
    half.windows(2).filter(|two| two[0] != two[1]).count()
}

fn mean_of_last_half(outcome: &Outcome) -> f64 {
    let half = &outcome.streams[outcome.streams.len() / 2..];
    half.iter().sum::<usize>() as f64 / half.len() as f64
}

#[test]
fn what_answers_late_is_asked_as_much_as_is_allowed() {
    for noise in [0, 20, 50] {
        let copy = Copy {
            link: |_, _, _| (0.1, 0),
            files: 200_000,
            noise,
        };
        for first in [2, 16, 128] {
            let found = copy.check(first, (1.10, 1.0));
            assert!(mean_of_last_half(&found) > 450.0, "from {first}");
        }
    }
}

#[test]
fn what_carries_no_more_is_not_asked_for_more() {
    // 20 ms late, 1,000 files a second: 20 streams are enough.
    for noise in [0, 20, 50] {
        let copy = Copy {
            link: |_, under_way, _| ((under_way as f64 / 1000.0).max(0.02), 0),
            files: 100_000,
            noise,
        };
        for first in [1, 8, 64, 512] {
            let found = copy.check(first, (1.08, 1.05));
            let streams = mean_of_last_half(&found);
            assert!(
                (15.0..=200.0).contains(&streams),
                "from {first}, noise {noise}: {streams}"
            );
            assert!(changes(&found) < 200, "{}", changes(&found));
        }
    }
}

#[test]
fn a_disk_that_is_slower_with_more_gets_few() {
    for noise in [0, 20, 50] {
        let copy = Copy {
            link: |_, under_way, _| {
                let beyond = under_way.saturating_sub(4) as f64;
                let rate = 100.0 * (under_way as f64).min(4.0) / (1.0 + 0.1 * beyond);
                (under_way as f64 / rate, 0)
            },
            files: 50_000,
            noise,
        };
        for first in [1, 16] {
            let found = copy.check(first, (1.10, 1.05));
            let streams = mean_of_last_half(&found);
            assert!(
                (2.5..=8.0).contains(&streams),
                "from {first}, noise {noise}: {streams}"
            );
        }
    }
}

#[test]
fn a_store_that_is_busy_is_sent_less() {
    // It takes 64 at once, each of 50 ms; of those beyond, each is turned away, and less is done.
    let copy = Copy {
        link: |_, under_way, _| match under_way {
            ..=64 => (0.05, 0),
            _ => (under_way as f64 * 0.001, 1),
        },
        files: 100_000,
        noise: 20,
    };
    for first in [8, 64, 256] {
        let found = copy.check(first, (1.2, 1.05));
        let streams = mean_of_last_half(&found);
        assert!((30.0..=70.0).contains(&streams), "from {first}: {streams}");
        assert!(
            found.throttled * 20 < copy.files,
            "from {first}: {}",
            found.throttled
        );
    }
}

#[test]
fn a_link_that_changes_is_found_again() {
    // First 1,000 files a second; then ten times as many, as late. And the other way round.
    let wider: Link =
        |_, under_way, files| of_rate([1e3, 1e4][usize::from(files >= 50_000)], under_way);
    let narrower: Link =
        |_, under_way, files| of_rate([1e4, 1e3][usize::from(files >= 50_000)], under_way);
    let last = |link, files, bounds| {
        let copy = Copy {
            link,
            files,
            noise: 20,
        };
        copy.check(16, bounds).streams.last().copied().unwrap_or(0)
    };
    let (wide, narrow) = (
        last(wider, 300_000, (1.15, 1.0)),
        last(narrower, 100_000, (1.10, 1.0)),
    );
    assert!(wide > 100 && narrow < 200, "{wide} {narrow}");
}

#[test]
fn a_short_copy_is_not_slower_than_with_the_first_number() {
    for files in [10, 100, 2_000, 5_000] {
        let links: [Link; 3] = [
            |_, _, _| (0.05, 0),
            |_, under_way, _| of_rate(1e3, under_way),
            |_, under_way, _| {
                (
                    under_way as f64 / (100.0 + 40.0 * (under_way as f64).sqrt()),
                    0,
                )
            },
        ];
        for link in links {
            let copy = Copy {
                link,
                files,
                noise: 20,
            };
            for first in [4, 16, 128] {
                copy.check(first, (f64::INFINITY, 1.08));
            }
        }
    }
}

#[test]
fn the_number_stays_within_its_bounds() {
    for (first, bounds, begins) in [(0, (0, 0), 1), (100, (1, 8), 8), (1, (4, 9), 4)] {
        let mut count = StreamCount::new(first, bounds);
        assert_eq!(count.now(), begins);
        for number in 1..10_000 {
            count.look(StreamProgress {
                at: Duration::from_millis(10 * number / count.now() as u64),
                files: number,
                work: number,
                throttled: 0,
                took: None,
            });
            assert!((1..=9).contains(&count.now()));
        }
    }
}
