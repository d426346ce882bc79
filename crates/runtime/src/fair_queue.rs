//! A queue that gives each tenant its share: whoever has had the least comes first.
//!
//! A tenant has two numbers: the group that it belongs to, such as the address of a client, and its
//! own within the group, such as that of a connection. First the group that has had the least is
//! chosen, and then the member of the group that has had the least. So a group gains nothing by
//! having many members.
//!
//! Who comes for the first time, or has waited for nothing lately, counts as if it had had as much
//! as the one that was served last. So short work comes before long work that has had its share
//! already, and nobody can save up turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many members of a group, and how many groups, the queue remembers what they have had of.
const REMEMBERED_MAX: usize = 1_024;

/// Who gets a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant {
    /// The group, whose members share what one group gets.
    pub group: u64,
    /// The number of the member within the group.
    pub member: u64,
}

/// What some parties have had. Below the floor, all count the same.
#[derive(Debug, Default)]
struct Had {
    above_floor: HashMap<u64, u64>,
    floor: u64,
}

impl Had {
    fn of(&self, party: u64) -> u64 {
        self.above_floor.get(&party).copied().unwrap_or(0).max(self.floor)
    }

    fn charge(&mut self, party: u64, cost: u64) {
        let had = self.of(party).saturating_add(cost);
        self.above_floor.insert(party, had);
        if self.above_floor.len() > REMEMBERED_MAX {
            self.forget_half();
        }
    }

    /// Raises the floor, so that the half that has had less counts the same from now on. Otherwise
    /// parties that come once each would stay above a floor that does not rise.
    fn forget_half(&mut self) {
        let mut all: Vec<u64> = self.above_floor.values().copied().collect();
        let middle = all.len() / 2;
        let (_, median, _) = all.select_nth_unstable(middle);
        self.floor = self.floor.max(*median);
        let floor = self.floor;
        self.above_floor.retain(|_, had| *had > floor);
    }

    fn served(&mut self, had: u64) {
        self.floor = self.floor.max(had);
    }
}

#[derive(Debug)]
struct Group<T> {
    /// By what the member had had when it came, and in the order of coming.
    waiting: BTreeMap<(u64, u64), (u64, T)>,
    had: Had,
    /// What the group had had when it took its place in the order, if somebody waits.
    place: Option<u64>,
}

/// The place of an entry that waits.
#[derive(Clone, Debug)]
pub struct Ticket {
    group: u64,
    place: (u64, u64),
}

impl<T> Default for Group<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), had: Had::default(), place: None }
    }
}

/// A queue of entries of tenants. Its owner bounds it.
#[derive(Debug)]
pub struct FairQueue<T> {
    groups: HashMap<u64, Group<T>>,
    had: Had,
    /// The groups in which somebody waits, by what they have had.
    order: BTreeSet<(u64, u64)>,
    entries: u64,
    length: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { groups: HashMap::new(), had: Had::default(), order: BTreeSet::new(), entries: 0, length: 0 }
    }
}

impl<T> FairQueue<T> {
    /// Adds an entry of a tenant. Returns its ticket.
    pub fn push(&mut self, tenant: Tenant, entry: T) -> Ticket {
        let group_had = self.had.of(tenant.group);
        let group = self.groups.entry(tenant.group).or_default();
        let place = *group.place.get_or_insert(group_had);
        let had = group.had.of(tenant.member);
        let ticket = Ticket { group: tenant.group, place: (had, self.entries) };
        group.waiting.insert(ticket.place, (tenant.member, entry));
        self.order.insert((place, tenant.group));
        self.entries += 1;
        self.length += 1;
        ticket
    }

    /// Takes back an entry; `None` if it was popped.
    pub fn remove(&mut self, ticket: &Ticket) -> Option<T> {
        let group = self.groups.get_mut(&ticket.group)?;
        let (_, entry) = group.waiting.remove(&ticket.place)?;
        if group.waiting.is_empty()
            && let Some(place) = group.place.take()
        {
            self.order.remove(&(place, ticket.group));
        }
        self.length -= 1;
        Some(entry)
    }

