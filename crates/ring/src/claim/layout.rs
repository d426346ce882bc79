//! The layout of a new ring: balanced, and with the largest spacing that exists.
//!
//! The members stand in rows, one after the other, and every row has them in the same order. There
//! are size / members rows, rounded up. If the division leaves no rest, all members are in all
//! rows. Otherwise each of the last members in the order is missing in one row: the very last ones
//! are missing in the first row, those before them in the second row, and so on. The rows miss
//! equally many members, give or take one.
//!
//! Balance: a member is missing at most once.
//!
//! Spacing: let row j miss the set Xj. For a member in the rows j and j+1 the distance is the
//! number of members, less those of Xj behind the member, less those of Xj+1 before it. The sets
//! are successive parts of the order, so only one of the two counts. The distance is therefore at
//! least the length of the shorter row, which is size / rows, rounded down. A member that is
//! missing in a row is at least as far apart as there are members, because the sets are disjoint.
//!
//! With locations there are two levels: the locations are laid out over the ring, and the members
//! of a location over its partitions.

use super::arrangement::Member;
use super::crowding::Group;
use super::present::Present;
use std::cmp::Reverse;

/// At most so many partitions are looked at to find the labels of a layout.
const WORK_MAX: usize = 1 << 17;

/// The rows one after the other. A label is a place in the order of the members.
pub(super) struct Layout {
    labels: Vec<Member>,
    /// The group of each label. The members of labels of one group are at one location.
    group_of: Vec<Group>,
    groups: usize,
    /// Whether any location can take the place of any group. Otherwise they have the same order.
    groups_are_alike: bool,
}

impl Layout {
    /// Lays out a ring for at most as many members as there are partitions. All labels are of one
    /// group, and locations play no role.
    pub(super) fn new(size: usize, members: usize) -> Self {
        let rows = size.div_ceil(members);
        let missing = rows * members - size;
        let mut labels = Vec::with_capacity(size);
        let mut end = members;
        for row in 0..rows {
            let begin = end - (missing * (row + 1) / rows - missing * row / rows);
            labels.extend((0..members).filter(|label| !(begin..end).contains(label)).map(|label| label as Member));
            end = begin;
        }
        Self { labels, group_of: vec![0; members], groups: 1, groups_are_alike: true }
    }

    /// Lays out the locations, and then the members of each location over its partitions.
    ///
    /// If all locations have equally many members, the locations are laid out like members, and so
    /// have the largest spacing. Otherwise the partitions of each location are spread evenly.
    /// Either way the ring is balanced: a location gets as many partitions as balanced members
    /// need.
    pub(super) fn of_locations(present: &Present) -> Self {
        let members = present.members_by_location();
        let alike = members.windows(2).all(|two| two[0].len() == two[1].len());
        let locations = if alike {
            Self::new(present.size(), members.len()).labels
        } else {
            let targets = present.targets();
            let share = |members: &Vec<Member>| members.iter().map(|member| targets[usize::from(*member)]).sum();
            spread(&members.iter().map(share).collect::<Vec<_>>())
        };
        let mut first_label = 0;
        let mut within = Vec::new();
        let mut group_of = Vec::new();
        for (location, members) in (0..).zip(&members) {
            let partitions = locations.iter().filter(|at| **at == location).count();
            let labels = Self::new(partitions, members.len()).labels;
            within.push(labels.into_iter().map(move |label| first_label + label));
            group_of.extend(members.iter().map(|_| location));
            first_label += members.len() as Member;
        }
        let labels = locations.iter().filter_map(|location| within[usize::from(*location)].next()).collect();
        Self { labels, group_of, groups: members.len(), groups_are_alike: alike }
    }

