//! What a claim starts from.

use super::arrangement::Member;
use super::crowding::Group;

/// The owners before the claim, and where the members are.
pub(super) struct Present {
    /// The owner of each partition; `None` when it is not one of the members.
    owners: Vec<Option<Member>>,
    /// The location of each member, from 0.
    location_of: Vec<Group>,
    locations: usize,
    location_spacing: usize,
}

impl Present {
    /// Members that are at these locations. Each window of `target_location_n_val` successive
    /// partitions should have distinct locations. A window cannot have more than there are.
    pub(super) fn new(owners: Vec<Option<Member>>, location_of: Vec<Group>, target_location_n_val: usize) -> Self {
        let locations = location_of.iter().max().map_or(0, |last| usize::from(*last) + 1);
        let location_spacing = target_location_n_val.min(locations);
        Self { owners, location_of, locations, location_spacing }
    }

    /// The same members with these owners.
    pub(super) fn with_owners(&self, owners: &[Member]) -> Self {
        Self {
            owners: owners.iter().copied().map(Some).collect(),
            location_of: self.location_of.clone(),
            locations: self.locations,
            location_spacing: self.location_spacing,
        }
    }

    pub(super) fn size(&self) -> usize {
        self.owners.len()
    }

    pub(super) fn members(&self) -> usize {
        self.location_of.len()
    }

    pub(super) fn owners(&self) -> &[Option<Member>] {
        &self.owners
    }

    pub(super) fn location(&self, member: Member) -> Group {
        self.location_of[usize::from(member)]
    }

    pub(super) fn locations(&self) -> usize {
        self.locations
    }

    /// Each window of so many successive partitions should have distinct locations; 1: locations
    /// play no role.
    pub(super) fn location_spacing(&self) -> usize {
        self.location_spacing
    }

    /// The members at each location.
    pub(super) fn members_by_location(&self) -> Vec<Vec<Member>> {
        let mut members = vec![Vec::new(); self.locations];
        for (member, location) in self.location_of.iter().enumerate() {
            members[usize::from(*location)].push(member as Member);
        }
        members
    }

    /// The number of partitions that each member owns.
    pub(super) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.members()];
        for owner in self.owners.iter().flatten() {
            counts[usize::from(*owner)] += 1;
        }
        counts
    }

    /// The number of partitions that each member shall own, so that as few as possible move. The
    /// members that own the most get one more where the division leaves a rest.
    pub(super) fn targets(&self) -> Vec<usize> {
        let counts = self.counts();
        let mut order: Vec<usize> = (0..self.members()).collect();
        order.sort_by_key(|member| std::cmp::Reverse(counts[*member]));
        let mut targets = vec![self.size() / self.members(); self.members()];
        for member in order.into_iter().take(self.size() % self.members()) {
            targets[member] += 1;
        }
        targets
    }

    /// The fewest moves that lead to balance: what the members lack.
    pub(super) fn moves_min(&self) -> usize {
        self.targets().iter().zip(self.counts()).map(|(target, count)| target.saturating_sub(count)).sum()
    }
}
