//! The optimum of a claim, found in another way than the claim finds it.
//!
//! It goes through all owners of a ring at once, partition by partition. Of all beginnings that
//! have equal shares, equal first owners and equal last owners, it keeps the one with the fewest
//! moves: they can be completed in the same ways.

use std::collections::HashMap;

/// What decides how a beginning can be completed.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Beginning {
    shares: Vec<u8>,
    /// The first owners, as many as a window may reach around the end.
    first: Vec<u8>,
    /// The last owners.
    last: Vec<u8>,
}

/// The fewest moves that lead from the present owners to balanced owners with this spacing. Owners
/// are numbers below `members`.
pub(super) fn fewest_moves(present: &[Option<u8>], members: usize, spacing: usize) -> Option<usize> {
    let (size, reach) = (present.len(), spacing - 1);
    let (least, extra) = ((size / members) as u8, size % members);
    let empty = Beginning { shares: vec![0; members], first: Vec::new(), last: Vec::new() };
    let mut beginnings = HashMap::from([(empty, 0)]);
    for (partition, before) in present.iter().enumerate() {
        let mut longer: HashMap<Beginning, usize> = HashMap::new();
        for (beginning, moves) in &beginnings {
            for owner in 0..members as u8 {
                let around = (partition + spacing).saturating_sub(size).min(beginning.first.len());
                if beginning.last.contains(&owner) || beginning.first[..around].contains(&owner) {
                    continue;
                }
                let mut next = beginning.clone();
                next.shares[usize::from(owner)] += 1;
                let above = next.shares.iter().filter(|share| **share > least).count();
                if above > extra || next.shares.iter().any(|share| *share > least + 1) {
                    continue;
                }
                if next.first.len() < reach {
                    next.first.push(owner);
                }
                next.last.push(owner);
                if next.last.len() > reach {
                    next.last.remove(0);
                }
                let moves = moves + usize::from(*before != Some(owner));
                longer.entry(next).and_modify(|known| *known = moves.min(*known)).or_insert(moves);
            }
        }
        beginnings = longer;
    }
    beginnings.into_values().min()
}
