//! Outlines of groups: seven numbers in place of the 64 sums of a group.
//!
//! An outline has the sum of its group, and for each bit of a range's place in the group the sum of
//! the ranges whose places have that bit. If one range differs, by d, the first number differs by
//! d. Each further one differs by d where the place has its bit, and does not differ otherwise. So
//! the outline names the range.
//!
//! Two ranges have different places, so some number differs by what one of them differs by alone:
//! that is neither d nor 0. With three or more the same holds up to a chance of 2^-64. So an
//! outline names no wrong range, and the sums of such a group are asked for.

use super::sums::{GROUPS, GroupSet, RANGES_IN_GROUP, Sums, groups_in};

/// How many numbers an outline has.
pub const OUTLINE_NUMBERS: usize = 1 + PLACE_BITS;
/// Bits of a range's place in its group.
const PLACE_BITS: usize = RANGES_IN_GROUP.ilog2() as usize;
/// With more groups several ranges of a group differ most likely, and outlines do not help.
const OUTLINES_MAX: u32 = GROUPS as u32 / 4;

const _: () = assert!(1 << PLACE_BITS == RANGES_IN_GROUP);

type Outline = [u64; OUTLINE_NUMBERS];

/// What outlines show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The ranges that differ, ascending.
    pub(crate) ranges: Vec<u32>,
    /// The groups of which several ranges differ.
    pub(crate) groups: GroupSet,
}

/// Whether outlines of some groups are worth a question.
pub(crate) fn are_worth_it(groups: GroupSet) -> bool {
    groups.count_ones() <= OUTLINES_MAX
}

/// The outlines of some groups, one after the other.
pub(crate) fn outlines(sums: &Sums, groups: GroupSet) -> Vec<u64> {
    groups_in(groups).flat_map(|group| outline(sums, group)).collect()
}

/// What the outlines of some groups show; none if the other node has sent another number of them.
pub(crate) fn compare(sums: &Sums, groups: GroupSet, theirs: &[u64]) -> Option<Shown> {
    if theirs.len() != groups.count_ones() as usize * OUTLINE_NUMBERS {
        return None;
    }
    let mut shown = Shown::default();
    for (group, theirs) in groups_in(groups).zip(theirs.chunks(OUTLINE_NUMBERS)) {
        let own = outline(sums, group);
        let differences = own.iter().zip(theirs).map(|(own, theirs)| own.wrapping_sub(*theirs));
        match place_of(differences) {
            Place::Nowhere => {}
            Place::At(place) => shown.ranges.push((group * RANGES_IN_GROUP + place) as u32),
            Place::Several => shown.groups |= 1 << group,
        }
    }
    Some(shown)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    At(usize),
    Several,
}

/// The place that the differences of an outline name.
fn place_of(mut differences: impl Iterator<Item = u64>) -> Place {
    let whole = differences.next().unwrap_or_default();
    let mut place = 0;
    for (bit, difference) in differences.enumerate() {
        match difference {
            0 => {}
            same if same == whole => place |= 1 << bit,
            _ => return Place::Several,
        }
    }
    if whole == 0 { Place::Nowhere } else { Place::At(place) }
}

fn outline(sums: &Sums, group: usize) -> Outline {
    let mut outline = Outline::default();
    for (place, sum) in sums.of_groups(1 << group).into_iter().enumerate() {
        let has_bit = |number: usize| number == 0 || place >> (number - 1) & 1 == 1;
        for number in (0..OUTLINE_NUMBERS).filter(|number| has_bit(*number)) {
            outline[number] = outline[number].wrapping_add(sum);
        }
    }
    outline
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(own: &Sums, theirs: &Sums, groups: GroupSet) -> Shown {
        compare(own, groups, &outlines(theirs, groups)).unwrap()
    }

    #[test]
    fn an_outline_names_each_range_that_differs_alone() {
        let mut theirs = Sums::default();
        (0..RANGES_IN_GROUP as u32).for_each(|range| theirs.add(range, u64::from(range) << 40 | 5));
        for range in 0..RANGES_IN_GROUP as u32 {
            let mut own = theirs.clone();
            own.add(range, u64::MAX - 7);
            assert_eq!(compared(&own, &theirs, 1), Shown { ranges: vec![range], groups: 0 });
            assert_eq!(compared(&theirs, &own, 1), Shown { ranges: vec![range], groups: 0 });
        }
        assert_eq!(compared(&theirs, &theirs, 1), Shown::default());
    }

    #[test]
    fn an_outline_names_no_range_of_several() {
        let theirs = Sums::default();
        for first in 0..RANGES_IN_GROUP as u32 {
            for second in first + 1..RANGES_IN_GROUP as u32 {
                for mix in [3, u64::MAX - 2] {
                    let mut own = Sums::default();
                    own.add(first, 3);
                    // With the second mix the sums of the groups are the same.
                    own.add(second, mix);
                    assert_eq!(compared(&own, &theirs, 1), Shown { ranges: Vec::new(), groups: 1 });
                }
            }
        }
    }

    #[test]
    fn each_group_has_an_outline_of_its_own() {
        let (mut own, theirs) = (Sums::default(), Sums::default());
        [(70, 1), (4_095, 2), (4_094, 3), (8_191, 4)].into_iter().for_each(|(range, mix)| own.add(range, mix));
        let groups = 1 << 1 | 1 << 2 | 1 << 63 | 1 << 127;
        assert_eq!(compared(&own, &theirs, groups), Shown { ranges: vec![70, 8_191], groups: 1 << 63 });
        assert_eq!(compare(&own, groups, &[0; 3 * OUTLINE_NUMBERS]), None, "another number of outlines is no answer");
        assert!(are_worth_it(groups) && !are_worth_it(GroupSet::MAX));
    }
}
