//! The stored and transmitted form of a placement.

use super::home::Phase;
use super::placement::{Home, Placement, PlacementError, RINGS_MAX};
use crate::ring::{Ring, RingVersion};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const FORMAT: u32 = 1;

/// A placement as JSON. Homes that follow each other and are alike are one entry.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    format: u32,
    version: RingVersion,
    /// The goal comes first.
    rings: Vec<Ring>,
    homes: Vec<Run>,
}

/// Homes that follow each other and are alike.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    /// The number of homes.
    count: u32,
    /// The number of the version at which they changed last.
    changed: u64,
    in_force: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<u8>,
    phase: Phase,
}

impl From<Placement> for Saved {
    fn from(placement: Placement) -> Self {
        let mut homes: Vec<Run> = Vec::new();
        let mut last = None;
        for home in placement.homes.iter() {
            match homes.last_mut().filter(|_| last == Some(*home)) {
                Some(run) => run.count += 1,
                None => {
                    let Home { changed, in_force, other, phase } = *home;
                    homes.push(Run { count: 1, changed, in_force, other, phase });
                }
            }
            last = Some(*home);
        }
        let rings = placement.rings.iter().map(|ring| (**ring).clone()).collect();
        Self { format: FORMAT, version: placement.version, rings, homes }
    }
}

impl TryFrom<Saved> for Placement {
    type Error = PlacementError;

    fn try_from(saved: Saved) -> Result<Self, PlacementError> {
        if saved.format != FORMAT {
            return Err(PlacementError::Format { found: saved.format, known: FORMAT });
        }
        let damaged = |why| Err(PlacementError::Damaged(why));
        let Some(size) = saved.rings.first().map(|ring| ring.size().get()) else { return damaged("it has no ring") };
        if saved.rings.len() > RINGS_MAX || saved.rings.iter().any(|ring| ring.size().get() != size) {
            return damaged("it has too many rings, or rings of different sizes");
        }
        let is_known = |of: RingVersion| of.lineage == saved.version.lineage && of.number <= saved.version.number;
        if saved.rings.iter().any(|ring| !is_known(ring.version())) {
            return damaged("one of its rings is newer than itself, or of another lineage");
        }
        let count: u64 = saved.homes.iter().map(|run| u64::from(run.count)).sum();
        if count != u64::from(size) {
            return damaged("it has another number of homes than partitions");
        }
        let is_ring = |place: u8| usize::from(place) < saved.rings.len();
        for Run { changed, in_force, other, phase, .. } in &saved.homes {
            let is_valid = *changed <= saved.version.number
                && is_ring(*in_force)
                && other.is_none_or(|other| is_ring(other) && other != *in_force)
                && other.is_some() == (*phase != Phase::Settled);
            if !is_valid {
                return damaged("one of its homes is in no possible state");
            }
        }
        let home =
            |run: &Run| Home { changed: run.changed, in_force: run.in_force, other: run.other, phase: run.phase };
        let homes = saved.homes.iter().flat_map(|run| std::iter::repeat_n(home(run), run.count as usize)).collect();
        Ok(Self { version: saved.version, rings: saved.rings.into_iter().map(Arc::new).collect(), homes })
    }
}
