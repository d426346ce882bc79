//! The schedule under a simulated clock.

use super::*;
use proptest::prelude::*;

const DAY: u64 = 86_400;
const MB: u64 = 1 << 20;

fn config() -> ScrubConfig {
    ScrubConfig { is_enabled: true, interval: Duration::from_secs(30 * DAY), bytes_per_second_max: 20 * MB }
}

fn store(partition: u32, bytes: u64) -> StoreToScrub {
    StoreToScrub { partition, store_id: u64::from(partition) + 100, bytes }
}

/// A schedule with a clock and with stores, each of which is one file.
struct World {
    schedule: Schedule,
    now: Moment,
    stores: Vec<StoreToScrub>,
    /// Partition and bytes of each step.
    read: Vec<(u32, u64)>,
}

impl World {
    fn new(stores: &[StoreToScrub]) -> Self {
        Self::with(config(), stores)
    }

    fn with(config: ScrubConfig, stores: &[StoreToScrub]) -> Self {
        let mut schedule = Schedule::new(config, SavedSchedule::default());
        schedule.set_stores(stores);
        let now = Moment { ms: 7_000, unix_secs: 1_000_000 };
        Self { schedule, now, stores: stores.to_vec(), read: Vec::new() }
    }

    fn pass(&mut self, ms: u64) {
        self.now.ms += ms;
        self.now.unix_secs = 1_000_000 + (self.now.ms - 7_000) / 1_000;
    }

    /// Does what the schedule wants now, once.
    fn turn(&mut self) -> Next {
        let next = self.schedule.next(self.now);
        if let Next::Read { partition, cursor, bytes_max } = next {
            let size = self.stores.iter().find(|store| store.partition == partition).unwrap().bytes;
            let bytes_read = bytes_max.min(size - cursor.offset);
            let offset = cursor.offset + bytes_read;
            let next = ScrubCursor { lap: 1, offset, ..cursor };
            let step = ScrubStep { next, is_round_over: offset == size, bytes_read, ..ScrubStep::default() };
            self.schedule.stepped(self.now, partition, &cursor, &step);
            self.read.push((partition, bytes_read));
        }
        if let Next::CheckTerms { partition, cursor } = &next {
            let step = TermStep { is_over: true, ..TermStep::default() };
            self.schedule.terms_stepped(self.now, *partition, cursor, &step);
        }
        next
    }

    /// Lets time pass, and does everything that is wanted meanwhile.
    fn run(&mut self, ms: u64, tick_ms: u64) {
        let end = self.now.ms + ms;
        while self.now.ms < end {
            while self.turn() != Next::Wait {}
            self.pass(tick_ms);
        }
    }

    fn bytes(&self) -> u64 {
        self.read.iter().map(|(_, bytes)| bytes).sum()
    }
}

#[test]
fn a_round_takes_about_the_interval_and_reads_everything_once() {
    let size = 500 * MB;
    let hour = ScrubConfig { interval: Duration::from_secs(3_600), ..config() };
    let mut world = World::with(hour, &[store(1, size), store(2, size)]);
    world.run(1_800_000, 100);
    let share = world.bytes() as f64 / (2 * size) as f64;
    assert!((0.45..0.55).contains(&share), "{share}");
    assert!(!world.schedule.is_round_over());
    world.run(1_799_000, 100);
    let share = world.bytes() as f64 / (2 * size) as f64;
    assert!((0.98..=1.0).contains(&share), "{share}");
    let order: Vec<u32> = world.read.iter().map(|(partition, _)| *partition).collect();
    assert!(order.is_sorted(), "one store at a time");
}

#[test]
fn a_small_node_is_done_soon_and_waits_for_the_next_round() {
    let mut world = World::new(&[store(1, MB), store(2, MB)]);
    world.run(60_000, 100);
    assert_eq!(world.bytes(), 2 * MB);
    assert!(world.schedule.is_round_over());
    world.run(30 * DAY * 1_000 - 120_000, 600_000);
    assert_eq!(world.bytes(), 2 * MB, "the interval is not over");
    world.run(200_000, 100);
    assert_eq!(world.bytes(), 4 * MB);
}

