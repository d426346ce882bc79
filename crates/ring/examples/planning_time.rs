//! How long planning takes, and how many partitions move above what balance alone demands.
//!
//! It claims a ring for members one by one, and for a leave and a replace at the end, with and
//! without locations: `cargo run --release -p ombak-ring --example planning_time`. The arguments
//! are the ring's size, the number of members and the number of locations.

use ombak_ring::claim::{Claim, TARGET_LOCATION_N_VAL_DEFAULT, TARGET_N_VAL_DEFAULT, Targets};
use ombak_ring::{Location, Locations};
use ombak_types::NodeId;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The members that are numbered so.
fn members(range: std::ops::Range<u64>) -> BTreeSet<NodeId> {
    range.map(NodeId::new).collect()
}

struct Run {
    locations: Locations,
    owners: Vec<Option<NodeId>>,
    slowest: Duration,
    moves: u32,
    moves_min: u32,
}

impl Run {
    fn new(size: usize, of: u64, locations: u64) -> Self {
        let location = |node: u64| format!("zone{}", node % locations.max(1)).parse::<Location>().ok();
        let locations = match locations {
            0 => Locations::new(),
            _ => (0..of).filter_map(|node| Some((NodeId::new(node), location(node)?))).collect(),
        };
        let (slowest, moves, moves_min) = (Duration::ZERO, 0, 0);
        Self { locations, owners: vec![None; size], slowest, moves, moves_min }
    }

    fn change(&mut self, members: &BTreeSet<NodeId>) -> Option<(Duration, Claim)> {
        let targets = Targets {
            n_val: TARGET_N_VAL_DEFAULT,
            location_n_val: TARGET_LOCATION_N_VAL_DEFAULT,
            locations: &self.locations,
        };
        let began = Instant::now();
        let claim = Claim::of_located(&self.owners, members, targets)?;
        let took = began.elapsed();
        self.slowest = self.slowest.max(took);
        self.moves += claim.moves;
        self.moves_min += claim.moves_min;
        self.owners = claim.owners.iter().copied().map(Some).collect();
        Some((took, claim))
    }

    fn print(&self, what: &str, took: Duration, claim: &Claim) {
        let locations = claim.location_spacing.map_or_else(|| "-".to_owned(), |at| at.reached.to_string());
        let (ms, slowest_ms) = (took.as_secs_f64() * 1e3, self.slowest.as_secs_f64() * 1e3);
        println!(
            "{what:<30} {ms:>8.1} ms (slowest so far {slowest_ms:>8.1} ms)  moves {:>5}, balance demands {:>5}  \
             spacing {}, locations {locations}",
            claim.moves, claim.moves_min, claim.spacing.reached
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (size, of) = (arguments.next().unwrap_or(1024), arguments.next().unwrap_or(100));
    let zones = arguments.next().unwrap_or(5);
    for locations in [0, zones] {
        println!("{size} partitions, {of} members, {locations} locations");
        let mut all_at_once = Run::new(size as usize, of + 2, locations);
        if let Some((took, claim)) = all_at_once.change(&members(0..of)) {
            all_at_once.print("a new ring", took, &claim);
        }
        let mut run = Run::new(size as usize, of + 2, locations);
        for joined in 1..=of {
            let Some((took, claim)) = run.change(&members(0..joined)) else { return };
            if joined == of {
                run.print("the last join of all", took, &claim);
            }
        }
        println!("    all joins: {} moves, balance demands {}", run.moves, run.moves_min);
        for (what, remaining) in [("a leave", 1..of), ("three leaves", 4..of), ("two joins and a leave", 5..of + 2)] {
            let Some((took, claim)) = run.change(&members(remaining)) else { return };
            run.print(what, took, &claim);
        }
    }
}