    /// Turns the layout and assigns its labels to members so that many partitions keep their
    /// owners. For each turn, the pair of label and member that meet most often is chosen first.
    pub(super) fn labelled_for(&self, present: &Present) -> Vec<Member> {
        let size = self.labels.len();
        let turns = if present.owners().iter().all(Option::is_none) { 1 } else { size.min(WORK_MAX / size) };
        let labelled = (0..turns).map(|turn| self.labelled_at(turn, present));
        let best = labelled.max_by_key(|(turn, kept, _)| (*kept, Reverse(*turn)));
        best.map(|(turn, _, members)| (0..size).map(|p| members[self.label(p, turn)]).collect()).unwrap_or_default()
    }

    /// (turn, partitions that keep their owners, member of each label)
    fn labelled_at(&self, turn: usize, present: &Present) -> (usize, usize, Vec<Member>) {
        let members = present.members();
        let mut meetings = vec![0u16; members * members];
        for (partition, owner) in present.owners().iter().enumerate() {
            if let Some(owner) = owner {
                meetings[self.label(partition, turn) * members + usize::from(*owner)] += 1;
            }
        }
        let mut pairs: Vec<(Reverse<u16>, usize)> =
            meetings.into_iter().enumerate().filter(|(_, n)| *n > 0).map(|(pair, n)| (Reverse(n), pair)).collect();
        pairs.sort_unstable();
        let mut assigned = Assigned::new(self, present);
        let mut kept = 0;
        for (Reverse(n), pair) in pairs {
            if assigned.assign(pair / members, (pair % members) as Member) {
                kept += usize::from(n);
            }
        }
        (turn, kept, assigned.complete())
    }

    fn label(&self, partition: usize, turn: usize) -> usize {
        usize::from(self.labels[(partition + turn) % self.labels.len()])
    }
}

/// Partitions of groups that have so many of them, each spread evenly over the ring.
fn spread(shares: &[usize]) -> Vec<Group> {
    let place = |nth: usize, share: usize| ((2 * nth + 1) << 32) / share;
    let mut places: Vec<(usize, Group)> =
        (0..).zip(shares).flat_map(|(group, share)| (0..*share).map(move |nth| (place(nth, *share), group))).collect();
    places.sort_unstable();
    places.into_iter().map(|(_, group)| group).collect()
}

/// The members of labels, as far as they are assigned.
struct Assigned<'a> {
    layout: &'a Layout,
    present: &'a Present,
    member_of: Vec<Option<Member>>,
    is_used: Vec<bool>,
    location_of: Vec<Option<Group>>,
}

impl<'a> Assigned<'a> {
    fn new(layout: &'a Layout, present: &'a Present) -> Self {
        let location_of = match layout.groups_are_alike {
            true => vec![None; layout.groups],
            false => (0..layout.groups).map(|group| Some(group as Group)).collect(),
        };
        let (member_of, is_used) = (vec![None; present.members()], vec![false; present.members()]);
        Self { layout, present, member_of, is_used, location_of }
    }

    /// Where the member has to be counted: all members are at one place when the layout has a
    /// single group.
    fn location(&self, member: Member) -> Group {
        if self.layout.groups == 1 { 0 } else { self.present.location(member) }
    }

    /// Assigns a member to a label, if both are free and the label's group may have the location.
    fn assign(&mut self, label: usize, member: Member) -> bool {
        let (group, location) = (usize::from(self.layout.group_of[label]), self.location(member));
        let fits = match self.location_of[group] {
            Some(known) => known == location,
            None => !self.location_of.contains(&Some(location)),
        };
        if !fits || self.member_of[label].is_some() || self.is_used[usize::from(member)] {
            return false;
        }
        self.location_of[group] = Some(location);
        self.member_of[label] = Some(member);
        self.is_used[usize::from(member)] = true;
        true
    }

    /// The member of each label; those that are still free get any that fits. There is always one:
    /// the groups have as many labels as their locations have members.
    fn complete(mut self) -> Vec<Member> {
        for label in 0..self.member_of.len() {
            if self.member_of[label].is_none() {
                let mut members = 0..self.is_used.len() as Member;
                let _ = members.find(|member| self.assign(label, *member));
            }
        }
        self.member_of.into_iter().map(Option::unwrap_or_default).collect()
    }
}
