//! The commands that change the state, and why a command is refused.

use super::raft_id::RaftId;
use super::records::{BucketName, ClosedPart, Lineage, MemberStatus, TypeName};
use super::text;
use bytes::Bytes;
use ombak_node_files::Milestone;
use ombak_ring::placement::StepOf;
use ombak_ring::{Location, Ring, RingVersion};
use ombak_types::{NodeId, PropMap};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A change of the state. Each command says from what it starts, so a command that arrives late or
/// twice is refused and changes nothing.
///
/// A command holds what was decided, not what was asked for: the node that proposes a change of
/// properties has checked them. So nodes of different versions, which may check differently, come
/// to the same state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "each command's description names its fields")]
pub enum Command {
    /// Founds a cluster of one node, which owns all partitions.
    Found { lineage: Lineage, member: NewMember, ring: Ring },
    /// Adds a node. It is joining.
    AddMember(NewMember),
    /// A member tells that it started, with its present name and address. Earlier versions sent it.
    Started(NewMember),
    /// A member tells that it started, or that it drew another milestone. The member knows that its
    /// directory has passed the recorded milestone `follows`; `None`: none is recorded.
    Passed { member: NewMember, follows: Option<Milestone> },
    /// A member lost its log, or an older copy of it returned. It takes part under a new log.
    ReplaceLog { node: NodeId, old: RaftId, new: RaftId, boot: u64 },
    /// Changes where a member is in its life.
    SetStatus { node: NodeId, expected: MemberStatus, status: MemberStatus },
    /// Removes a member. It must own no partition.
    RemoveMember { node: NodeId },
    /// Takes back that a node joins. It may join again later.
    WithdrawMember { node: NodeId },
    /// Replaces the document of staged changes. `expected` is the version of the present one.
    Stage { expected: u64, changes: Value },
    /// Replaces the ring of all homes at once, changes the status of members, and clears the staged
    /// changes. Only an empty cluster survives it. Earlier versions do not know its locations.
    CommitRing {
        expected: RingVersion,
        staged: u64,
        ring: Ring,
        statuses: Vec<(NodeId, MemberStatus)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        locations: Vec<(NodeId, Location)>,
    },
    /// Sets the ring that all homes are to get by steps, and clears the staged changes. Version 1
    /// does not know it.
    SetGoal(NewGoal),
    /// Takes steps of homes. A step that does not fit its home any more has no effect. Version 1
    /// does not know it.
    TakeStep { steps: Vec<StepOf> },
    /// Creates or changes a bucket type. `expected` is its version; `None`: it does not exist.
    PutType { name: TypeName, expected: Option<u64>, active: bool, overrides: PropMap },
    /// Sets all of a bucket's own properties; without `overrides` it has none. `expected` is its
    /// version; `None`: it has none yet. `type_expected` is the version of its type; `None` for the
    /// default type.
    PutBucket { bucket: BucketName, expected: Option<u64>, type_expected: Option<u64>, overrides: Option<PropMap> },
    /// Adds the bucket types, buckets, functions and records of other namespaces that a node had
    /// before it founded its cluster, as far as they do not exist yet. Version 1 does not know its
    /// functions, and versions without open records do not know its records.
    TakeOver {
        types: Vec<(TypeName, TakenType)>,
        buckets: Vec<(BucketName, PropMap)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        functions: Vec<(Arc<str>, Arc<str>)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        records: Vec<TakenRecord>,
    },
    /// Registers a function, or sets its source; without `source` it is none any more. `expected`
    /// is its version; `None`: it is none yet. Version 1 does not know it. It is sent while some
    /// member does not know [`Self::PutRecord`].
    PutFunction { name: Arc<str>, expected: Option<u64>, source: Option<Arc<str>> },
    /// Sets the value of a record of a namespace; without `value` the record is removed. `expected`
    /// is the version of the record; `None`: it does not exist yet. Versions without open records
    /// do not know it.
    PutRecord {
        namespace: Arc<str>,
        #[serde(with = "text")]
        key: Bytes,
        expected: Option<u64>,
        value: Option<Arc<str>>,
    },
    /// Deletes a function, if no hook of a bucket or a type names it. So a hook that comes first in
    /// the log keeps its function. Version 1 does not know it.
    DeleteUnnamed { name: Arc<str>, expected: u64 },
    /// Carries out a command that sets hooks, if the functions that these name are registered. So
    /// no hook gets a function that was deleted meanwhile. Version 1 does not know it.
    WithFunctions { named: Vec<Arc<str>>, command: Box<Command> },
    /// Closes the cluster to writes of clients, for a change that only an empty cluster survives.
    /// The index of the command identifies the closing.
    CloseWrites,
    /// Closes one bucket or type to writes of clients, for a change of its properties that only an
    /// empty one survives. The index of the command identifies the closing.
    ClosePart { part: ClosedPart },
    /// Ends a closing.
    OpenWrites { closing: u64 },
    /// Carries out a command and ends the closing, if the closing has not ended before. So a change
    /// for which members have proved that they are empty takes effect while they still are, or not
    /// at all. While one bucket or type is closed, the command may change that one alone.
    WhileClosed { closing: u64, command: Box<Command> },
}

