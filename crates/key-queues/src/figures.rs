//! What is counted of the queues.

use crate::job::JobKind;
use crate::state::State;
use ombak_stats::{Feature, Figure, Number, Spiral};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// The counters, which attach to the node's figures.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) erased: Spiral,
    pub(crate) reaped: Spiral,
    pub(crate) repaired: Spiral,
    state: Weak<Mutex<State>>,
}

impl Counters {
    pub(crate) fn new(state: &Arc<Mutex<State>>) -> Self {
        let (erased, reaped, repaired) = (Spiral::default(), Spiral::default(), Spiral::default());
        Self { erased, reaped, repaired, state: Arc::downgrade(state) }
    }

    /// Counts keys that are done.
    pub(crate) fn add(&self, kind: JobKind, keys: u64) {
        match kind {
            JobKind::Erase => self.erased.add(keys),
            JobKind::Reap => self.reaped.add(keys),
            JobKind::Repair => self.repaired.add(keys),
            JobKind::Drop => {}
        }
    }

    fn waiting(&self, kind: JobKind) -> u64 {
        self.state.upgrade().map_or(0, |state| state.lock().waiting_keys(kind))
    }
}

impl Feature for Counters {
    fn figures(&self) -> Vec<Figure<'_>> {
        let of = [
            ("erase", JobKind::Erase, &self.erased),
            ("reap", JobKind::Reap, &self.reaped),
            ("repair", JobKind::Repair, &self.repaired),
        ];
        let figures = |(name, kind, done)| {
            [
                Figure {
                    name: format!("{name}_queue_keys"),
                    metric: "key_queue_keys",
                    label: Some(("queue", name)),
                    help: "Keys that a fold has found and that wait to be erased, reaped or repaired.",
                    number: Number::Gauge(self.waiting(kind)),
                },
                Figure {
                    name: format!("{name}_queue_done"),
                    metric: "key_queue_done_total",
                    label: Some(("queue", name)),
                    help: "Keys of the queues that were erased, reaped or repaired since the start.",
                    number: Number::Spiral(done),
                },
            ]
        };
        of.into_iter().flat_map(figures).collect()
    }
}
