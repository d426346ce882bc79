//! What operators see of kept trees, and their orders.

use super::keeping::TreeKeeping;
use crate::replica::ClassId;
use std::time::Duration;

/// Whether a tree is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeState {
    /// It is not there, and waits for its turn or for room.
    Unbuilt,
    /// It is being made.
    Building,
    /// It is there.
    Built,
    /// It is there, and is being made anew.
    Rebuilding,
}

/// The kept tree of a partition and an n_val.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptTree {
    /// The partition.
    pub partition: u32,
    /// The n_val.
    pub n_val: u32,
    /// Whether it is there.
    pub state: TreeState,
    /// Whether folds walk nevertheless, because objects of the n_val expire in the partition.
    pub has_expiring: bool,
    /// How long ago it was made; `None` if it was not in this run.
    pub made_before: Option<Duration>,
    /// In how much time it is made anew; `None` if that is not known yet.
    pub made_anew_in: Option<Duration>,
}

impl TreeKeeping {
    /// The trees that this node keeps or is to keep. Waits for a moment. Not for network threads.
    pub(crate) fn status(&self) -> Vec<KeptTree> {
        let (work, now) = (self.work.lock(), self.runtime.now());
        let wanted = work.classes.iter().filter(|class| work.schedule.is_wanted(class.n, now));
        let tree = |class: &ClassId| {
            let partition = self.partitions.get(class.partition)?;
            let is_there = partition.has_kept_tree(class.n);
            let is_under_way = work.build.as_ref().is_some_and(|(built, _)| built == class);
            let (made, anew) = work.schedule.times(*class);
            Some(KeptTree {
                partition: class.partition,
                n_val: class.n,
                state: match (is_there, is_under_way) {
                    (false, false) => TreeState::Unbuilt,
                    (false, true) => TreeState::Building,
                    (true, false) => TreeState::Built,
                    (true, true) => TreeState::Rebuilding,
                },
                has_expiring: partition.has_expiring_in_tree(class.n),
                made_before: made.filter(|_| is_there).map(|made| now.saturating_duration_since(made)),
                made_anew_in: anew.filter(|_| is_there).map(|anew| anew.saturating_duration_since(now)),
            })
        };
        wanted.filter_map(tree).collect()
    }

    /// Lets trees be made anew after this time: all, or those of a partition. Returns how many.
    /// Waits for a moment. Not for network threads.
    pub(crate) fn rebuild(&self, partition: Option<u32>, after: Duration) -> usize {
        let (mut work, now) = (self.work.lock(), self.runtime.now());
        let is_meant = |class: &&ClassId| {
            work.schedule.is_wanted(class.n, now) && partition.is_none_or(|partition| class.partition == partition)
        };
        let classes: Vec<ClassId> = work.classes.iter().filter(is_meant).copied().collect();
        let at = now.checked_add(after).unwrap_or(now);
        classes.iter().for_each(|class| work.schedule.rebuild_at(*class, at));
        work.is_idle = false;
        classes.len()
    }
}
