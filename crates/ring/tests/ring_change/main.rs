//! A model of ring changes (docs/design/ring-changes.md): the real placement and the real driver,
//! with members, coordinators and messages that are as simple as they can be. Each seed is one
//! history.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod broken;
mod clients;
mod faults;
mod leader;
mod member;
mod model;
mod oracle;
mod plans;
mod request;
mod rng;
mod work;
mod world;

use broken::Broken;
use world::World;

const HISTORIES: u64 = 2000;
const THREADS: u64 = 4;

#[test]
fn no_history_breaks_a_promise() {
    let run = |part: u64| {
        let seeds = (0..HISTORIES).filter(move |seed| seed % THREADS == part);
        seeds.filter_map(|seed| Some(format!("seed {seed}: {}", World::new(seed, None).run().err()?))).collect()
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..THREADS).map(|part| scope.spawn(move || -> Vec<String> { run(part) })).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert_eq!(failed, Vec::<String>::new());
}

/// A seed belongs to a state of the model. After a change of the model `find_seeds` finds others.
#[test]
fn every_broken_rule_shows() {
    for (broken, seed) in Broken::KNOWN {
        assert!(World::new(seed, Some(broken)).run().is_err(), "{broken:?} does not show in seed {seed}");
        assert_eq!(World::new(seed, None).run(), Ok(()), "seed {seed}");
    }
}

#[test]
#[ignore = "it takes minutes, and is for those who change the model"]
fn find_seeds() {
    for (broken, _) in Broken::KNOWN {
        let shows =
            |seed: &u64| World::new(*seed, Some(broken)).run().is_err() && World::new(*seed, None).run().is_ok();
        println!("{broken:?}: {:?}", (0..10_000).find(shows));
    }
}
