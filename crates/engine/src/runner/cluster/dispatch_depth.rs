//! How many attempts wait at agents beside those that run: enough that a slot need not wait for the driver where tasks are
//! short, and none where they are not.
//!
//! ```text
//!   tasks of 0.2 ms   slot ▮▮▮▮▮▮▮▮▮▮   64 wait            tasks of 1 s   slot ▮▮▮▮▮▮▮▮▮▮   none waits:
//!                     the way to the driver and back: 1 ms or 2                   it may begin elsewhere sooner
//! ```
//!
//! The rule that must hold: what waits for one slot takes [`COVERED`] at most, as far as tasks take as long as those before; so
//! much later is the end of a stage at most, if others have nothing to do meanwhile.
//!
//! Decision: docs/decisions/short-tasks.md.

use std::time::Duration;

/// Work that waits for a slot. The way to the driver and back takes a millisecond or two, and 40 where links are full of segments.
const COVERED: Duration = Duration::from_millis(20);

/// Attempts that wait for a slot, at most. A power of two.
const AHEAD_MAX: f64 = 64.0;

/// So many tasks of a stage are looked at first.
const LOOKED_AT: u32 = 8;

/// The part that the last task has in the average.
const LAST_SHARE: f64 = 1.0 / 16.0;

/// How long the tasks of a stage take.
#[derive(Debug, Default)]
pub(super) struct DispatchDepth {
    tasks: u32,
    average_s: f64,
}

impl DispatchDepth {
    /// Takes in how long a task took, from when it had its slot.
    pub(super) fn note(&mut self, took: Duration) {
        self.tasks = self.tasks.saturating_add(1);
        let share = LAST_SHARE.max(1.0 / f64::from(self.tasks));
        self.average_s += share * (took.as_secs_f64() - self.average_s);
    }

    /// How many attempts are to wait for each slot: a power of two, so that it does not change with each task.
    pub(super) fn queued_per_slot(&self) -> usize {
        if self.tasks < LOOKED_AT {
            return 0;
        }
        let fit = COVERED.as_secs_f64() / self.average_s.max(1e-9);
        if fit < 1.0 {
            return 0;
        }
        1 << fit.min(AHEAD_MAX).log2() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(depth: &mut DispatchDepth, took_us: u64, tasks: u32) -> usize {
        for _ in 0..tasks {
            depth.note(Duration::from_micros(took_us));
        }
        depth.queued_per_slot()
    }

    #[test]
    fn as_much_waits_as_a_slot_does_soon() {
        for (took_us, most) in [
            (0, 64),
            (50, 64),
            (1_000, 16),
            (9_000, 2),
            (20_001, 0),
            (1_000_000, 0),
        ] {
            let mut depth = DispatchDepth::default();
            assert_eq!(
                ahead(&mut depth, took_us, LOOKED_AT - 1),
                0,
                "nobody knows yet"
            );
            assert_eq!(ahead(&mut depth, took_us, 1), most, "{took_us} us");
        }
    }

    #[test]
    fn a_long_task_among_short_ones_is_heard_of_at_once_and_forgotten_later() {
        let mut depth = DispatchDepth::default();
        assert_eq!(ahead(&mut depth, 100, 1_000), 64);
        assert_eq!(ahead(&mut depth, 2_000_000, 1), 0);
        assert_eq!(ahead(&mut depth, 100, 30), 1);
        assert_eq!(ahead(&mut depth, 100, 200), 64);
    }
}