/// The ring that all homes are to get (docs/design/ring-changes.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewGoal {
    /// The version of the goal that it was planned from.
    pub expected: RingVersion,
    /// The version of the staged document that it was made from.
    pub staged: u64,
    /// The owners. The state gives the ring the next version of its placement.
    pub ring: Ring,
    /// The new statuses of members.
    pub statuses: Vec<(NodeId, MemberStatus)>,
    /// The members that are removed at once: nobody gets what only they hold.
    pub removed: Vec<NodeId>,
    /// The n of the classes in use that follow from the defaults of buckets. The state adds those
    /// of its own types and buckets.
    pub ns: BTreeSet<u32>,
    /// The new locations of members. Earlier versions do not know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<(NodeId, Location)>,
}

/// A bucket type that a node had before it founded its cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakenType {
    /// Whether the type is in use.
    pub active: bool,
    /// Its differences from the defaults.
    pub overrides: PropMap,
}

/// A record of a namespace that a node had before it founded its cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakenRecord {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name within the namespace.
    #[serde(with = "text")]
    pub key: Bytes,
    /// Its value.
    pub value: Arc<str>,
}

/// A node, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMember {
    /// Its identity.
    pub node: NodeId,
    /// Its name, for people.
    pub name: String,
    /// Where other nodes reach it.
    pub peer_address: String,
    /// The identity of its metadata log.
    pub log: RaftId,
    /// How often it was started.
    pub boot: u64,
    /// The newest milestone of its directory. Earlier versions had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<Milestone>,
}

/// Why a command changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The cluster was founded already.
    #[error("this cluster was founded already")]
    AlreadyFounded,
    /// The cluster was not founded yet.
    #[error("this cluster was not founded yet")]
    NotFounded,
    /// What the command changes is not what its sender saw.
    #[error("it was changed meanwhile")]
    Changed,
    /// The node is no member.
    #[error("node {0} is no member")]
    NoSuchMember(NodeId),
    /// The node is a member already.
    #[error("node {0} is a member already")]
    AlreadyMember(NodeId),
    /// A node of this identity was a member once.
    #[error("node {0} was removed; it can join only with an empty data directory")]
    WasRemoved(NodeId),
    /// Another member has the name.
    #[error("the name is the one of node {0}")]
    NameTaken(NodeId),
    /// The log is the one of another member, or was one.
    #[error("the metadata log {0} was used before")]
    LogUsed(RaftId),
    /// The member is behind what the others know of it: its directory is an older copy, or another
    /// process runs with a copy of it.
    #[error("the data directory is older than at start {known_boot} of this node, or runs twice")]
    Restored {
        /// The highest boot number that is known.
        known_boot: u64,
    },
    /// The recorded milestone of the member is another one than it has named. If its directory has
    /// passed that one, the member tries again; otherwise its directory is an older copy.
    #[error("another milestone of the data directory is recorded than the one that was named")]
    OtherMilestone {
        /// The milestone that is recorded.
        recorded: Option<Milestone>,
    },
    /// No member can let others in, because the only one is about to leave.
    #[error("the only member is about to leave, so nobody can join it")]
    NobodyStays,
    /// The member is elsewhere in its life.
    #[error("the node is {0}")]
    WrongStatus(MemberStatus),
    /// The member still owns partitions.
    #[error("node {0} owns partitions")]
    OwnsPartitions(NodeId),
    /// A partition would belong to a node that cannot own one.
    #[error("node {0} cannot own a partition")]
    CannotOwn(NodeId),
    /// The new ring is not the next one of the lineage.
    #[error("ring {0} does not follow the present one")]
    NotNextRing(RingVersion),
    /// The new ring cannot be the goal of the present placement.
    #[error("{0}")]
    NoGoal(String),
    /// The homes change step by step, so the ring cannot be replaced at once.
    #[error("a change of the ring is under way")]
    RingChanges,
    /// The bucket type does not exist, or is not active although it must be.
    #[error("the bucket type does not exist or is not active")]
    NoType,
    /// An active type cannot be created again or deactivated.
    #[error("the bucket type is active")]
    TypeActive,
    /// Another change has closed the cluster to writes.
    #[error("another change of the cluster is under way")]
    WritesClosed,
    /// The cluster was opened to writes again before the change took effect.
    #[error("the cluster was opened to writes again before the change took effect")]
    WritesOpen,
}
