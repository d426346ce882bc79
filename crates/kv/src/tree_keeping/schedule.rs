//! Which tree is made next.

use crate::config::{KeepTrees, TreesConfig};
use crate::replica::ClassId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The pause after a build that has failed, and the longest one. It doubles.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(600);
/// A tree is made anew at most this often.
const REBUILD_MIN: Duration = Duration::from_secs(1);

/// A build that has failed.
#[derive(Clone, Copy, Debug)]
struct Failed {
    times: u32,
    not_before: Instant,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The tree of this class is made, or made anew.
    Build(ClassId),
    /// There is no room for a tree that is wanted.
    NoRoom,
    Nothing,
}

/// How many trees there is room for beside those that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Whether one more tree has room.
    pub(super) has_one: bool,
    /// Whether it may be of a class that has none. One tree must keep its room: to make a tree anew
    /// takes that of two.
    pub(super) may_be_new: bool,
}

/// When which trees are made; see the module.
#[derive(Debug)]
pub(super) struct TreeSchedule {
    config: TreesConfig,
    /// When the tree of an n_val was asked for the last time.
    asked: BTreeMap<u32, Instant>,
    /// When a tree is made anew that is there.
    rebuilds: BTreeMap<ClassId, Instant>,
    /// When a tree was made in this run.
    made: BTreeMap<ClassId, Instant>,
    failed: BTreeMap<ClassId, Failed>,
}

