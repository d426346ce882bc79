//! Histories of deletes and rounds.

use super::world::{Faults, Shown, World};
use ombak_kv::{BrokenRule, break_rule};

const STEPS: usize = 60;

/// What became of a history.
struct Ended {
    /// What is wrong.
    wrong: Option<String>,
    /// How many fences were raised by removals and answers.
    fences: u64,
    /// How often a node was started again.
    restarts: u64,
}

fn run(seed: u64, (faults, shown): (Faults, Shown), rule: Option<BrokenRule>) -> Ended {
    break_rule(rule);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let ended = tokio.block_on(async {
        let mut world = World::new(seed, faults, shown);
        for _ in 0..STEPS {
            world.step().await;
        }
        let stuck = world.heal().await;
        let wrong = world.check().await.or(stuck);
        world.end();
        Ended { wrong, fences: world.fences(), restarts: world.restarts }
    });
    break_rule(None);
    ended
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// `OMBAK_REAPING_HISTORIES` says how many; `OMBAK_REAPING_SEED` runs one. Returns the number of
/// restarts.
fn run_all(faults: Faults, shown: Shown) -> u64 {
    let only = number("OMBAK_REAPING_SEED", 0);
    let seeds = if only > 0 { only..=only } else { 1..=number("OMBAK_REAPING_HISTORIES", 40) };
    let (mut wrong, mut fences, mut restarts) = (Vec::new(), 0, 0);
    for seed in seeds {
        let ended = run(seed, (faults, shown), None);
        fences += ended.fences;
        restarts += ended.restarts;
        wrong.extend(ended.wrong.map(|why| format!("seed {seed}: {why}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(fences > 0, "no round ended");
    restarts
}

#[test]
fn nothing_deleted_comes_back_and_all_tombstones_go() {
    assert_eq!(run_all(Faults::Network, Shown::Siblings), 0);
}

#[test]
fn so_it_is_when_processes_are_killed_and_machines_lose_power() {
    assert!(run_all(Faults::Restarts, Shown::Siblings) > 0);
}

#[test]
fn in_a_bucket_without_siblings_the_newest_write_counts() {
    assert_eq!(run_all(Faults::Network, Shown::Newest), 0);
}

fn is_found(rule: BrokenRule, shown: Shown, histories: u64) {
    let run = |seed| run(seed, (Faults::Network, shown), Some(rule)).wrong.map(|why| (seed, why));
    let found = (1..=histories).find_map(run);
    println!("{rule:?}: {found:?}");
    assert!(found.is_some(), "{rule:?} can be left out, and nobody notices");
}

#[test]
fn it_is_found_that_other_members_are_not_asked() {
    is_found(BrokenRule::OtherMembersAreAsked, Shown::Siblings, 200);
}

#[test]
fn it_is_found_that_no_copy_is_refused() {
    is_found(BrokenRule::CopiesAreFenced, Shown::Siblings, 200);
}

#[test]
fn it_is_found_that_a_living_value_is_preferred_to_a_newer_tombstone() {
    is_found(BrokenRule::NewerTombstonesHide, Shown::Newest, 200);
}

#[test]
fn it_is_found_that_hidden_values_stay() {
    is_found(BrokenRule::HiddenValuesAreReplaced, Shown::Newest, 200);
}
