//! Work that waits in a lane, and which of it is next.
//!
//! Owners take turns. The next work is that of an owner who has the least of it running, and among
//! those of the owner whose turn was the longest ago. A full queue takes the work of an owner who
//! has less waiting than another one, and gives back the newest work of that other one.

use crate::Owner;
use std::collections::VecDeque;

/// What one owner has in a lane.
struct Share<T> {
    owner: Owner,
    running: usize,
    waiting: VecDeque<T>,
}

/// The work of a lane. An owner without any is not in it.
pub(super) struct OwnerQueue<T> {
    /// The owner whose turn was last at the end.
    shares: VecDeque<Share<T>>,
    waiting: usize,
    waiting_max: usize,
}

/// A queue without room.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl<T> OwnerQueue<T> {
    pub(super) const fn new(waiting_max: usize) -> Self {
        Self { shares: VecDeque::new(), waiting: 0, waiting_max }
    }

    /// How much work waits.
    pub(super) const fn len(&self) -> usize {
        self.waiting
    }

    /// Queues work. Returns the work of another owner that has lost its place to it.
    pub(super) fn push(&mut self, owner: &Owner, work: T) -> Result<Option<T>, Full> {
        let at = self.at(owner);
        let mut displaced = None;
        if self.waiting >= self.waiting_max {
            let mine = at.map_or(0, |at| self.shares[at].waiting.len());
            let longest = self.shares.iter_mut().max_by_key(|share| share.waiting.len());
            displaced =
                longest.filter(|share| share.waiting.len() > mine + 1).and_then(|share| share.waiting.pop_back());
            if displaced.is_none() {
                return Err(Full);
            }
            self.waiting -= 1;
        }
        self.waiting += 1;
        match at {
            Some(at) => self.shares[at].waiting.push_back(work),
            None => {
                self.shares.push_back(Share { owner: owner.clone(), running: 0, waiting: VecDeque::from([work]) });
            }
        }
        Ok(displaced)
    }

    /// Takes the work that is next, which runs from now on. No owner gets more than `running_max`.
    pub(super) fn pop(&mut self, running_max: usize) -> Option<T> {
        let at = self.next(running_max)?;
        let mut share = self.shares.remove(at)?;
        let work = share.waiting.pop_front();
        self.waiting -= usize::from(work.is_some());
        share.running += usize::from(work.is_some());
        self.shares.push_back(share);
        work
    }

    /// Work of an owner no longer runs.
    pub(super) fn done(&mut self, owner: &Owner) {
        let Some(at) = self.at(owner) else { return };
        let share = &mut self.shares[at];
        share.running -= 1;
        if share.running == 0 && share.waiting.is_empty() {
            self.shares.remove(at);
        }
    }

    /// Whether there is work that may begin.
    pub(super) fn has_next(&self, running_max: usize) -> bool {
        self.next(running_max).is_some()
    }

    /// Whether somebody waits who has nothing running.
    pub(super) fn has_newcomer(&self) -> bool {
        self.has_next(1)
    }

    /// How much work of an owner runs.
    pub(super) fn running(&self, owner: &Owner) -> usize {
        self.at(owner).map_or(0, |at| self.shares[at].running)
    }

    /// Takes all work that waits.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.waiting = 0;
        let taken = self.shares.iter_mut().flat_map(|share| share.waiting.drain(..)).collect();
        self.shares.retain(|share| share.running > 0);
        taken
    }

    fn at(&self, owner: &Owner) -> Option<usize> {
        self.shares.iter().position(|share| share.owner == *owner)
    }

    fn next(&self, running_max: usize) -> Option<usize> {
        let ready = |(_, share): &(usize, &Share<T>)| !share.waiting.is_empty() && share.running < running_max;
        self.shares.iter().enumerate().filter(ready).min_by_key(|(_, share)| share.running).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::new(name)
    }

    fn queue(waiting_max: usize, work: &[(&str, u32)]) -> OwnerQueue<u32> {
        let mut queue = OwnerQueue::new(waiting_max);
        for (name, number) in work {
            assert_eq!(queue.push(&owner(name), *number), Ok(None));
        }
        queue
    }

    fn popped(queue: &mut OwnerQueue<u32>, running_max: usize) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(running_max)).collect()
    }

    #[test]
    fn owners_take_turns_and_each_keeps_its_order() {
        let mut queue = queue(100, &[("a", 1), ("a", 2), ("a", 3), ("b", 11), ("c", 21), ("b", 12)]);
        assert_eq!(popped(&mut queue, 10), [1, 11, 21, 2, 12, 3]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn who_has_less_running_is_first() {
        let mut queue = queue(100, &[("a", 1), ("a", 2), ("a", 3)]);
        assert_eq!([queue.pop(9), queue.pop(9)], [Some(1), Some(2)]);
        queue.push(&owner("b"), 11).unwrap();
        queue.push(&owner("b"), 12).unwrap();
        assert_eq!(popped(&mut queue, 9), [11, 12, 3]);
    }

    #[test]
    fn no_owner_runs_more_than_its_share() {
        let mut queue = queue(100, &[("a", 1), ("a", 2), ("a", 3), ("b", 11)]);
        assert_eq!(popped(&mut queue, 2), [1, 11, 2]);
        assert!(!queue.has_next(2) && queue.has_next(3) && !queue.has_newcomer());
        queue.done(&owner("a"));
        assert_eq!(popped(&mut queue, 2), [3]);
        assert_eq!((queue.running(&owner("a")), queue.running(&owner("b"))), (2, 1));
        for name in ["a", "a", "b"] {
            queue.done(&owner(name));
        }
        assert!(queue.shares.is_empty(), "an owner without work is forgotten");
    }

    #[test]
    fn a_full_queue_takes_from_who_has_most() {
        let mut queue = queue(3, &[("a", 1), ("a", 2), ("a", 3)]);
        assert_eq!(queue.push(&owner("a"), 4), Err(Full));
        assert_eq!(queue.push(&owner("b"), 11), Ok(Some(3)));
        assert_eq!(queue.push(&owner("b"), 12), Err(Full), "it would have more than the other one");
        assert_eq!(queue.push(&owner("c"), 21), Ok(Some(2)));
        assert_eq!(queue.push(&owner("d"), 31), Err(Full), "all have one");
        assert_eq!((popped(&mut queue, 9), queue.len()), (vec![1, 11, 21], 0));
    }

    #[test]
    fn all_that_waits_can_be_taken_while_other_work_runs() {
        let mut queue = queue(9, &[("a", 1), ("a", 2), ("b", 11)]);
        assert_eq!(queue.pop(9), Some(1));
        let mut taken = queue.take_all();
        taken.sort_unstable();
        assert_eq!((taken, queue.len(), queue.running(&owner("a"))), (vec![2, 11], 0, 1));
        queue.done(&owner("a"));
        assert!(queue.shares.is_empty());
    }
}
