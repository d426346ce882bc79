//! Puts one state of the metadata after another in force.

use super::known_members::{cluster_id, excluded, learn_names};
use super::own_step::{OwnStep, own_step};
use super::state::Following;
use crate::member::ground::Followed;
use crate::metadata::changed;
use ombak_metadata::MetadataNode;
use ombak_metadata::state::{Command, Member, MemberStatus, Metadata};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::{info, warn};

impl Following {
    /// Follows `metadata` from now on, until it stops or the node follows another one.
    pub fn start_following(self: &Arc<Self>, metadata: Arc<MetadataNode>) {
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move {
            let mut seen = this.followed.get().index;
            while let Some((state, index)) = metadata.newer_than(seen).await {
                let _adopting = this.adopting.lock().await;
                // Another log may have come in force while this waited for the lock.
                if this.is_stopping() || !this.follows(&metadata) {
                    return;
                }
                this.adopt(state, index).await;
                seen = index;
            }
        }));
    }

    fn follows(&self, metadata: &Arc<MetadataNode>) -> bool {
        Arc::ptr_eq(&self.logs.current.load(), metadata)
    }

    /// Puts a decided state in force. A closing counts as followed after the last write has ended.
    /// The caller holds `adopting`.
    pub async fn adopt(self: &Arc<Self>, state: Metadata, index: u64) {
        if self.own_directory.older().is_some() {
            // Operators see the last state that this node knew, and nothing more.
            return self.followed.set(Followed { metadata: state, index });
        }
        let last = self.followed.get();
        let records = changed(&last.metadata, &state);
        self.own_directory.note_state(&state).await;
        if last.metadata.members() != state.members() {
            learn_names(&self.names, &state);
            self.node.set_members(self.others_in(&state));
            self.log_members(&last.metadata, &state);
            // A removed node does not come back. One that is no member yet may have told something.
            self.kv().repair_host().transfers().told.retain(|node| !state.was_removed(node));
        }
        self.node.peers().set_excluded(excluded(&state));
        self.node.transport().set_cluster(cluster_id(&state, self.id()));
        self.admission.known.store(Some(Arc::new(state.clone())));
        // A type that was created after a change of the ring had begun has its objects in the new
        // sets. So the placement comes first, and it has to know the n of the types of the state.
        self.kv().buckets().expect_n_vals(&records);
        self.hold_what_was_brought(&state);
        self.adopt_placement(&state).await;
        self.repair().set_hands_back(self.is_full_member_in(&state));
        let moving = self.kv().buckets().n_vals_of_moving_keys(&records);
        self.renew_fullness(&moving).await;
        self.adopt_records(records).await;
        self.renew_fullness(&moving).await;
        self.adopt_closed_part(&state).await;
        self.watch_closing(&last.metadata, &state);
        if self.is_full_member_in(&state)
            && state.members().len() > 1
            && let Some(join_steps) = self.join_steps()
        {
            join_steps.is_among_others().await;
        }
        self.note_leave(&state);
        let status = state.members().get(&self.id()).map(|me| me.status);
        self.kv().set_leaving(matches!(status, Some(MemberStatus::Leaving | MemberStatus::Exiting)));
        self.take_own_step(&last.metadata, &state);
        self.followed.set(Followed { metadata: state, index });
    }

    /// Whether the join of this node is committed. It is not if the node does not join after all.
    fn is_full_member_in(&self, state: &Metadata) -> bool {
        state.members().get(&self.id()).is_some_and(|me| me.status != MemberStatus::Joining)
    }

    /// What this node brings with it stays where it is, before the placement of the cluster is in
    /// force and until the join is committed.
    pub(in crate::member) fn hold_what_was_brought(&self, state: &Metadata) {
        if !self.is_full_member_in(state) {
            self.repair().set_hands_back(false);
        }
    }

    /// Nothing was proved about keys that come to other classes.
    async fn renew_fullness(&self, ns: &BTreeSet<u32>) {
        if ns.is_empty() {
            return;
        }
        let (kv, ns) = (self.kv().clone(), ns.clone());
        if !matches!(self.blocking(move || kv.renew_fullness(&ns)).await, Ok(true)) {
            // No token is told before it is saved, and the next question tries that again.
            warn!("replicas.json could not be written: classes whose keys change are not exchanged until it can");
        }
    }

    async fn adopt_records(&self, records: Vec<ombak_kv::buckets::RecordChange>) {
        const INLINE_MAX: usize = 16;
        if records.len() <= INLINE_MAX {
            return self.kv().buckets().adopt(records);
        }
        let (kv, again) = (self.kv().clone(), records.clone());
        if self.blocking(move || kv.buckets().adopt(records)).await.is_err() {
            self.kv().buckets().adopt(again);
        }
    }

    fn log_members(&self, last: &Metadata, state: &Metadata) {
        for (node, Member { name, status, .. }) in state.members() {
            if last.members().get(node).map(|before| before.status) != Some(*status) {
                info!(member = name, %status, "a member of the cluster");
            }
        }
        for (_, Member { name, .. }) in last.members().iter().filter(|(node, _)| !state.members().contains_key(*node)) {
            info!(member = name, "no member of the cluster any more");
        }
    }

    /// What the state says of this node may need an answer.
    fn take_own_step(self: &Arc<Self>, last: &Metadata, state: &Metadata) {
        let is_joining = self.is_joining.load(Ordering::SeqCst);
        let Some(step) = own_step(last, state, (self.id(), &self.me.name), is_joining) else { return };
        let this = self.clone();
        match step {
            OwnStep::SayUp => self.runtime.spawn(Box::pin(async move {
                let (expected, status) = (MemberStatus::Down, MemberStatus::Valid);
                let command = Command::SetStatus { node: this.id(), expected, status };
                let deadline = this.command_deadline();
                if let Err(why) = this.metadata_node().propose(command, deadline).await {
                    warn!(%why, "this node was marked as down, and could not tell that it is up");
                }
            })),
            OwnStep::TakeBackName => self.runtime.spawn(Box::pin(async move {
                let metadata = this.metadata_node();
                if let Err(why) = metadata.record_milestone(this.command_deadline()).await {
                    warn!(%why, "this node could not take back its name yet, and does so later");
                }
            })),
            OwnStep::TakeNoPart => self.own_directory.set_removed("the cluster has decided so".into()),
            OwnStep::Join(step) => {
                if let Some(join_steps) = self.join_steps() {
                    join_steps.begin(step);
                }
            }
        }
    }
}
