//! How many questions a server works on, and the end of its work.
//!
//! Hot path: each question of another node enters here.

use crate::replica::ReplicaCounters;
use bytes::Bytes;
use ombak_peer::{RefusalCode, Responder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts the questions that a server works on. Several services may share one.
pub(crate) struct Gate {
    under_way: AtomicUsize,
    under_way_max: usize,
    is_draining: AtomicBool,
}

/// A question that counts as under way until this is dropped.
pub(crate) struct UnderWay(Arc<Gate>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate {
    /// Lets in at most `under_way_max` questions at a time.
    pub(crate) fn new(under_way_max: usize) -> Arc<Self> {
        Arc::new(Self { under_way: AtomicUsize::new(0), under_way_max, is_draining: AtomicBool::new(false) })
    }

    /// Counts a question, unless the node stops or too many are under way: then it is refused.
    #[inline]
    pub(crate) fn enter(
        self: &Arc<Self>,
        answer: Responder,
        counters: &ReplicaCounters,
    ) -> Option<(Responder, UnderWay)> {
        let before = self.under_way.fetch_add(1, Ordering::SeqCst);
        // From here on the question is counted, also if it is refused.
        let under_way = UnderWay(self.clone());
        if self.is_draining() {
            answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new());
            return None;
        }
        if before >= self.under_way_max {
            counters.refused_for_overload();
            answer.overload();
            return None;
        }
        Some((answer, under_way))
    }

    /// Refuses further questions: other replicas answer them.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    /// Whether the node stops.
    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    /// The number of questions that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }
}

/// The gates of all services of a node.
#[derive(Default)]
pub(crate) struct Gates(Vec<Arc<Gate>>);

impl Gates {
    /// Adds a gate, unless it is there already.
    pub(super) fn add(&mut self, gate: Arc<Gate>) {
        if !self.0.iter().any(|present| Arc::ptr_eq(present, &gate)) {
            self.0.push(gate);
        }
    }

    /// Refuses further questions.
    pub(crate) fn drain(&self) {
        self.0.iter().for_each(|gate| gate.drain());
    }

    /// The number of questions that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.0.iter().map(|gate| gate.under_way()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_services_share_counts_once() {
        let (shared, other) = (Gate::new(1), Gate::new(1));
        let mut gates = Gates::default();
        [&shared, &other, &shared].into_iter().for_each(|gate| gates.add(gate.clone()));
        shared.under_way.fetch_add(1, Ordering::SeqCst);
        let under_way = UnderWay(shared.clone());
        assert_eq!(gates.under_way(), 1);
        gates.drain();
        assert!(shared.is_draining() && other.is_draining());
        drop(under_way);
        assert_eq!(gates.under_way(), 0);
    }
}
