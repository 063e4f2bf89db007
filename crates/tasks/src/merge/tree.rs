//! A loser tree: of K sorted sources, the one whose next record comes first.
//!
//! ```text
//!                winner ─▶ caller takes its record, and its source goes on
//!                  │
//!                (1)                each inner node keeps the loser of the match played there
//!              ┌──┴──┐
//!             (2)   (3)             the source that went on plays only the nodes above it:
//!            ┌─┴─┐ ┌─┴─┐            log2 K matches a record
//!           s0  s1 s2  s3
//! ```
//!
//! A match compares prefixes, eight bytes of key held in the node, then the eight behind them; only where they are equal
//! too does it look at records, and where those are equal the source with the smaller number wins: the merge is stable. A
//! source at its end has the largest prefix and loses every tie. A source whose next record has the key of the one before
//! plays no match at all: it would win them again.
//!
//! Source: Knuth, The Art of Computer Programming, volume 3, 5.4.1, "trees of losers".
//!
//! Decision: docs/decisions/loser-tree.md.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use gristmill_base::record::shape::Shape;

/// The next record of each source.
pub trait Heads {
    /// The next record of `source`, or `None` where it has come to its end.
    fn head(&self, source: usize) -> Option<&[u8]>;

    /// Whether the next record of `source` has the key of the one before it, as far as that is easy to tell.
    fn repeats(&self, _source: usize) -> bool {
        false
    }
}

/// A source in a match.
#[derive(Debug, Clone, Copy)]
struct Player {
    prefix: u64,
    /// The eight bytes behind it, where keys are long and often alike.
    second: u64,
    source: usize,
}

/// The tree over the sources 0 to K - 1.
#[derive(Debug)]
pub struct LoserTree<S> {
    shape: S,
    /// `losers[1]` is the root; the nodes below `n` are `2n` and `2n + 1`; source `s` stands at `K + s`.
    losers: Vec<Player>,
    winner: Player,
}

impl<S: Shape> LoserTree<S> {
    /// Plays all matches between `sources` sources, at least one.
    ///
    /// ```
    /// use gristmill_tasks::merge::tree::{Heads, LoserTree};
    /// use gristmill_base::record::shape::LineShape;
    /// struct Queues(Vec<Vec<&'static str>>);
    /// impl Heads for Queues {
    ///     fn head(&self, source: usize) -> Option<&[u8]> {
    ///         self.0[source].first().map(|line| line.as_bytes())
    ///     }
    /// }
    /// let mut queues = Queues(vec![vec!["b\n", "c\n"], vec![], vec!["a\n", "d\n"]]);
    /// let mut tree = LoserTree::new(LineShape { descending: false }, 3, &queues);
    /// let mut merged = String::new();
    /// while queues.head(tree.winner()).is_some() {
    ///     merged += queues.0[tree.winner()].remove(0);
    ///     tree.replay(&queues);
    /// }
    /// assert_eq!(merged, "a\nb\nc\nd\n");
    /// ```
    pub fn new(shape: S, sources: usize, heads: &impl Heads) -> Self {
        let nobody = Player {
            prefix: u64::MAX,
            second: u64::MAX,
            source: usize::MAX,
        };
        let mut tree = LoserTree {
            shape,
            losers: vec![nobody; sources.max(1)],
            winner: nobody,
        };
        // From the last node to the first, each is played by the winners of the two below it.
        let mut winners = vec![nobody; 2 * sources];
        for source in 0..sources {
            winners[sources + source] = tree.player(source, heads);
        }
        for node in (1..sources).rev() {
            let (one, other) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if tree.beats(&one, &other, heads) {
                (one, other)
            } else {
                (other, one)
            };
            winners[node] = winner;
            tree.losers[node] = loser;
        }
        if let Some(winner) = winners.get(1) {
            tree.winner = *winner;
        }
        tree
    }

    /// The source whose record comes next. It has none where all sources have come to their ends.
    #[inline]
    pub fn winner(&self) -> usize {
        self.winner.source
    }

    /// Plays again after the winner's source has gone on to its next record.
    #[inline]
    pub fn replay(&mut self, heads: &impl Heads) {
        let mut here = self.player(self.winner.source, heads);
        if here.prefix == self.winner.prefix && heads.repeats(here.source) {
            return; // what the record before has won against, this one wins against
        }
        let mut node = (self.losers.len() + here.source) / 2;
        while node > 0 {
            let there = self.losers[node];
            let lost = if there.prefix != here.prefix {
                there.prefix < here.prefix
            } else if there.second != here.second {
                there.second < here.second
            } else {
                self.wins_tie(&there, &here, heads)
            };
            (here, self.losers[node]) = choose(lost, there, here);
            node /= 2;
        }
        self.winner = here;
    }

    #[inline]
    fn player(&self, source: usize, heads: &impl Heads) -> Player {
        let (prefix, second) = heads.head(source).map_or((u64::MAX, u64::MAX), |record| {
            (self.shape.prefix(record), self.shape.second_prefix(record))
        });
        Player {
            prefix,
            second,
            source,
        }
    }

    fn beats(&self, one: &Player, other: &Player, heads: &impl Heads) -> bool {
        let prefixes = |player: &Player| (player.prefix, player.second);
        match prefixes(one).cmp(&prefixes(other)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.wins_tie(one, other, heads),
        }
    }

