//! Chooses the next operation.

use crate::config::Operation;
use crate::generators::Random;

/// The operations with their weights. Each draw is uniform over the sum of all weights
/// (docs/riak/basho-bench.md §1.1).
#[derive(Clone, Debug)]
pub(super) struct Mix {
    /// The sum of the weights up to and including each operation.
    up_to: Vec<u64>,
}

impl Mix {
    /// The operations that are not `left_out`; `None` if none is left.
    pub(super) fn new(operations: &[Operation], left_out: impl Fn(usize) -> bool) -> Option<Self> {
        let mut lots = 0;
        let up_to: Vec<u64> = operations
            .iter()
            .enumerate()
            .map(|(place, operation)| {
                lots += if left_out(place) { 0 } else { u64::from(operation.weight) };
                lots
            })
            .collect();
        (lots > 0).then_some(Self { up_to })
    }

    /// The index of the next operation.
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let lot = random.uniform(self.up_to.last().copied().unwrap_or(1));
        self.up_to.partition_point(|up_to| *up_to < lot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Term;

    fn operations(weights: &[u32]) -> Vec<Operation> {
        let named = |n: usize| format!("op{n}");
        let operation = |(n, &weight)| Operation { label: named(n), term: Term::Atom(named(n)), weight };
        weights.iter().enumerate().map(operation).collect()
    }

    #[test]
    fn shares_follow_the_weights_of_what_is_left() {
        let mix = Mix::new(&operations(&[3, 5, 0, 1]), |place| place == 1).unwrap();
        let mut random = Random::new([1, 2, 3], 1);
        let mut drawn = [0; 4];
        (0..40_000).for_each(|_| drawn[mix.draw(&mut random)] += 1);
        assert_eq!((drawn[1], drawn[2]), (0, 0));
        // The tolerance is four standard deviations of a binomial distribution.
        assert!((drawn[0] - 30_000_i32).abs() < 350, "{drawn:?}");
    }

    #[test]
    fn nothing_left_is_no_mix() {
        assert!(Mix::new(&operations(&[1, 2]), |_| true).is_none());
        assert!(Mix::new(&[], |_| false).is_none());
    }
}
