//! A local search over balanced arrangements.

use super::arrangement::{Arrangement, Effect, Member};

/// The search ends after so many steps for each partition of the ring, in proportion.
const STEPS_PER_PARTITION: usize = 2;
/// And after so many steps on any ring.
const STEPS_MIN: usize = 256;
/// And when the number of repetitions has not become smaller for so many steps.
const STEPS_WITHOUT_GAIN_MAX: usize = 192;
/// A partition that took part in a step stays as it is for so many steps.
const REST_STEPS: usize = 12;
/// So many passes bring partitions back to their owners.
const PASSES_MAX: usize = 8;

/// A step of the search. Every step keeps the balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Two partitions exchange their owners.
    Exchange(usize, usize),
    /// A partition gets another owner.
    Gift(usize, Member),
}

/// Takes steps until no member has two partitions that are too near, and no location either;
/// returns whether the former was reached. Each step changes the owner of one partition that is too
/// near to another. It is the best such step, even when it makes things worse; a partition that was
/// just changed is left alone for some steps, so that the search does not go in circles. The best
/// arrangement on the way is the result.
pub(super) fn separate(arrangement: &mut Arrangement<'_>) -> bool {
    let mut best = (strain(arrangement), arrangement.owners().to_vec());
    walk(arrangement, &mut best);
    if strain(arrangement) > best.0 {
        for (partition, owner) in best.1.into_iter().enumerate() {
            if arrangement.owners()[partition] != owner {
                arrangement.give(partition, owner);
            }
        }
    }
    arrangement.repetitions() == 0
}

/// (repetitions, crowding): which arrangement is better.
type Strain = (usize, usize);

fn strain(arrangement: &Arrangement<'_>) -> Strain {
    (arrangement.repetitions(), arrangement.crowding())
}

/// Takes steps, and notes the least strain and the owners that had it.
fn walk(arrangement: &mut Arrangement<'_>, best: &mut (Strain, Vec<Member>)) {
    let size = arrangement.owners().len();
    let mut rests_until = vec![0; size];
    let (mut from, mut gained_at) = (0, 0);
    for step in 1..=STEPS_MIN.max(size * STEPS_PER_PARTITION) {
        let is_in_the_way = |p: &usize| arrangement.is_in_the_way(*p);
        let mut round = (0..size).map(|i| (from + i) % size).filter(is_in_the_way);
        let Some(partition) = round.clone().find(|p| rests_until[*p] < step).or_else(|| round.next()) else { return };
        let Some(taken) = best_step(arrangement, partition, |q| rests_until[q] < step) else { return };
        // The rest differs from partition to partition; equal rests would repeat a pattern.
        let until = step + REST_STEPS + partition % 7;
        rests_until[partition] = until;
        match taken {
            Step::Exchange(p, q) => {
                rests_until[q] = until;
                arrangement.exchange(p, q);
            }
            Step::Gift(p, to) => arrangement.give(p, to),
        }
        from = (partition + 1) % size;
        if strain(arrangement) < best.0 {
            *best = (strain(arrangement), arrangement.owners().to_vec());
            gained_at = step;
        } else if step - gained_at > STEPS_WITHOUT_GAIN_MAX {
            return;
        }
    }
}

/// The best step that changes the owner of a partition.
fn best_step(arrangement: &Arrangement<'_>, partition: usize, may_change: impl Fn(usize) -> bool) -> Option<Step> {
    let owners = arrangement.owners();
    let exchanges = (0..owners.len())
        .filter(|q| owners[*q] != owners[partition] && may_change(*q))
        .map(|q| (arrangement.effect_of_exchange(partition, q), Step::Exchange(partition, q)));
    let gifts = (0..arrangement.present().members() as Member)
        .filter(|to| *to != owners[partition] && arrangement.may_give(partition, *to))
        .map(|to| (arrangement.effect_of_gift(partition, to), Step::Gift(partition, to)));
    gifts.chain(exchanges).min().map(|(_, step)| step)
}

/// Gives partitions back to their owners where that costs neither balance nor spacing nor
/// distinct locations.
pub(super) fn move_back(arrangement: &mut Arrangement<'_>) {
    for _ in 0..PASSES_MAX {
        let mut changed = false;
        for partition in 0..arrangement.owners().len() {
            changed |= move_one_back(arrangement, partition);
        }
        if !changed {
            return;
        }
    }
}

fn move_one_back(arrangement: &mut Arrangement<'_>, partition: usize) -> bool {
    let Some(before) = arrangement.present().owners()[partition] else { return false };
    let owners = arrangement.owners();
    if owners[partition] == before {
        return false;
    }
    let is_gain = |effect: Effect| effect.repetitions <= 0 && effect.crowding <= 0 && effect.moves < 0;
    if arrangement.may_give(partition, before) && is_gain(arrangement.effect_of_gift(partition, before)) {
        arrangement.give(partition, before);
        return true;
    }
    let candidates = (0..owners.len()).filter(|q| owners[*q] == before);
    let best = candidates
        .map(|q| (arrangement.effect_of_exchange(partition, q), q))
        .filter(|(effect, _)| is_gain(*effect))
        .min();
    if let Some((_, q)) = best {
        arrangement.exchange(partition, q);
    }
    best.is_some()
}
