//! What the audit log counts.

use crate::event::EventKind;
use ombak_stats::{Feature, Figure, Number};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many events were recorded, and how many were left out, of each kind.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    recorded: [AtomicU64; EventKind::ALL.len()],
    dropped: [AtomicU64; EventKind::ALL.len()],
}

impl Counts {
    pub(crate) fn note_recorded(&self, kind: EventKind) {
        self.recorded[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_dropped(&self, kind: EventKind) {
        self.dropped[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many were left out since the start, of each kind.
    pub(crate) fn dropped(&self) -> [u64; EventKind::ALL.len()] {
        EventKind::ALL.map(|kind| self.dropped[kind as usize].load(Ordering::Relaxed))
    }
}

impl Feature for Counts {
    fn figures(&self) -> Vec<Figure<'_>> {
        let groups = [
            ("recorded", "audit_events_total", "Events that were given to the audit log.", &self.recorded),
            ("dropped", "audit_dropped_total", "Events that the audit log left out.", &self.dropped),
        ];
        let of_group = |(word, metric, help, counts): (&str, _, _, &[AtomicU64; EventKind::ALL.len()])| {
            EventKind::ALL.map(|kind| Figure {
                name: format!("audit_{}_{word}", kind.name()),
                metric,
                label: Some(("event", kind.name())),
                help,
                number: Number::Total(counts[kind as usize].load(Ordering::Relaxed)),
            })
        };
        groups.into_iter().flat_map(of_group).collect()
    }
}
