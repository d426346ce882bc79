//! When a node last heard another one directly.

use crate::process::Process;
use foca::{Member, State};
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::time::Duration;

/// The last packet of each member that reached this node directly.
///
/// It weighs more than what a third node says: a node that hears nobody takes all others for dead
/// and tells them so. Without this evidence, one deaf node would make healthy nodes go down for
/// each other.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    heard: BTreeMap<NodeId, (Process, Duration)>,
}

impl Evidence {
    pub(crate) fn heard(&mut self, process: Process, at: Duration) {
        let heard = self.heard.entry(process.node).or_insert((process, at));
        if process >= heard.0 {
            *heard = (process, at);
        }
    }

    pub(crate) fn forget(&mut self, node: NodeId) {
        self.heard.remove(&node);
    }

    /// The latest process of a node that was heard.
    pub(crate) fn process(&self, node: NodeId) -> Option<Process> {
        self.heard.get(&node).map(|(process, _)| *process)
    }

    /// Whether a third node's word that a process is down contradicts what was heard less than
    /// `fresh_for` ago.
    pub(crate) fn contradicts(&self, update: &Member<Process>, now: Duration, fresh_for: Duration) -> bool {
        update.state() == State::Down
            && self
                .heard
                .get(&update.id().node)
                .is_some_and(|(process, at)| process >= update.id() && now.saturating_sub(*at) < fresh_for)
    }
}
