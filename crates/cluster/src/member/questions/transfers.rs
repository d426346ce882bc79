//! The transfers of a node, as it tells them to the others, and what may be changed about them.

use ombak_kv::{ClassId, FillReason};
use ombak_repair::{Repair, TransferKind};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};

/// Maximum of the entries of each list that a member tells. The totals are exact.
const LISTED_MAX: usize = 1_000;

/// The transfers of one member, and what they may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberTransfers {
    /// Whether the member pushes copies to others.
    pub outbound: bool,
    /// Whether the member takes copies that others push.
    pub inbound: bool,
    /// The number of classes and partitions that are worked on at the same time.
    pub transfer_limit: u64,
    /// The maximum of the bytes that are pushed in a second; 0: no limit.
    pub bytes_per_second: u64,
    /// The partitions that may hold copies for other nodes.
    pub hinted_partitions: u64,
    /// The copies for other nodes, about.
    pub hinted_objects: u64,
    /// Their bytes.
    pub hinted_bytes: u64,
    /// Some of these partitions.
    pub hints: Vec<PartitionHints>,
    /// The transfers under way.
    pub active: Vec<ActiveTransfer>,
    /// The number of classes and peers that missed writes.
    pub owed_marks: u64,
    /// Some of them.
    pub owed: Vec<Missed>,
    /// The number of transfers that other nodes have ordered.
    pub ordered_transfers: u64,
    /// Some of them.
    pub ordered: Vec<Missed>,
    /// The number of classes that may lack something.
    pub filling_classes: u64,
    /// Some of them.
    pub filling: Vec<FillingClass>,
}

/// The copies for other nodes in one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionHints {
    /// The partition.
    pub partition: u32,
    /// The number of copies, about. 0: the member has not looked yet.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A transfer that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveTransfer {
    /// `hinted`: the member holds the copies for others. `owed`: the receiver missed writes.
    /// `fill`: the receiver or the sender may lack something. `ownership`: the receiver is to own
    /// the copies.
    pub kind: String,
    /// The partition.
    pub partition: u32,
    /// The n_val of the buckets.
    pub n_val: u32,
    /// The node that gets the copies.
    pub receiver: NodeId,
    /// The number of keys that were compared so far.
    pub objects_compared: u64,
    /// The bytes that were sent so far.
    pub bytes_sent: u64,
    /// When it began, in Unix seconds.
    pub since_secs: u64,
    /// The number of keys that are compared until it ends, about, if that is known. Earlier
    /// versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_total: Option<u64>,
    /// How long it has run, in milliseconds. Earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_ms: Option<u64>,
}

/// A class of which a node lacks something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// The partition.
    pub partition: u32,
    /// The n_val of the buckets.
    pub n_val: u32,
    /// The node.
    pub node: NodeId,
}

/// A class of the member that may lack something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillingClass {
    /// The partition.
    pub partition: u32,
    /// The n_val of the buckets.
    pub n_val: u32,
    /// `new_store`, `lost_writes`, `restored` or `unreadable`.
    pub reason: String,
}

/// What an operator changes about transfers. `None` leaves a thing as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferChange {
    /// Whether the member pushes copies to others.
    pub outbound: Option<bool>,
    /// Whether the member takes copies that others push.
    pub inbound: Option<bool>,
    /// The number of classes and partitions that are worked on at the same time.
    pub transfer_limit: Option<u64>,
    /// The maximum of the bytes that are pushed in a second; 0: no limit.
    pub bytes_per_second: Option<u64>,
}

impl MemberTransfers {
    /// The transfers of a node, which may be a node without a cluster. It locks the state of the
    /// transfers for a moment, so it is not for network threads.
    pub fn of(repair: &Repair) -> Self {
        let kv = repair.kv();
        let (config, figures, now) = (repair.transfer_config(), repair.transfer_figures(), kv.time());
        let missed = |(class, node): (ClassId, NodeId)| Missed { partition: class.partition, n_val: class.n, node };
        let (owed, ordered, filling) = (kv.owed_marks(), repair.ordered_transfers(), kv.filling_classes());
        let hints = kv.hints().into_iter().take(LISTED_MAX);
        let active = repair.transfers().into_iter().map(|transfer| ActiveTransfer {
            kind: kind_word(transfer.kind).into(),
            partition: transfer.class.partition,
            n_val: transfer.class.n,
            receiver: transfer.target,
            objects_compared: transfer.keys,
            bytes_sent: transfer.bytes,
            since_secs: transfer.since.secs(),
            objects_total: transfer.keys_total,
            running_ms: Some(now.0.saturating_sub(transfer.since.0) / 1000),
        });
        Self {
            outbound: config.gives,
            inbound: config.takes,
            transfer_limit: config.concurrency as u64,
            bytes_per_second: config.bytes_per_second,
            hinted_partitions: figures.hinted_partitions,
            hinted_objects: figures.hinted_objects,
            hinted_bytes: figures.hinted_bytes,
            hints: hints
                .map(|(partition, held)| PartitionHints { partition, objects: held.keys, bytes: held.bytes })
                .collect(),
            active: active.take(LISTED_MAX).collect(),
            owed_marks: owed.len() as u64,
            owed: owed.into_iter().take(LISTED_MAX).map(missed).collect(),
            ordered_transfers: ordered.len() as u64,
            ordered: ordered.into_iter().take(LISTED_MAX).map(missed).collect(),
            filling_classes: filling.len() as u64,
            filling: filling.into_iter().take(LISTED_MAX).map(|(class, reason)| filling_class(class, reason)).collect(),
        }
    }
}

impl TransferChange {
    /// Changes what a node may transfer, until it stops.
    pub fn apply_to(self, repair: &Repair) {
        if self.outbound.is_some() || self.inbound.is_some() {
            let now = repair.transfer_config();
            let (outbound, inbound) = (self.outbound.unwrap_or(now.gives), self.inbound.unwrap_or(now.takes));
            tracing::info!(outbound, inbound, "an operator has set which handoffs are allowed");
            repair.set_handoff(outbound, inbound);
        }
        if let Some(limit) = self.transfer_limit {
            tracing::info!(limit, "an operator has set the limit of transfers");
            repair.set_transfer_limit(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        if let Some(bytes_per_second) = self.bytes_per_second {
            tracing::info!(bytes_per_second, "an operator has set the rate of transfers");
            repair.set_transfer_rate(bytes_per_second);
        }
    }
}

fn filling_class(class: ClassId, reason: FillReason) -> FillingClass {
    let reason = match reason {
        FillReason::NewStore => "new_store",
        FillReason::LostWrites => "lost_writes",
        FillReason::Restored => "restored",
        FillReason::Unreadable => "unreadable",
        FillReason::Joining => "joining",
    };
    FillingClass { partition: class.partition, n_val: class.n, reason: reason.into() }
}

const fn kind_word(kind: TransferKind) -> &'static str {
    match kind {
        TransferKind::HandBack => "hinted",
        TransferKind::Owed => "owed",
        TransferKind::Fill => "fill",
        TransferKind::Exchange => "exchange",
        TransferKind::Ownership => "ownership",
    }
}