#[test]
fn a_round_that_is_wanted_goes_at_the_ceiling_and_a_pause_holds_at_once() {
    let mut world = World::new(&[store(1, 200 * MB)]);
    world.run(1_000, 100);
    world.schedule.start_round(world.now);
    let before = world.bytes();
    world.run(5_000, 100);
    let rate = (world.bytes() - before) / 5;
    assert!((17 * MB..=23 * MB).contains(&rate), "{rate}");
    world.schedule.set_paused(true);
    let before = world.bytes();
    world.run(5_000, 100);
    assert_eq!(world.bytes(), before);
    world.schedule.set_paused(false);
    world.run(10_000, 100);
    assert!(world.schedule.is_round_over());
    assert_eq!(world.turn(), Next::Wait, "the round that was wanted is over");
}

#[test]
fn a_store_that_fails_waits_and_the_others_go_on() {
    let mut world = World::new(&[store(1, MB), store(2, MB)]);
    assert!(matches!(world.schedule.next(world.now), Next::Read { partition: 1, .. }));
    world.schedule.failed(world.now, 1);
    world.run(30_000, 100);
    assert!(world.read.iter().all(|(partition, _)| *partition == 2));
    assert!(!world.schedule.is_round_over());
    world.run(60_000, 100);
    assert!(world.schedule.is_round_over());
}

#[test]
fn a_store_that_fails_for_ever_does_not_hold_up_the_next_round() {
    let mut world = World::new(&[store(1, MB), store(2, MB)]);
    let end = world.now.ms + 31 * DAY * 1_000;
    let (mut tries, mut first_failures) = (0u64, 0u64);
    while world.now.ms < end {
        match world.schedule.next(world.now) {
            Next::Wait => world.pass(60_000),
            Next::Read { partition: 1, .. } => {
                first_failures += u64::from(world.schedule.failed(world.now, 1));
                tries += 1;
            }
            Next::Read { .. } | Next::CheckTerms { .. } => assert_ne!(world.turn(), Next::Wait),
        }
    }
    assert_eq!(world.bytes(), 2 * MB, "the store that can be read was read in two rounds");
    assert_eq!(world.schedule.saved().round, 2);
    assert!(tries > 40_000 && first_failures == 1, "{tries} tries, {first_failures} first failures");
}

#[test]
fn rounds_do_not_follow_one_another_without_a_pause() {
    let mut world = World::with(ScrubConfig { interval: Duration::ZERO, ..config() }, &[store(1, 1_000)]);
    world.run(59_000, 100);
    assert_eq!((world.bytes(), world.schedule.saved().round), (1_000, 1));
    world.run(60_000, 100);
    assert_eq!((world.bytes(), world.schedule.saved().round), (2_000, 2));
}

#[test]
fn bad_blocks_slow_everything_down() {
    let mut world = World::new(&[store(1, 100 * MB)]);
    let Next::Read { partition, cursor, .. } = world.schedule.next(world.now) else { panic!("it reads") };
    let step = ScrubStep { next: cursor, unread_blocks: 10, bytes_read: 4096, ..ScrubStep::default() };
    world.schedule.stepped(world.now, partition, &cursor, &step);
    world.pass(39_000);
    assert_eq!(world.turn(), Next::Wait);
    world.pass(2_000);
    assert_ne!(world.turn(), Next::Wait);
}