impl TreeSchedule {
    pub(super) const fn new(config: TreesConfig) -> Self {
        Self {
            config,
            asked: BTreeMap::new(),
            rebuilds: BTreeMap::new(),
            made: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// A fold asks for the tree of an n_val. Returns whether its trees are wanted from now on and
    /// were not before.
    pub(super) fn asked(&mut self, n: u32, now: Instant) -> bool {
        let was_wanted = self.is_wanted(n, now);
        self.asked.insert(n, now);
        !was_wanted && self.is_wanted(n, now)
    }

    /// Whether the trees of an n_val are kept.
    pub(super) fn is_wanted(&self, n: u32, now: Instant) -> bool {
        match self.config.keep {
            KeepTrees::Never => false,
            KeepTrees::Always => true,
            KeepTrees::WhenAsked => {
                let is_recent = |asked: &Instant| now.saturating_duration_since(*asked) < self.config.idle;
                self.asked.get(&n).is_some_and(is_recent)
            }
        }
    }

    /// An earlier run has left trees: they are kept as if somebody had asked for them now.
    pub(super) fn found(&mut self, n: u32, now: Instant) {
        self.asked.entry(n).or_insert(now);
    }

    /// Forgets the n_vals and classes that are there no more.
    pub(super) fn retain(&mut self, classes: &BTreeSet<ClassId>) {
        let ns: BTreeSet<u32> = classes.iter().map(|class| class.n).collect();
        self.asked.retain(|n, _| ns.contains(n));
        self.rebuilds.retain(|class, _| classes.contains(class));
        self.made.retain(|class, _| classes.contains(class));
        self.failed.retain(|class, _| classes.contains(class));
    }

    /// The class whose tree is made next: one that has none, or one whose rebuild is due. A tree
    /// that lacks room holds up no rebuild. `random` spreads the rebuilds of trees of an earlier
    /// run.
    pub(super) fn next(
        &mut self,
        classes: &BTreeSet<ClassId>,
        now: Instant,
        has_tree: impl Fn(ClassId) -> bool,
        room: Room,
        mut random: impl FnMut() -> u64,
    ) -> Next {
        let (mut due, mut lacks_room) = (None, false);
        for class in classes.iter().copied() {
            if !self.is_wanted(class.n, now) || self.failed.get(&class).is_some_and(|failed| now < failed.not_before) {
                continue;
            }
            if !has_tree(class) {
                if room.may_be_new {
                    return Next::Build(class);
                }
                lacks_room = true;
                continue;
            }
            let delay = self.config.rebuild_delay;
            let at = *self.rebuilds.entry(class).or_insert_with(|| now + REBUILD_MIN + part_of(delay, random()));
            if at <= now {
                due = due.or(Some(class));
            }
        }
        match due {
            Some(class) if room.has_one => Next::Build(class),
            Some(_) => Next::NoRoom,
            None if lacks_room => Next::NoRoom,
            None => Next::Nothing,
        }
    }

    /// Lets a tree that is there be made anew at this time.
    pub(super) fn rebuild_at(&mut self, class: ClassId, at: Instant) {
        self.rebuilds.insert(class, at);
    }

    /// When the tree of a class was made in this run, and when it is made anew.
    pub(super) fn times(&self, class: ClassId) -> (Option<Instant>, Option<Instant>) {
        (self.made.get(&class).copied(), self.rebuilds.get(&class).copied())
    }

    /// A tree was made.
    pub(super) fn ended(&mut self, class: ClassId, now: Instant, random: u64) {
        self.failed.remove(&class);
        self.made.insert(class, now);
        let wait = self.config.rebuild_wait.max(REBUILD_MIN) + part_of(self.config.rebuild_delay, random);
        self.rebuilds.insert(class, now + wait);
    }

    /// A build has failed.
    pub(super) fn failed(&mut self, class: ClassId, now: Instant) {
        let times = self.failures(class);
        let pause = (RETRY_MIN * (1 << times.min(16))).min(RETRY_MAX);
        self.failed.insert(class, Failed { times: times.saturating_add(1), not_before: now + pause });
    }

    /// How often the build of a class has failed in a row.
    pub(super) fn failures(&self, class: ClassId) -> u32 {
        self.failed.get(&class).map_or(0, |failed| failed.times)
    }
}

/// A part of a time that a random number names.
fn part_of(time: Duration, random: u64) -> Duration {
    time.mul_f64(random as f64 / u64::MAX as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: TreesConfig = TreesConfig {
        keep: KeepTrees::WhenAsked,
        idle: Duration::from_secs(100),
        memory_bytes_max: u64::MAX,
        versions_per_second: 1,
        rebuild_wait: Duration::from_secs(1_000),
        rebuild_delay: Duration::from_secs(500),
    };

    const ROOM: Room = Room { has_one: true, may_be_new: true };

    fn class(partition: u32, n: u32) -> ClassId {
        ClassId { partition, n }
    }

    /// The class of what comes next.
    fn built(next: Next) -> Option<ClassId> {
        if let Next::Build(class) = next { Some(class) } else { None }
    }

    #[test]
    fn trees_are_kept_from_the_first_question_on_until_nobody_asks_for_a_while() {
        let (mut schedule, now) = (TreeSchedule::new(CONFIG), Instant::now());
        let classes = BTreeSet::from([class(0, 2), class(0, 3), class(1, 3)]);
        let next = |schedule: &mut TreeSchedule, now, has: &[ClassId]| {
            built(schedule.next(&classes, now, |class| has.contains(&class), ROOM, || 0))
        };
        assert_eq!(next(&mut schedule, now, &[]), None);
        assert!(schedule.asked(3, now) && !schedule.asked(3, now));
        assert_eq!(next(&mut schedule, now, &[]), Some(class(0, 3)));
        assert_eq!(next(&mut schedule, now, &[class(0, 3)]), Some(class(1, 3)));
        assert_eq!(next(&mut schedule, now, &[class(0, 3), class(1, 3)]), None);
        let later = now + CONFIG.idle;
        assert!(!schedule.is_wanted(3, later) && schedule.is_wanted(3, later - Duration::from_secs(1)));
        assert_eq!(next(&mut schedule, later, &[]), None);
        let mut always = TreeSchedule::new(TreesConfig { keep: KeepTrees::Always, ..CONFIG });
        assert_eq!(next(&mut always, now, &[]), Some(class(0, 2)));
        let mut never = TreeSchedule::new(TreesConfig { keep: KeepTrees::Never, ..CONFIG });
        assert!(!never.asked(3, now) && next(&mut never, now, &[]).is_none());
    }

    #[test]
    fn a_tree_is_made_anew_after_its_time_and_those_of_an_earlier_run_are_spread() {
        let (mut schedule, now) = (TreeSchedule::new(CONFIG), Instant::now());
        let classes = BTreeSet::from([class(0, 3), class(1, 3)]);
        let due = |schedule: &mut TreeSchedule, after_secs: u64, random: u64| {
            let now = now + Duration::from_secs(after_secs);
            schedule.asked(3, now);
            built(schedule.next(&classes, now, |_| true, ROOM, || random))
        };
        schedule.ended(class(0, 3), now, u64::MAX / 2);
        // The other one is of an earlier run.
        assert_eq!(due(&mut schedule, 0, u64::MAX / 5), None);
        assert_eq!((due(&mut schedule, 100, 0), due(&mut schedule, 102, 0)), (None, Some(class(1, 3))));
        schedule.ended(class(1, 3), now + Duration::from_secs(102), u64::MAX);
        assert_eq!((due(&mut schedule, 1_249, 0), due(&mut schedule, 1_251, 0)), (None, Some(class(0, 3))));
    }

    #[test]
    fn a_build_that_fails_waits_longer_each_time_and_holds_no_other_up() {
        let (mut schedule, mut now) = (TreeSchedule::new(CONFIG), Instant::now());
        let classes = BTreeSet::from([class(0, 3), class(1, 3)]);
        schedule.asked(3, now);
        for pause in [1, 2, 4, 8] {
            schedule.failed(class(0, 3), now);
            assert_eq!(built(schedule.next(&classes, now, |_| false, ROOM, || 0)), Some(class(1, 3)));
            now += Duration::from_secs(pause);
            assert_eq!(built(schedule.next(&classes, now, |_| false, ROOM, || 0)), Some(class(0, 3)));
        }
        assert_eq!(schedule.failures(class(0, 3)), 4);
        schedule.ended(class(0, 3), now, 0);
        assert_eq!(schedule.failures(class(0, 3)), 0);
        schedule.retain(&BTreeSet::from([class(1, 2)]));
        assert!(!schedule.is_wanted(3, now), "no bucket has this n_val any more");
    }

    #[test]
    fn a_tree_without_room_holds_up_no_rebuild_and_comes_when_there_is_room() {
        let (mut schedule, now) = (TreeSchedule::new(CONFIG), Instant::now());
        let classes = BTreeSet::from([class(0, 3), class(1, 3)]);
        let full = Room { may_be_new: false, ..ROOM };
        schedule.asked(3, now);
        schedule.ended(class(1, 3), now, 0);
        let has_tree = |class: ClassId| class.partition == 1;
        let next = |schedule: &mut TreeSchedule, room| schedule.next(&classes, now, has_tree, room, || u64::MAX);
        assert_eq!(next(&mut schedule, full), Next::NoRoom);
        schedule.rebuild_at(class(1, 3), now);
        assert_eq!(next(&mut schedule, full), Next::Build(class(1, 3)));
        assert_eq!(next(&mut schedule, Room { has_one: false, ..full }), Next::NoRoom);
        assert_eq!(next(&mut schedule, ROOM), Next::Build(class(0, 3)));
        assert_eq!(schedule.times(class(1, 3)), (Some(now), Some(now)));
    }
}
