//! Which peers a member lets in.

use super::known_starts::KnownStarts;
use crate::deliberate_faults::removed_nodes_take_part;
use crate::member::features::KnownCapabilities;
use arc_swap::ArcSwapOption;
use ombak_metadata::state::Metadata;
use ombak_peer::handshake::{Refusal, RefusalKind, RemotePeer};
use ombak_peer::{Admission, KeepOlderSession, LiveSession};
use ombak_types::NodeId;
use std::sync::Arc;

/// What the refusal of a removed node says. The node finds it there, so it stays as it is.
pub(in crate::member) const WAS_REMOVED: &str = "was removed from this cluster";

/// Lets in whoever knows the secret, unless the metadata knows better: a node that was removed, or
/// whose data directory is older than the members know (docs/design/replication.md §8). The number
/// of starts shows that only as long as the older copy was not started as often, so each node also
/// asks what is known of its directory ([`super::own_directory`]). Nodes that
/// are no members are let in, because they may want to join; services for data compare the lineage
/// of the ring.
#[derive(Default)]
pub(crate) struct MemberAdmission {
    /// `None` until the node has read what it knew.
    pub known: ArcSwapOption<Metadata>,
    /// What else this node knows of the others' directories.
    pub starts: KnownStarts,
    /// What the others said last that they can do.
    pub capabilities: KnownCapabilities,
}

impl Admission for MemberAdmission {
    fn admit(&self, peer: &RemotePeer, live: Option<LiveSession>) -> Result<(), Refusal> {
        let Some(known) = self.known.load_full() else {
            return Err(Refusal::new(RefusalKind::NotAdmitted, "the node is starting"));
        };
        KeepOlderSession.admit(peer, live)?;
        let checked = check(&known, peer);
        if let Err(refusal) = &checked
            && refusal.kind == RefusalKind::OlderDirectory
        {
            self.starts.note_older(peer.identity.node, refusal.text.clone());
        }
        if checked.is_ok() {
            self.capabilities.note(peer.identity.node, &peer.identity.capabilities);
        }
        checked
    }

    fn has_said(&self, node: NodeId, capability: &str) -> Option<bool> {
        self.capabilities.has_said(node, capability)
    }
}

fn check(known: &Arc<Metadata>, peer: &RemotePeer) -> Result<(), Refusal> {
    let identity = &peer.identity;
    if known.was_removed(identity.node) && !removed_nodes_take_part() {
        let text = format!("node {} {WAS_REMOVED}; it can join again only with an empty data directory", identity.node);
        return Err(Refusal::new(RefusalKind::NotAdmitted, text));
    }
    match known.members().get(&identity.node) {
        Some(member) if identity.boot_number < member.boot => {
            let text = format!(
                "the data directory of '{}' is at its start number {}, and the cluster knows its start number {}: it is \
                 an older copy, such as a restored backup, so it takes no part; put back its newest directory, or start \
                 it with an empty data directory under its name, and let it rejoin ('ombak admin cluster rejoin')",
                member.name, identity.boot_number, member.boot
            );
            Err(Refusal::new(RefusalKind::OlderDirectory, text))
        }
        _ => Ok(()),
    }
}
