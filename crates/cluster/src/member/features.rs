//! What the members of a cluster can do together.
//!
//! A feature that changes what nodes write into the metadata, or what they expect of each other, is
//! used only when every member can do it. What a member can do it says in each handshake. A member
//! that is down counts with what it said last, because it may return with the same program. A
//! member of which nothing is known cannot do it. One that is down and removed by force with the
//! use of the feature does not count.
//!
//! A member that goes back to an earlier program says less from then on. What has been written
//! before that, it cannot read.

use super::error::ClusterError;
use super::member_node::{Inner, MemberNode};
use super::questions::question::{Answer, Question};
use ombak_metadata::state::Metadata;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;
use tracing::warn;

/// How many nodes are remembered. A node that knows the secret could call itself by any number of
/// identities.
const NODES_MAX: usize = 4096;

/// A feature that all members must have before one of them uses it. It is declared as a constant
/// beside what needs it, and listed in [`Feature::ALL`].
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Its name in handshakes. It is added together with the last part of what it stands for: other
    /// nodes believe it.
    pub(crate) capability: &'static str,
    /// What it is, for people.
    pub(crate) text: &'static str,
    /// The namespace of the metadata whose records all members must understand.
    pub(crate) namespace: Option<&'static str>,
    /// Whether the metadata has something that only those understand who have the feature, or that
    /// lets clients write what only they understand.
    pub(crate) is_used_in: fn(&Metadata) -> bool,
}

impl Feature {
    /// All features. The first one that a node lacks is named when the node may not join.
    pub(crate) const ALL: [Self; 7] = [
        Self::RING_CHANGES,
        Self::LOCATIONS,
        Self::DATA_TYPES,
        Self::FUNCTIONS,
        Self::TIMELESS_TOMBSTONES,
        Self::OPEN_RECORDS,
        Self::SECURITY,
    ];

    /// Its name in handshakes.
    pub const fn capability(self) -> &'static str {
        self.capability
    }
}

/// What other nodes said last that they can do.
#[derive(Default)]
pub(crate) struct KnownCapabilities {
    said: Mutex<BTreeMap<NodeId, BTreeSet<String>>>,
    /// What is on the disk. Locked while it is written.
    saved: tokio::sync::Mutex<BTreeMap<NodeId, BTreeSet<String>>>,
}

impl KnownCapabilities {
    /// Notes what a node said in a handshake.
    pub fn note(&self, node: NodeId, capabilities: &BTreeSet<String>) {
        let mut said = self.said.lock();
        let is_news = said.get(&node) != Some(capabilities);
        if is_news && (said.len() < NODES_MAX || said.contains_key(&node)) {
            said.insert(node, capabilities.clone());
        }
    }

    /// Takes over what an earlier process of this node has heard. What was heard since is newer.
    pub fn remember(&self, before: BTreeMap<NodeId, BTreeSet<String>>) {
        let mut said = self.said.lock();
        for (node, capabilities) in before {
            said.entry(node).or_insert(capabilities);
        }
    }

    /// Whether a node has a feature; `None` if nothing is known of it.
    fn can(&self, node: NodeId, feature: Feature) -> Option<bool> {
        self.has_said(node, feature.capability())
    }

    /// Whether a node said last that it has a capability; `None` if nothing is known of it.
    pub fn has_said(&self, node: NodeId, capability: &str) -> Option<bool> {
        self.said.lock().get(&node).map(|capabilities| capabilities.contains(capability))
    }
}

impl MemberNode {
    /// Checks that every member has a feature. The refusal names those that have not.
    pub fn check_all_can(&self, feature: Feature) -> Result<(), ClusterError> {
        self.inner.check_all_can(feature, &self.inner.metadata_node().metadata(), &BTreeSet::new())
    }
}

impl Inner {
    /// Checks that every member of `metadata` has a feature, before something is proposed that only
    /// those understand who have it. Members that are `lost`, and removed with the proposal, need
    /// not understand it. Often nobody can start them any more.
    pub fn check_all_can(
        &self,
        feature: Feature,
        metadata: &Metadata,
        lost: &BTreeSet<NodeId>,
    ) -> Result<(), ClusterError> {
        let stay = || metadata.members().iter().filter(|(node, _)| !lost.contains(node));
        let members = || stay().map(|(node, member)| (&member.name, self.can(*node, feature)));
        let named = |wanted: Option<bool>| {
            let names = members().filter(|(_, can)| *can == wanted).map(|(name, _)| format!("'{name}'"));
            names.collect::<Vec<String>>().join(", ")
        };
        let (older, unknown) = (named(Some(false)), named(None));
        let mut sentences = Vec::new();
        if !older.is_empty() {
            sentences.push(format!("An earlier version of ombak runs on {older}: upgrade it there first."));
        }
        if !unknown.is_empty() {
            sentences.push(format!("It is not known yet which version runs on {unknown}: start it first."));
        }
        match sentences.is_empty() {
            true => Ok(()),
            false => Err(ClusterError::refused(format!(
                "Failed: not all members know {}. {}",
                feature.text,
                sentences.join(" ")
            ))),
        }
    }