#[test]
fn a_round_goes_on_after_a_restart_and_another_store_is_read_from_its_beginning() {
    let mut world = World::new(&[store(1, 100 * MB), store(2, 100 * MB)]);
    world.run(60_000, 100);
    let saved = world.schedule.saved();
    let place = saved.stores[&1].cursor;
    assert!(place.offset > 0);
    let mut again = Schedule::new(config(), saved);
    assert_eq!(again.next(world.now), Next::Wait, "no store is open yet");
    again.set_stores(&world.stores);
    assert!(matches!(again.next(world.now), Next::Read { partition: 1, cursor, .. } if cursor == place));
    again.set_stores(&[StoreToScrub { store_id: 9, ..store(1, MB) }]);
    let expected = ScrubCursor::default();
    assert!(matches!(again.next(world.now), Next::Read { partition: 1, cursor, .. } if cursor == expected));
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_scrubbing() {
    let mut world = World::new(&[store(1, MB)]);
    world.run(60_000, 100);
    assert!(world.schedule.is_round_over());
    let earlier = Moment { unix_secs: 5_000, ..world.now };
    assert_eq!(world.schedule.next(earlier), Next::Wait);
    let later = Moment { unix_secs: 5_000 + 30 * DAY, ..world.now };
    assert!(matches!(world.schedule.next(later), Next::Read { .. }));
}

#[test]
fn a_step_of_a_round_that_has_ended_meanwhile_does_not_move_the_next_one() {
    let mut world = World::new(&[store(1, 100 * MB)]);
    world.run(2_000, 100);
    let Next::Read { partition, cursor, .. } = until_due(&mut world) else { panic!("it reads") };
    world.schedule.start_round(world.now);
    let next = ScrubCursor { offset: 50 * MB, ..cursor };
    let step = ScrubStep { next, is_round_over: true, bytes_read: MB, ..ScrubStep::default() };
    world.schedule.stepped(world.now, partition, &cursor, &step);
    assert_eq!(world.schedule.saved().stores[&1].cursor, ScrubCursor::default());
    assert!(matches!(until_due(&mut world), Next::Read { cursor, .. } if cursor == ScrubCursor::default()));
}

/// What is to be done next, as soon as its time has come.
fn until_due(world: &mut World) -> Next {
    loop {
        match world.schedule.next(world.now) {
            Next::Wait => world.pass(100),
            due => return due,
        }
    }
}

/// A place behind another one.
fn behind(cursor: &TermCursor) -> TermCursor {
    let mut next = cursor.clone();
    next.in_terms = true;
    next
}

/// Lets a store be read, and returns the place at which its index entries are compared.
fn until_terms(world: &mut World) -> TermCursor {
    loop {
        match until_due(world) {
            Next::CheckTerms { cursor, .. } => return cursor,
            _ => assert_ne!(world.turn(), Next::Wait),
        }
    }
}

#[test]
fn the_index_entries_of_a_store_are_compared_last_and_at_the_same_pace() {
    let mut world = World::new(&[store(1, MB), store(2, MB)]);
    let first = until_terms(&mut world);
    assert_eq!((first.clone(), world.bytes()), (TermCursor::default(), MB), "the other store waits");
    let next = behind(&first);
    let step = TermStep { next: next.clone(), cost_bytes: 640 << 10, lacking: 2, surplus: 1, ..TermStep::default() };
    assert!(!world.schedule.terms_stepped(world.now, 1, &first, &step));
    assert_eq!(world.schedule.saved().stores[&1].places, 3);
    world.pass(9_000);
    assert_eq!(world.turn(), Next::Wait, "at 64 KiB a second that takes ten seconds");
    world.pass(1_500);
    assert_eq!(world.schedule.next(world.now), Next::CheckTerms { partition: 1, cursor: next.clone() });
    assert!(!world.schedule.is_round_over());
    let over = TermStep { is_over: true, ..TermStep::default() };
    assert!(!world.schedule.terms_stepped(world.now, 1, &next, &over), "the other store is left");
    let first = until_terms(&mut world);
    assert!(world.schedule.terms_stepped(world.now, 2, &first, &over));
    assert_eq!((world.bytes(), world.schedule.is_round_over()), (2 * MB, true));
}

#[test]
fn a_comparison_of_a_round_that_has_ended_meanwhile_ends_nothing() {
    let mut world = World::new(&[store(1, MB)]);
    let cursor = until_terms(&mut world);
    world.schedule.start_round(world.now);
    let over = TermStep { is_over: true, ..TermStep::default() };
    assert!(!world.schedule.terms_stepped(world.now, 1, &cursor, &over));
    assert!(!world.schedule.is_round_over());
    assert!(matches!(until_due(&mut world), Next::Read { cursor, .. } if cursor == ScrubCursor::default()));
}

#[test]
fn after_a_restart_index_entries_are_compared_from_the_beginning() {
    let mut world = World::new(&[store(1, MB)]);
    let first = until_terms(&mut world);
    let next = behind(&first);
    world.schedule.terms_stepped(world.now, 1, &first, &TermStep { next, ..TermStep::default() });
    world.schedule = Schedule::new(config(), world.schedule.saved());
    world.schedule.set_stores(&world.stores);
    assert!(!world.schedule.is_round_over());
    assert_eq!(until_terms(&mut world), TermCursor::default());
}

proptest! {
    /// Whatever happens to the stores, no second has more reading than the ceiling allows, but for
    /// a step and what may be made up for.
    #[test]
    fn nothing_is_read_faster_than_the_ceiling(sizes in prop::collection::vec(1..400 * MB, 1..5), hurries: bool) {
        let stores: Vec<_> = (1..).zip(&sizes).map(|(partition, bytes)| store(partition, *bytes)).collect();
        let mut world = World::new(&stores);
        world.turn();
        if hurries {
            world.schedule.start_round(world.now);
        }
        for _ in 0..100 {
            let before = world.bytes();
            world.run(1_000, 50);
            prop_assert!(world.bytes() - before <= 20 * MB + 10 * MB + 4 * MB);
        }
    }
}
