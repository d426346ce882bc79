//! How a node keeps its directory apart from copies of it: milestones that it draws, and notes of
//! what its cluster has recorded (docs/design/replication.md §8).

use super::own_directory::OwnDirectory;
use ombak_metadata::MetadataNode;
use ombak_metadata::state::Metadata;
use ombak_node_files::OwnMetadata;
use std::sync::Arc;
use std::time::Instant;
use tracing::{error, warn};

impl OwnDirectory {
    /// Draws a milestone and lets the cluster record it, if it has recorded the one before. So a
    /// copy that was made earlier during this run is older, too.
    pub async fn pass_milestone(&self, metadata: impl FnOnce() -> Arc<MetadataNode>, deadline: Instant) {
        let identity = self.kv.directory().identity();
        if !identity.is_some_and(|identity| identity.milestones.is_newest_recorded()) {
            return;
        }
        let kv = self.kv.clone();
        match self.kv.offload(move || kv.directory().draw_milestone()).await {
            // A refusal is found again by the next look at the metadata.
            Ok(Ok(())) => drop(metadata().record_milestone(deadline).await),
            Ok(Err(error)) => warn!(%error, "no milestone could be drawn"),
            Err(error) => warn!(%error, "no milestone could be drawn"),
        }
    }

    /// Notes on disk what a state says of this node's directory. The caller adopts that state, and
    /// no other one at the same time.
    pub async fn note_state(&self, state: &Metadata) {
        let Some(me) = state.members().get(&self.id()) else { return };
        if let Some(milestone) = me.milestone {
            let identity = self.kv.directory().identity();
            if !identity.as_ref().is_some_and(|identity| identity.milestones.has_passed(milestone)) {
                // The node follows the metadata, and somebody else went on under its identity.
                return self.set_older(format!(
                    "its cluster has recorded its milestone {}, which is not in it",
                    milestone.number
                ));
            }
        }
        let metadata = if state.members().len() > 1 { OwnMetadata::Member } else { OwnMetadata::Alone };
        let (kv, milestone) = (self.kv.clone(), me.milestone);
        if *self.noted.lock() == Some((milestone, metadata)) {
            return;
        }
        let note = move || {
            let directory = kv.directory();
            if let Some(milestone) = milestone {
                directory.note_recorded(milestone)?;
            }
            directory.note_metadata(metadata)
        };
        match self.kv.offload(note).await {
            Ok(Ok(())) => *self.noted.lock() = Some((milestone, metadata)),
            Ok(Err(error)) => error!(%error, "node.json could not be written"),
            Err(error) => error!(%error, "node.json could not be written"),
        }
    }
}