    /// Takes the entry of the tenant that has had the least; among equals the oldest of a group.
    pub fn pop(&mut self) -> Option<(Tenant, T)> {
        let place @ (had, number) = self.order.pop_first()?;
        self.had.served(had);
        let group = self.groups.get_mut(&number)?;
        let ((had, _), (member, entry)) = group.waiting.pop_first()?;
        group.had.served(had);
        if group.waiting.is_empty() {
            group.place = None;
        } else {
            self.order.insert(place);
        }
        self.length -= 1;
        Some((Tenant { group: number, member }, entry))
    }

    /// Counts what a tenant has had, in any unit, the same for all.
    pub fn charge(&mut self, tenant: Tenant, cost: u64) {
        self.had.charge(tenant.group, cost);
        if let Some(group) = self.groups.get_mut(&tenant.group) {
            group.had.charge(tenant.member, cost);
            if let Some(place) = &mut group.place {
                self.order.remove(&(*place, tenant.group));
                *place = self.had.of(tenant.group);
                self.order.insert((*place, tenant.group));
            }
        }
        if self.groups.len() > REMEMBERED_MAX {
            let had = &self.had;
            self.groups.retain(|number, group| group.place.is_some() || had.above_floor.contains_key(number));
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn tenant(group: u64, member: u64) -> Tenant {
        Tenant { group, member }
    }

    /// Serves `turns` turns of one unit each to tenants that always want more. Returns how many
    /// each had.
    fn serve(queue: &mut FairQueue<()>, turns: usize) -> BTreeMap<Tenant, usize> {
        let mut had = BTreeMap::new();
        for _ in 0..turns {
            let (tenant, ()) = queue.pop().unwrap();
            *had.entry(tenant).or_default() += 1;
            queue.charge(tenant, 1);
            queue.push(tenant, ());
        }
        had
    }

    #[test]
    fn a_group_gains_nothing_by_having_many_members() {
        let mut queue = FairQueue::default();
        for member in 0..50 {
            queue.push(tenant(1, member), ());
        }
        queue.push(tenant(2, 0), ());
        let had = serve(&mut queue, 1_000);
        assert_eq!(had[&tenant(2, 0)], 500);
        assert!((0..50).all(|member| had[&tenant(1, member)] == 10), "{had:?}");
        assert_eq!(queue.len(), 51);
    }

    #[test]
    fn who_comes_late_comes_next_and_has_not_saved_up_turns() {
        let mut queue = FairQueue::default();
        for member in 0..50 {
            queue.push(tenant(1, member), ());
        }
        serve(&mut queue, 50_000);
        for late in [tenant(1, 99), tenant(2, 99)] {
            queue.push(late, ());
            let until_served = (1..).find(|_| {
                let (served, ()) = queue.pop().unwrap();
                queue.charge(served, 1);
                queue.push(served, ());
                served == late
            });
            assert!(until_served.unwrap() <= 51, "it is served before anybody is served twice");
        }
        let had = serve(&mut queue, 1_000);
        assert!(had[&tenant(2, 99)] <= 501, "{had:?}");
    }

    #[test]
    fn work_that_has_had_much_waits_for_work_that_had_little() {
        let mut queue = FairQueue::default();
        queue.push(tenant(1, 1), ());
        queue.pop();
        queue.charge(tenant(1, 1), 1_000);
        queue.push(tenant(1, 1), ());
        for _ in 0..100 {
            queue.push(tenant(1, 2), ());
            assert_eq!(queue.pop().unwrap().0, tenant(1, 2));
            queue.charge(tenant(1, 2), 1);
        }
        assert_eq!(queue.pop().unwrap().0, tenant(1, 1));
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    #[test]
    fn who_went_long_ago_is_forgotten() {
        let mut queue = FairQueue::default();
        for number in 0..10 * REMEMBERED_MAX as u64 {
            for tenant in [tenant(number, 0), tenant(u64::MAX, number)] {
                queue.push(tenant, ());
                queue.pop();
                queue.charge(tenant, 1);
            }
        }
        assert!(queue.groups.len() <= REMEMBERED_MAX + 1, "{}", queue.groups.len());
        assert!(queue.had.above_floor.len() <= REMEMBERED_MAX + 1);
        assert!(queue.groups[&u64::MAX].had.above_floor.len() <= REMEMBERED_MAX + 1);
    }
}
