//! The commands of operators about the cluster, on a node that does not listen for other nodes.
//!
//! Such a node answers as a cluster of one member, in the same shapes and words as a member
//! ([`super::cluster_admin`]). Programs that watch nodes or deploy them run these commands without
//! knowing whether there is a cluster. Commands that need other nodes are refused, and the refusal
//! says what to configure.

use super::cluster_admin::ring_ready;
use super::cluster_text::{member_text, ring_text, status_text, with_text};
use super::settlement_text::settlement_answer;
use super::{exchange_admin, handoff_summary, partition_admin, transfer_admin};
use ombak_api::admin::{AdminError, ClusterAdmin, ClusterCommand, ForMembers};
use ombak_cluster::{
    ClusterFacts, MemberExchanges, MemberFacts, MemberStatus, MemberTransfers, OfMember, RingReady, Settlement,
    TransferChange, Unsettled, UnsettledCounts,
};
use ombak_kv::Kv;
use ombak_repair::Repair;
use ombak_ring::staging::{CommitRefusal, Refusal};
use ombak_runtime::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Why a command is refused that needs other nodes.
const NEEDS_LISTENER: &str = "this node is alone, because it does not listen for other nodes: set \
                              listener.peer.internal to an address that they reach, and start the node again";

/// Carries out commands on a node that does not listen for others.
pub struct LoneAdmin(pub Kv);

impl ClusterAdmin for LoneAdmin {
    fn run(&self, command: ClusterCommand) -> BoxFuture<'static, Result<Value, AdminError>> {
        let kv = self.0.clone();
        Box::pin(async move {
            // The counts of a store lock its index for a moment.
            let done = tokio::task::spawn_blocking(move || answer(&kv, command)).await;
            done.map_err(|panic| AdminError::Failed(panic.to_string()))?
        })
    }

    /// The status of a node without a listener for others says nothing of a cluster.
    fn summary(&self) -> Value {
        Value::Null
    }
}

fn answer(kv: &Kv, command: ClusterCommand) -> Result<Value, AdminError> {
    let name = kv.node_name();
    Ok(match command {
        ClusterCommand::Status => facts_answer(kv, status_text),
        ClusterCommand::MemberStatus => facts_answer(kv, member_text),
        ClusterCommand::RingStatus => facts_answer(kv, ring_text),
        ClusterCommand::RingReady => ring_ready(&RingReady::Ready(vec![name.to_owned()])),
        ClusterCommand::Settled => settlement_answer(&settlement(kv)),
        ClusterCommand::Partitions => partition_admin::partitions(&kv.ring(), &[transfers(kv)], name),
        ClusterCommand::Transfers => transfer_admin::transfers(&[transfers(kv)], None),
        ClusterCommand::Exchanges { .. } => exchange_admin::status(&[exchanges(kv)]),
        ClusterCommand::ChangeExchanges { members, .. } => {
            check_is_this(kv, &members)?;
            return Err(AdminError::Refused(format!("there is nobody to exchange with: {NEEDS_LISTENER}")));
        }
        ClusterCommand::Handoff => transfer_admin::handoff(&[transfers(kv)]),
        ClusterCommand::HandoffSummary => handoff_summary::summary(&[transfers(kv)], &BTreeMap::new()),
        ClusterCommand::HandoffDetails => transfer_admin::details(&[transfers(kv)], name),
        ClusterCommand::SetHandoff { direction, enabled, members } => {
            let changed = change_transfers(kv, &members, transfer_admin::handoff_change(direction, enabled))?;
            transfer_admin::handoff_was_set(&[changed], &members)
        }
        ClusterCommand::TransferLimit => transfer_admin::limits(&[transfers(kv)]),
        ClusterCommand::SetTransferLimit { limit, bytes_per_second, members } => {
            let change = TransferChange { transfer_limit: limit, bytes_per_second, ..TransferChange::default() };
            let changed = change_transfers(kv, &members, change)?;
            transfer_admin::limit_was_set(&[changed], &members, limit)
        }
        ClusterCommand::Plan => json!({"plan": null, "text": "There are no staged changes"}),
        ClusterCommand::Clear => json!({"cleared": true, "text": "Cleared staged cluster changes"}),
        ClusterCommand::Commit { .. } => return Err(nothing_planned()),
        ClusterCommand::Leave(None) => return Err(refused(kv, name, Refusal::OnlyMember)),
        ClusterCommand::Leave(Some(of)) | ClusterCommand::Down(of) | ClusterCommand::ForceRemove(of) => {
            return Err(refused(kv, &of, Refusal::OnlyMember));
        }
        ClusterCommand::Join(_)
        | ClusterCommand::Rejoin(_)
        | ClusterCommand::Alone
        | ClusterCommand::Replace { .. }
        | ClusterCommand::Location { .. } => return Err(AdminError::Refused(NEEDS_LISTENER.into())),
    })
}