    /// Whether `one` comes before `other`, whose prefixes are the same.
    #[inline(never)]
    fn wins_tie(&self, one: &Player, other: &Player, heads: &impl Heads) -> bool {
        let order = match (heads.head(one.source), heads.head(other.source)) {
            (Some(one), Some(other)) => self.shape.compare(one, other),
            (one, other) => other.is_some().cmp(&one.is_some()),
        };
        order.then(one.source.cmp(&other.source)).is_lt()
    }
}

/// The two players, exchanged unless `so`. Who wins a match is a coin toss, which a branch guesses wrong every other
/// time: with one a record takes 50 ns at 8 sources and 95 at 64, without it 25 and 57 (`cargo bench`, medians on two
/// cores that had other work too).
#[inline]
fn choose(so: bool, one: Player, other: Player) -> (Player, Player) {
    let select = |yes: Player, no: Player| Player {
        prefix: select_unpredictable(so, yes.prefix, no.prefix),
        second: select_unpredictable(so, yes.second, no.second),
        source: select_unpredictable(so, yes.source, no.source),
    };
    (select(one, other), select(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_base::record::shape::{Fixed, LineShape};
    use proptest::collection::vec;
    use proptest::prelude::*;

    struct Queues<S> {
        shape: S,
        records: Vec<Vec<Vec<u8>>>,
        at: Vec<usize>,
    }

    impl<S: Shape> Heads for Queues<S> {
        fn head(&self, source: usize) -> Option<&[u8]> {
            self.records[source].get(self.at[source]).map(Vec::as_slice)
        }

        fn repeats(&self, source: usize) -> bool {
            let at = self.at[source];
            let key = |at: usize| {
                self.records[source]
                    .get(at)
                    .map(|record| self.shape.key(record))
            };
            at > 0 && key(at).is_some() && key(at) == key(at - 1)
        }
    }

    /// The records of sorted sources in merged order, each with its source.
    fn merged(shape: impl Shape, records: Vec<Vec<Vec<u8>>>) -> Vec<(usize, Vec<u8>)> {
        let at = vec![0; records.len()];
        let mut queues = Queues { shape, records, at };
        let mut tree = LoserTree::new(shape, queues.at.len(), &queues);
        let mut all = Vec::new();
        while let Some(record) = queues.head(tree.winner()) {
            all.push((tree.winner(), record.to_vec()));
            queues.at[tree.winner()] += 1;
            tree.replay(&queues);
        }
        all
    }

    /// Sorts each source, merges, and compares with a stable sort of everything.
    fn equals_the_sort(shape: impl Shape, mut records: Vec<Vec<Vec<u8>>>) {
        for source in &mut records {
            source.sort_by(|a, b| shape.compare(a, b));
        }
        let mut want: Vec<(usize, Vec<u8>)> = (0..)
            .zip(&records)
            .flat_map(|(source, records)| {
                records.iter().map(move |record| (source, record.clone()))
            })
            .collect();
        want.sort_by(|(_, a), (_, b)| shape.compare(a, b));
        assert_eq!(merged(shape, records), want);
    }

    /// Keys that tie in their prefixes, and some that end in the middle of others.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let shared = vec(prop_oneof![Just(0_u8), Just(0xFF)], 0..4)
            .prop_map(|end| [b"the same ", &end[..]].concat());
        let extreme = (0_usize..10).prop_map(|bytes| vec![0xFF; bytes]);
        prop_oneof![shared, extreme, vec(any::<u8>(), 0..3), Just(Vec::new())]
    }

    proptest! {
        #[test]
        fn lines_come_as_a_stable_sort_puts_them(
            sources in vec(vec(key(), 0..20), 1..20),
            descending in any::<bool>(),
        ) {
            let line = |key: Vec<u8>| -> Vec<u8> {
                key.into_iter().filter(|byte| *byte != b'\n').chain([b'\n']).collect()
            };
            let lines = sources.into_iter().map(|keys| keys.into_iter().map(line).collect());
            equals_the_sort(LineShape { descending }, lines.collect());
        }

        #[test]
        fn fixed_records_come_as_a_stable_sort_puts_them(
            sources in vec(vec(key(), 0..20), 1..20),
            key_bytes in 0_usize..14,
            descending in any::<bool>(),
        ) {
            let mut number = 0_u16;
            let mut record = |mut key: Vec<u8>| {
                key.resize(14, 0);
                number += 1;
                [key, number.to_be_bytes().to_vec()].concat()
            };
            let records: Vec<Vec<Vec<u8>>> = sources
                .into_iter()
                .map(|keys| keys.into_iter().map(&mut record).collect())
                .collect();
            equals_the_sort(Fixed { record_bytes: 16, key_bytes, descending }, records);
        }
    }

    #[test]
    fn any_number_of_sources() {
        let shape = Fixed {
            record_bytes: 1,
            key_bytes: 1,
            descending: false,
        };
        for sources in 1..70_usize {
            for modulus in [1, 7, 256] {
                let record = |i: usize| vec![(i * 97 % modulus) as u8];
                let source = |s: usize| (0..s % 5).map(|i| record(s * 5 + i)).collect();
                equals_the_sort(shape, (0..sources).map(source).collect());
            }
        }
    }
}
