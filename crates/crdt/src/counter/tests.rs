use super::*;
use crate::testing::actor;
use proptest::prelude::*;

fn counter(parts: &[(usize, i64)]) -> Counter {
    let mut counter = Counter::new();
    for (replica, amount) in parts {
        counter.merge(&counter.delta(*amount, &actor(*replica)));
    }
    counter
}

/// Replicas that count, and merge states and deltas in any order; deltas may be lost and doubled.
#[derive(Clone, Debug)]
enum Step {
    Add(usize, i64),
    Merge(usize, usize),
    Deliver(prop::sample::Index, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3usize, -5..6i64).prop_map(|(at, amount)| Step::Add(at, amount)),
        (0..3usize, 0..3usize).prop_map(|(from, to)| Step::Merge(from, to)),
        (any::<prop::sample::Index>(), 0..3usize).prop_map(|(delta, to)| Step::Deliver(delta, to)),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #[test]
    fn all_that_was_added_is_counted_once(steps in steps()) {
        let mut replicas = vec![Counter::new(); 3];
        let (mut deltas, mut sum) = (Vec::new(), 0);
        for step in steps {
            match step {
                Step::Add(at, amount) => {
                    let delta = replicas[at].delta(amount, &actor(at));
                    replicas[at].merge(&delta);
                    deltas.push(delta);
                    sum += i128::from(amount);
                }
                Step::Merge(from, to) => {
                    let from = replicas[from].clone();
                    replicas[to].merge(&from);
                }
                Step::Deliver(delta, to) if !deltas.is_empty() => replicas[to].merge(delta.get(&deltas)),
                Step::Deliver(..) => {}
            }
        }
        let merged = |order: [usize; 3]| {
            order.iter().fold(Counter::new(), |mut all, at| { all.merge(&replicas[*at]); all })
        };
        prop_assert_eq!(merged([0, 1, 2]).value(), sum);
        prop_assert_eq!(merged([2, 1, 0]), merged([0, 1, 2]));
        let deltas_alone = deltas.iter().rev().fold(Counter::new(), |mut all, delta| { all.merge(delta); all });
        prop_assert_eq!(deltas_alone, merged([1, 1, 2]).clone().joined(&merged([0, 1, 2])));
    }
}

impl Counter {
    fn joined(mut self, other: &Self) -> Self {
        self.merge(other);
        self
    }
}

#[test]
fn adding_nothing_changes_nothing() {
    assert_eq!(counter(&[(0, 0)]), Counter::new());
    assert_eq!(counter(&[(0, 5), (0, -7), (1, 1)]).value(), -1);
    assert_eq!(counter(&[(0, i64::MIN), (1, i64::MIN)]).value(), 2 * i128::from(i64::MIN));
}
