//! What a node has seen of the directories of other nodes.

use crate::milestones::Milestone;
use crate::saved_json::Formats;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the file in the directory of a node.
pub(crate) const SEEN_FILE: &str = "seen-milestones.json";
pub(crate) const SEEN_FORMATS: Formats = Formats { without_checksum: 0, current: 1 };
/// So many nodes are noted: the file stays far below the maximum.
const NODES_MAX: usize = 400;

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeenMilestones {
    format: u32,
    /// The last milestone with which each node went on.
    seen: Vec<Seen>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    node: NodeId,
    milestone: Milestone,
}

impl SeenMilestones {
    pub(crate) fn new(seen: &BTreeMap<NodeId, Milestone>) -> Self {
        let seen = seen.iter().take(NODES_MAX).map(|(node, milestone)| Seen { node: *node, milestone: *milestone });
        Self { format: SEEN_FORMATS.current, seen: seen.collect() }
    }

    pub(crate) fn by_node(self) -> BTreeMap<NodeId, Milestone> {
        self.seen.into_iter().map(|seen| (seen.node, seen.milestone)).collect()
    }
}