/// The cluster of this node alone.
fn facts(kv: &Kv) -> ClusterFacts {
    let ring = kv.ring();
    let partitions = ring.size().get();
    let member = MemberFacts {
        node: kv.identity().node_id,
        name: kv.node_name().to_owned(),
        address: "--".into(),
        status: MemberStatus::Valid,
        is_up: true,
        older: None,
        ring: Some(ring.version()),
        location: None,
        partitions,
        partitions_planned: None,
    };
    ClusterFacts {
        ring_size: partitions,
        ring: ring.version(),
        claimant: Some(kv.node_name().to_owned()),
        is_closed: false,
        ring_change: None,
        members: vec![member],
        removed: None,
    }
}

/// The facts, with a text. The member has no address at which others reach it.
fn facts_answer(kv: &Kv, text: impl FnOnce(&ClusterFacts) -> String) -> Value {
    let mut answer = with_text(&facts(kv), text);
    answer["members"][0]["address"] = Value::Null;
    answer
}

fn settlement(kv: &Kv) -> Settlement {
    let counts = Some(UnsettledCounts::of(&Repair::of(kv)));
    let member = Unsettled { member: kv.node_name().to_owned(), follows_ring: true, counts, ..Unsettled::default() };
    Settlement { members: vec![member], ..Settlement::default() }
}

/// What may be transferred. There is nobody to whom anything could be.
fn transfers(kv: &Kv) -> OfMember<MemberTransfers> {
    let now = Repair::of(kv).transfer_config();
    let answer = MemberTransfers {
        outbound: now.gives,
        inbound: now.takes,
        transfer_limit: now.concurrency as u64,
        bytes_per_second: now.bytes_per_second,
        ..MemberTransfers::default()
    };
    OfMember { node: kv.identity().node_id, name: kv.node_name().to_owned(), answer: Ok(answer) }
}

/// What is exchanged with others: nothing.
fn exchanges(kv: &Kv) -> OfMember<MemberExchanges> {
    let answer = Ok(MemberExchanges::of(&Repair::of(kv)));
    OfMember { node: kv.identity().node_id, name: kv.node_name().to_owned(), answer }
}

fn change_transfers(
    kv: &Kv,
    members: &ForMembers,
    change: TransferChange,
) -> Result<OfMember<MemberTransfers>, AdminError> {
    check_is_this(kv, members)?;
    change.apply_to(&Repair::of(kv));
    Ok(transfers(kv))
}

/// Refuses a command for another node.
fn check_is_this(kv: &Kv, members: &ForMembers) -> Result<(), AdminError> {
    match members {
        ForMembers::Named(name) if !is_this(kv, name) => Err(refused(kv, name, Refusal::NotMember)),
        _ => Ok(()),
    }
}

fn is_this(kv: &Kv, name: &str) -> bool {
    name == kv.node_name() || name == kv.identity().node_id.to_string()
}

/// Riak's refusal of a command about a member: `of_this` for this node, and for every other node
/// that it is no member.
fn refused(kv: &Kv, name: &str, of_this: impl Fn(ombak_types::NodeId) -> Refusal) -> AdminError {
    let node = kv.identity().node_id;
    let refusal = if is_this(kv, name) { of_this(node) } else { Refusal::NotMember(node) };
    AdminError::Refused(refusal.text(|_| name.to_owned()))
}

fn nothing_planned() -> AdminError {
    AdminError::Refused(CommitRefusal::<Infallible>::NotPlanned.text(|never| match *never {}))
}
