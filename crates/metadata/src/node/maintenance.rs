//! What the leader does again and again: it looks which members answer, and keeps the right ones
//! voting.

use super::metadata_node::MetadataNode;
use super::voters::{Situation, next_step};
use crate::raft::wire::{Request, Response};
use futures_util::future::join_all;
use ombak_runtime::within;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// A member this many entries behind is not made a voter.
const BEHIND_MAX: u64 = 100;

/// Runs until the node stops.
pub(super) async fn run(node: Arc<MetadataNode>) {
    let mut answered = BTreeMap::new();
    let mut seen = node.applied();
    while !node.is_stopping() {
        rest(&node, seen).await;
        seen = node.applied();
        if node.is_leader() {
            lead(&node, &mut answered).await;
        } else {
            answered.clear();
        }
        node.group.snapshot_if_due(node.timing.log_bytes_min).await;
    }
}

/// Waits for the next round. That is early when a member has joined since `seen` and does not take
/// part yet.
async fn rest(node: &MetadataNode, seen: u64) {
    let end = node.runtime.now() + node.timing.maintenance;
    loop {
        let applied = node.applied();
        if applied > seen && node.is_leader() && node.lacks_participants() {
            return;
        }
        match within(&*node.runtime, Some(end), node.wait_applied(applied + 1)).await {
            Ok(true) => {}
            // The group has stopped on this node.
            Ok(false) => return node.runtime.sleep_until(end).await,
            Err(_) => return,
        }
    }
}

/// One round. `answered` says when each member answered last; a member that is new to the leader
/// counts as one that just answered.
async fn lead(node: &MetadataNode, answered: &mut BTreeMap<NodeId, Instant>) {
    let metadata = node.metadata();
    let members = metadata.members();
    let current = ask_members(node, members.keys().copied().collect()).await;
    let now = node.runtime.now();
    answered.retain(|member, _| members.contains_key(member));
    for member in members.keys() {
        let last = answered.entry(*member).or_insert(now);
        if current.contains(member) {
            *last = now;
        }
    }
    let is_gone = |last: &Instant| now.saturating_duration_since(*last) > node.timing.voter_gone;
    let gone = answered.iter().filter(|(_, last)| is_gone(last)).map(|(member, _)| *member).collect();
    let (participants, voters) = node.group.participants();
    let leader = node.me.node;
    let situation = Situation { members, participants, voters, gone: &gone, current: &current, leader };
    let Some(step) = next_step(&situation) else { return };
    tracing::info!(?step, "changing who takes part in the metadata");
    let limit = node.runtime.now() + node.timing.request_limit;
    match within(&*node.runtime, Some(limit), node.group.change(step)).await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => tracing::warn!(why, "the change was refused and is tried again"),
        Err(_) => tracing::warn!("the change takes long and is tried again"),
    }
}

/// The members that answer and have nearly all entries.
async fn ask_members(node: &MetadataNode, members: Vec<NodeId>) -> BTreeSet<NodeId> {
    let wanted = node.applied().saturating_sub(BEHIND_MAX);
    let deadline = node.runtime.now() + node.timing.request_limit / 2;
    let answers = join_all(members.into_iter().map(async |member| {
        if member == node.me.node {
            return Some(member);
        }
        let request = Request::Progress { at_least: 0, wait_ms: 0 };
        match node.ask(member, &request, deadline).await {
            Some(Response::Progress { applied }) if applied >= wanted => Some(member),
            _ => None,
        }
    }));
    answers.await.into_iter().flatten().collect()
}