    /// Whether this node or another one has a feature; `None` if nothing is known of that one.
    fn can(&self, node: NodeId, feature: Feature) -> Option<bool> {
        match node == self.id() {
            true => Some(self.node.transport().offers(feature.capability())),
            false => self.admission.capabilities.can(node, feature),
        }
    }

    /// Whether every member of `metadata` has a feature; `None` if it is not known of some, and all
    /// others have it.
    pub(super) fn can_all(&self, feature: Feature, metadata: &Metadata) -> Option<bool> {
        let can = |node: &NodeId| self.can(*node, feature);
        let members = metadata.members();
        match members.keys().any(|node| can(node) == Some(false)) {
            true => Some(false),
            false => members.keys().all(|node| can(node).is_some()).then_some(true),
        }
    }

    /// Answers a question of another node. A node that would not understand the metadata does not
    /// learn what a node that wants to join has to know, and so it does not join.
    pub async fn answer_peer(self: &Arc<Self>, peer: NodeId, question: &Question, deadline: Instant) -> Answer {
        if matches!(question, Question::Cluster)
            && let Some(why) = self.joining.awaits.get()
        {
            return Answer::Refused { why: format!("it is new itself, and serves nobody yet: {why}") };
        }
        if let Question::WhoIs { name, address } = question {
            return self.joining.say_who_it_is(peer, name, address).await;
        }
        let metadata = self.followed.get().metadata;
        let lacks = |feature: &Feature| {
            (feature.is_used_in)(&metadata) && self.admission.capabilities.can(peer, *feature) != Some(true)
        };
        match Feature::ALL.into_iter().find(lacks).filter(|_| matches!(question, Question::Cluster)) {
            Some(feature) => {
                let why = format!("an earlier version of ombak runs there, which does not know {}", feature.text);
                warn!(node = %peer, why, "a node asked to join and was refused");
                Answer::Refused { why }
            }
            None => self.answer(question, deadline).await,
        }
    }

    /// Takes over what an earlier process of this node has heard. Blocks. Without the file, members
    /// that are down count as unable until they return.
    pub async fn remember_capabilities(&self) {
        let kv = self.kv().clone();
        match self.blocking(move || kv.directory().read_capabilities()).await {
            Ok(Ok(before)) => {
                *self.admission.capabilities.saved.lock().await = before.clone();
                self.admission.capabilities.remember(before);
            }
            why => warn!(?why, "what the other members said last that they can do cannot be read"),
        }
    }

    /// Makes durable what the other members said last that they can do. A node that joins said it
    /// before it was a member, so what is on the disk is compared each time.
    pub async fn save_capabilities(&self) {
        let known = &self.admission.capabilities;
        let mut saved = known.saved.lock().await;
        let followed = self.followed.get();
        let of_members: BTreeMap<NodeId, BTreeSet<String>> = {
            let said = known.said.lock();
            let said = said.iter().filter(|(node, _)| followed.metadata.members().contains_key(*node));
            said.map(|(node, capabilities)| (*node, capabilities.clone())).collect()
        };
        if *saved == of_members {
            return;
        }
        let (kv, next) = (self.kv().clone(), of_members.clone());
        match self.blocking(move || kv.directory().save_capabilities(&next)).await {
            Ok(Ok(())) => *saved = of_members,
            why => warn!(?why, "what the other members can do could not be written"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::{Speaks, capabilities};

    #[test]
    fn what_was_heard_last_counts_and_nothing_is_assumed() {
        let known = KnownCapabilities::default();
        let (node, other, changes) = (NodeId::new(1), NodeId::new(2), Feature::RING_CHANGES.capability());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(known.can(node, Feature::RING_CHANGES), None);
        known.note(node, &names(&["members.1", changes]));
        assert_eq!(known.can(node, Feature::RING_CHANGES), Some(true));
        known.note(node, &names(&["members.1"]));
        assert_eq!(known.can(node, Feature::RING_CHANGES), Some(false), "it went back to an earlier version");
        known.remember(BTreeMap::from([(node, names(&[changes])), (other, names(&[changes]))]));
        assert_eq!(known.can(node, Feature::RING_CHANGES), Some(false), "what was heard since is newer");
        assert_eq!(known.can(other, Feature::RING_CHANGES), Some(true));
    }

    #[test]
    fn each_feature_has_a_capability_of_its_own_that_nodes_say() {
        let said = capabilities(Speaks::Everything);
        let of_features: BTreeSet<&str> = Feature::ALL.iter().map(|feature| feature.capability()).collect();
        assert_eq!(of_features.len(), Feature::ALL.len());
        assert!(of_features.iter().all(|name| said.contains(*name)));
        assert!(of_features.is_disjoint(&capabilities(Speaks::Version1).iter().map(String::as_str).collect()));
    }

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let known = KnownCapabilities::default();
        (0..=NODES_MAX as u64).for_each(|node| known.note(NodeId::new(node), &BTreeSet::new()));
        assert_eq!(known.said.lock().len(), NODES_MAX);
        assert_eq!(known.can(NodeId::new(NODES_MAX as u64), Feature::RING_CHANGES), None);
    }
}
