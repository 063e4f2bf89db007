//! Several requests at once: what a far store answers late, it answers late for all of them.
//!
//! ```text
//!   items ──next──▶ this thread, and others beside it: one request each ──▶ replies, in the order of the items
//! ```
//!
//! Requests block, whatever the store, and a thread waits for each: 128 threads begin and end in some milliseconds, less
//! than one far request takes. So retries, faults and stores need to know nothing of it. The rule that must hold: what is
//! returned does not depend on which request was faster.
//!
//! Decision: docs/decisions/far-stores.md.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use gristmill_base::error::Result;

/// Short requests to one store that are under way at once: such as take long to answer and little to carry.
pub const SHORT_AT_ONCE: usize = 128;

/// What `request` says of each of the items, in their order; `most` are asked at once. Of several errors it is the
/// first, in the order of the items; none is begun after an error is known.
///
/// ```
/// use gristmill_storage::io::at_once::at_once;
/// assert_eq!(at_once(&[3, 1, 2], 2, |item| Ok(item * 10))?, [30, 10, 20]);
/// # Ok::<(), gristmill_base::Error>(())
/// ```
///
/// # Errors
/// Those of the requests.
pub fn at_once<T: Sync, R: Send>(
    items: &[T],
    most: usize,
    request: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut replies = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { break };
            let reply = request(item);
            if reply.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            replies.push((number, reply));
        }
        replies
    };
    let mut replies = thread::scope(|scope| {
        let beside = 1..most.min(items.len());
        // A system that gives no more threads makes it slower, and nothing else.
        let beside: Vec<_> = beside
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut replies = work();
        for thread in beside {
            replies.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        replies
    });
    replies.sort_unstable_by_key(|(number, _)| *number);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use gristmill_base::error::{Error, Kind};

    #[test]
    fn as_many_as_may_are_under_way_and_no_more() {
        let (now, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let together = Barrier::new(8); // hangs where fewer are under way
        let items: Vec<usize> = (0..64).collect();
        let replies = at_once(&items, 8, |item| {
            peak.fetch_max(1 + now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            together.wait();
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(*item)
        });
        assert_eq!(replies.unwrap(), items);
        assert_eq!(peak.load(Ordering::SeqCst), 8);
    }

    #[test]
    fn the_first_error_counts_and_the_rest_is_not_begun() {
        let items: Vec<usize> = (0..10_000).collect();
        let begun = AtomicUsize::new(0);
        let error = at_once(&items, 4, |item| {
            begun.fetch_add(1, Ordering::Relaxed);
            match item {
                ..5 => Ok(()),
                _ => Err(Error::new(Kind::Io, "ask", format!("no {item}"))),
            }
        });
        assert!(error.unwrap_err().to_string().contains("no 5"));
        assert!(begun.into_inner() < 100);
    }
}
