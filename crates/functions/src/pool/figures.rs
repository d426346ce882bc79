//! What the statistics of a node show of a pool.

use super::{LaneCounts, Shared};
use crate::Lane;
use ombak_stats::{Feature, Figure, Number};
use std::fmt;
use std::sync::Arc;

/// The counts of all lanes of a pool. The pool ends its threads although the statistics hold this.
pub(super) struct PoolFigures(pub(super) Arc<Shared>);

impl fmt::Debug for PoolFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolFigures").finish_non_exhaustive()
    }
}

impl Feature for PoolFigures {
    fn figures(&self) -> Vec<Figure<'_>> {
        let lanes = Lane::ALL.map(|lane| (lane, self.0.lane(lane).state.lock().counts()));
        lanes.into_iter().flat_map(|(lane, counts)| of_lane(lane, counts)).collect()
    }
}

fn of_lane(lane: Lane, counts: LaneCounts) -> [Figure<'static>; 9] {
    let lane = lane.name();
    let figure = |name, metric, help, number| Figure {
        name: format!("ombak_functions_{lane}_{name}"),
        metric,
        label: Some(("lane", lane)),
        help,
        number,
    };
    let gauge = |name, metric, help, number: usize| figure(name, metric, help, Number::Gauge(number as u64));
    let total = |name, metric, help, number| figure(name, metric, help, Number::Total(number));
    [
        gauge("waiting", "functions_waiting", "Calls of functions in JavaScript that wait.", counts.waiting),
        gauge("threads", "functions_threads", "Threads for functions, each with a process.", counts.threads),
        gauge("busy", "functions_threads_busy", "Threads that run functions.", counts.busy),
        gauge("slow", "functions_threads_slow", "Threads whose function has run for long.", counts.slow),
        total(
            "ended",
            "functions_ended_total",
            "Processes of functions ended because a call did not end in its time.",
            counts.ended_total,
        ),
        total(
            "displaced",
            "functions_displaced_total",
            "Long calls of functions ended because others waited.",
            counts.displaced_total,
        ),
        total("died", "functions_died_total", "Processes of functions that ended by themselves.", counts.died_total),
        total(
            "refused",
            "functions_refused_total",
            "Calls of functions refused because too many waited.",
            counts.refused_total,
        ),
        total(
            "late",
            "functions_late_total",
            "Calls of functions whose time was over before they began.",
            counts.late_total,
        ),
    ]
}
