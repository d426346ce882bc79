//! Runs of data types. `OMBAK_SIM_SEEDS` says how many, and `OMBAK_SIM_SEED` runs only one.

use ombak_crdt::ignore_older_assignments;
use ombak_kv::{BrokenRule, break_rule};
use ombak_sim::{FaultKind, run_typed_seed};

const SEEDS: u64 = 30;
/// The number of acknowledged changes in each seed, at least, and of removals among them.
const ACKNOWLEDGED_MIN: u64 = 25;
const REMOVALS_MIN: u64 = 3;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn every_value_has_what_its_history_says() {
    let seeds = match number("OMBAK_SIM_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("OMBAK_SIM_SEEDS").unwrap_or(SEEDS),
    };
    let (mut broken, mut lost_disks, mut deletions) = (Vec::new(), 0, 0);
    for seed in seeds.clone() {
        let report = run_typed_seed(seed);
        println!("{report:?}");
        broken.extend(report.violation.map(|violation| format!("seed {seed}: {violation}")));
        assert_eq!(report.left_behind, Vec::<String>::new(), "seed {seed} has left something behind");
        assert!(report.acknowledged >= ACKNOWLEDGED_MIN, "seed {seed}: {} changes", report.acknowledged);
        assert!(report.removals >= REMOVALS_MIN, "seed {seed}: {} removals", report.removals);
        deletions += report.deletions;
        lost_disks += report.faults.get(&FaultKind::LostDisk).copied().unwrap_or(0);
    }
    assert!(broken.is_empty(), "{broken:#?}");
    let has_many = seeds.count() >= 10;
    assert!(!has_many || lost_disks > 0, "no seed has lost a disk");
    assert!(!has_many || deletions > 0, "no seed has deleted a set");
}

#[test]
fn a_seed_gives_the_same_trace_again() {
    for seed in [1, 3] {
        assert_eq!(run_typed_seed(seed).trace, run_typed_seed(seed).trace, "seed {seed}");
    }
}

/// A replica then has an event and not all that the event's coordinator had seen.
#[test]
fn an_addition_to_a_value_without_its_past_is_found() {
    // Only even seeds have parts. The first one is only where it was found last, to save time.
    let found = std::iter::once(160).chain((1..=200).map(|number| number * 2)).find_map(|seed| {
        break_rule(Some(BrokenRule::AdditionsBuildOnTheirPast));
        let report = run_typed_seed(seed);
        break_rule(None);
        report.violation.map(|violation| (seed, violation))
    });
    println!("{found:?}");
    assert!(found.is_some(), "no seed has noticed an addition without its past");
}

/// A register then shows an older value than the one that was acknowledged last.
#[test]
fn an_assignment_that_is_ignored_because_a_clock_went_back_is_found() {
    let found = (1..=200).find_map(|seed| {
        ignore_older_assignments(true);
        let report = run_typed_seed(seed);
        ignore_older_assignments(false);
        report.violation.map(|violation| (seed, violation))
    });
    println!("{found:?}");
    let (_, violation) = found.expect("no seed has noticed an assignment that was ignored");
    assert!(violation.contains("was assigned and acknowledged last"), "{violation}");
}

/// The events of two different changes then have one name, so one of the changes is lost.
#[test]
fn an_actor_that_is_used_again_is_found() {
    // The first one is only where it was found last, to save time.
    let found = std::iter::once(165).chain(1..=400).find_map(|seed| {
        // The switch counts for this thread alone, and a run stays on its thread.
        break_rule(Some(BrokenRule::EachRunHasItsOwnActor));
        let report = run_typed_seed(seed);
        break_rule(None);
        report.violation.map(|violation| (seed, violation))
    });
    println!("{found:?}");
    assert!(found.is_some(), "no seed has noticed that an actor was used again");
}
