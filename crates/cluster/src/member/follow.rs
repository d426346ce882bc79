//! Follows what the metadata has decided: bucket types, members, the closing of the cluster, the
//! placement.

use super::member_node::{Followed, Inner, cluster_id, learn_names};
use super::questions::{Answer, Place, Question};
use crate::members::Standings;
use crate::metadata::changed;
use ombak_kv::Holdings;
use ombak_metadata::MetadataNode;
use ombak_metadata::state::{ClosedPart, Command, Member, MemberStatus, Metadata};
use ombak_runtime::RuntimeExt;
use ombak_types::ShownName;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::{error, info, warn};

/// What the state says about nodes in rings that are in use.
fn standings(state: &Metadata) -> Standings {
    let stands_in_for_nobody = |member: &Member| {
        matches!(member.status, MemberStatus::Joining | MemberStatus::Leaving | MemberStatus::Exiting)
    };
    let no_fallbacks = state.members().iter().filter(|(_, member)| stands_in_for_nobody(member));
    let of_rings = state.placement().map(|placement| placement.nodes()).unwrap_or_default();
    Standings {
        no_fallbacks: no_fallbacks.map(|(node, _)| *node).collect(),
        removed: of_rings.into_iter().filter(|node| state.was_removed(*node)).collect(),
    }
}

impl Inner {
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
        Arc::ptr_eq(&self.current.load(), metadata)
    }

    /// Puts a decided state in force. A closing counts as followed after the last write has ended.
    /// The caller holds `adopting`.
    pub async fn adopt(self: &Arc<Self>, state: Metadata, index: u64) {
        if self.standing.older().is_some() {
            // Operators see the last state that this node knew, and nothing more.
            return self.followed.set(Followed { metadata: state, index });
        }
        let last = self.followed.get();
        let records = changed(&last.metadata, &state);
        self.note_in_directory(&state).await;
        if last.metadata.members() != state.members() {
            learn_names(&self.names, &state);
            self.node.set_members(self.others_in(&state));
            self.log_members(&last.metadata, &state);
        }
        self.node.peers().set_standings(standings(&state));
        self.node.transport().set_cluster(cluster_id(&state, self.id()));
        self.admission.known.store(Some(Arc::new(state.clone())));
        // A type that was created after a change of the ring had begun has its objects in the new
        // sets. So the placement comes first, and it has to know the n of the types of the state.
        self.kv().buckets().expect_n_vals(&records);
        self.hold_what_was_brought(&state);
        self.adopt_placement(&state).await;
        self.kv().set_hands_back(self.is_full_member_in(&state));
        self.adopt_records(records).await;
        self.adopt_closed_part(&state).await;
        self.watch_closing(&last.metadata, &state);
        if self.is_full_member_in(&state) && state.members().len() > 1 {
            self.forget_peers().await;
        }
        self.note_leave(&state);
        self.look_at_myself(&last.metadata, &state);
        self.followed.set(Followed { metadata: state, index });
    }

    /// Whether the join of this node is committed. It is not if the node does not join after all.
    fn is_full_member_in(&self, state: &Metadata) -> bool {
        state.members().get(&self.id()).is_some_and(|me| me.status != MemberStatus::Joining)
    }

    /// What this node brings with it stays where it is, before the placement of the cluster is in
    /// force and until the join is committed.
    pub(super) fn hold_what_was_brought(&self, state: &Metadata) {
        if !self.is_full_member_in(state) {
            self.kv().set_hands_back(false);
        }
    }

    async fn adopt_records(&self, records: Vec<ombak_kv::RecordChange>) {
        const INLINE_MAX: usize = 16;
        if records.len() <= INLINE_MAX {
            return self.kv().buckets().adopt(records);
        }
        let (kv, again) = (self.kv().clone(), records.clone());
        if self.blocking(move || kv.buckets().adopt(records)).await.is_err() {
            self.kv().buckets().adopt(again);
        }
    }

    /// Closes the bucket or type that a change of its properties needs closed, and opens it when
    /// the metadata has decided so. The properties of the state are in force by then.
    async fn adopt_closed_part(&self, state: &Metadata) {
        let part = state.closed_part().map(|part| match part.clone() {
            ClosedPart::Type(name) => Place::Type(name),
            ClosedPart::Bucket(bucket) => Place::Bucket(bucket),
        });
        let closing = state.closing().filter(|_| part.is_some());
        if self.part_closing.swap(closing.unwrap_or(0), Ordering::SeqCst) == closing.unwrap_or(0) {
            return;
        }
        let Some(part) = part.map(Holdings::from) else { return self.kv().open_part_to_writes() };
        let (kv, again) = (self.kv().clone(), part.clone());
        if self.blocking(move || kv.close_part_to_writes(&part)).await.is_err() {
            self.kv().close_part_to_writes(&again);
        }
    }

    /// Takes no writes of clients any more. Returns when all that began before have ended.
    pub async fn close_to_writes(&self) {
        let kv = self.kv().clone();
        if self.blocking(move || kv.close_to_writes()).await.is_err() {
            self.kv().close_to_writes();
        }
    }

    /// Ends a closing whose driver does not go on. The metadata decides in which order that and the
    /// change of the driver come, so the cluster never changes after it was opened.
    fn watch_closing(self: &Arc<Self>, last: &Metadata, state: &Metadata) {
        let Some(closing) = state.closing().filter(|closing| last.closing() != Some(*closing)) else { return };
        match state.closed_part() {
            None => info!("the cluster takes no writes while it changes"),
            Some(ClosedPart::Type(name)) => {
                info!(bucket_type = %ShownName(&name.0), "a bucket type takes no writes while its properties change");
            }
            Some(ClosedPart::Bucket(part)) => {
                let (bucket_type, bucket) = (ShownName(&part.r#type), ShownName(&part.name));
                info!(%bucket_type, %bucket, "a bucket takes no writes while its properties change");
            }
        }
        // A node that stops meanwhile is not held.
        let (node, runtime, closing_max) = (Arc::downgrade(self), self.runtime.clone(), self.timing.closing_max);
        self.runtime.spawn(Box::pin(async move {
            runtime.sleep(closing_max).await;
            let Some(this) = node.upgrade() else { return };
            while !this.is_stopping() && this.followed.get().metadata.closing() == Some(closing) {
                let deadline = this.command_deadline();
                match this.metadata_node().propose(Command::OpenWrites { closing }, deadline).await {
                    Ok(_) => warn!("a change that needs closed writes was not finished in time; they are open again"),
                    Err(why) => warn!(%why, "what is closed to writes stays closed, and this is tried again"),
                }
                this.runtime.sleep(this.timing.metadata.heartbeat).await;
            }
        }));
    }

    /// A node that joins is no voter, so it may be left out before it has got the entry that says
    /// so. Until the commit it therefore also asks the members whether it still is one of them.
    async fn watch_withdrawal(self: Arc<Self>) {
        let is_joining = |now: &Followed| {
            now.metadata.members().get(&self.id()).is_some_and(|member| member.status == MemberStatus::Joining)
        };
        loop {
            self.runtime.sleep(self.timing.metadata.maintenance).await;
            let now = self.followed.get();
            if self.is_stopping() || !is_joining(&now) {
                return;
            }
            let question = Question::IsMember { node: self.id() };
            let own_lineage = now.metadata.lineage().map(|lineage| lineage.id);
            let others: Vec<_> = now.metadata.members().keys().filter(|node| **node != self.id()).copied().collect();
            let mut elsewhere = 0;
            for other in &others {
                let answer = self.ask(*other, &question, self.question_deadline()).await;
                let Ok(Answer::IsMember { is_member: false, index, lineage }) = answer else { continue };
                if lineage.is_some() && lineage != own_lineage {
                    // It has left the cluster. If all have, there is none to join any more.
                    elsewhere += 1;
                    if elsewhere < others.len() {
                        continue;
                    }
                } else if index < now.index {
                    continue;
                }
                // A later state without this node, after one with it.
                if !is_joining(&self.followed.get()) {
                    continue;
                }
                match self.begin_alone().await {
                    Ok(()) => return,
                    Err(why) => {
                        error!(%why, "this node does not join after all, and could not begin a cluster of its own")
                    }
                }
            }
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

    /// Whether another member has the name of this node.
    fn has_twin_in(&self, state: &Metadata) -> bool {
        state.members().iter().any(|(node, member)| *node != self.id() && member.name == self.me.name)
    }

    /// What the state says of this node may need an answer.
    fn look_at_myself(self: &Arc<Self>, last: &Metadata, state: &Metadata) {
        let status = |of: &Metadata| of.members().get(&self.id()).map(|member| member.status);
        let this = self.clone();
        match (status(last), status(state)) {
            (_, Some(MemberStatus::Down)) => self.runtime.spawn(Box::pin(async move {
                let (expected, status) = (MemberStatus::Down, MemberStatus::Valid);
                let command = Command::SetStatus { node: this.id(), expected, status };
                let deadline = this.command_deadline();
                if let Err(why) = this.metadata_node().propose(command, deadline).await {
                    warn!(%why, "this node was marked as down, and could not tell that it is up");
                }
            })),
            // A join that this node began did not happen.
            (_, Some(MemberStatus::Exiting))
                if state.members().len() == 1 && !self.is_joining.load(Ordering::SeqCst) =>
            {
                self.runtime.spawn(Box::pin(async move { this.stay().await }));
            }
            (Some(MemberStatus::Joining), None) => self.runtime.spawn(Box::pin(async move {
                if let Err(why) = this.begin_alone().await {
                    error!(%why, "this node does not join after all, and could not begin a cluster of its own");
                }
            })),
            (before, Some(MemberStatus::Joining)) if before != Some(MemberStatus::Joining) => {
                self.runtime.spawn(Box::pin(async move { this.watch_withdrawal().await }));
            }
            // The member with the name of this node, whose place it has taken, is gone.
            (Some(_), Some(_)) if self.has_twin_in(last) && !self.has_twin_in(state) => {
                self.runtime.spawn(Box::pin(async move {
                    let metadata = this.metadata_node();
                    if let Err(why) = metadata.record_milestone(this.command_deadline()).await {
                        warn!(%why, "this node could not take back its name yet, and does so later");
                    }
                }));
            }
            (Some(_), None) if state.was_removed(self.id()) => {
                self.standing.set_removed("the cluster has decided so".into());
            }
            _ => {}
        }
    }
}
