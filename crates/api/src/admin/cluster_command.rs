//! Commands about the cluster. Whoever runs the node carries them out.

use super::AdminError;
use ombak_runtime::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

/// A command about the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterCommand {
    /// Joins the cluster of the node with this address.
    Join(String),
    /// Stages that this node takes the place of the member with its name or address. The cluster is
    /// that of the node with this address; `None`: of a peer of the configuration.
    Rejoin(Option<String>),
    /// Lets a new node go on as a cluster of its own.
    Alone,
    /// Stages the leave of a member, given by its name; `None`: of the node that is asked.
    Leave(Option<String>),
    /// Stages the removal of a member without its data.
    ForceRemove(String),
    /// Stages that a node that joins takes the place of a member.
    Replace {
        /// The member.
        node: String,
        /// The node that joins.
        with: String,
        /// Whether nobody gets the data of the member.
        forced: bool,
    },
    /// Stages that a node is at a location.
    Location {
        /// The name of the location.
        location: String,
        /// The node; `None`: the one that is asked.
        node: Option<String>,
    },
    /// Plans the staged changes.
    Plan,
    /// Carries out the plan that was shown last.
    Commit {
        /// Whether it is carried out also if it destroys data.
        accept_loss: bool,
    },
    /// Drops the staged changes.
    Clear,
    /// Marks a member, given by its name, as down.
    Down(String),
    /// Shows the members, and what is staged.
    Status,
    /// Shows the members.
    MemberStatus,
    /// Shows who carries out changes, and who cannot be reached.
    RingStatus,
    /// Shows whether all members agree on the ring.
    RingReady,
    /// Shows what members have still to bring to where it belongs.
    Settled,
    /// Shows the partitions of each member.
    Partitions,
    /// Shows what members hold for others, what they owe, and what is being transferred.
    Transfers,
    /// Shows what exchanges between primaries do.
    Exchanges {
        /// Of which members.
        members: ForMembers,
    },
    /// Changes what exchanges do.
    ChangeExchanges {
        /// What is to change.
        wanted: ExchangeWish,
        /// Of which members.
        members: ForMembers,
    },
    /// Shows which transfers are allowed.
    Handoff,
    /// Counts the transfers of each member.
    HandoffSummary,
    /// Shows each transfer that is under way.
    HandoffDetails,
    /// Allows or forbids transfers in a direction.
    SetHandoff {
        /// Which direction.
        direction: HandoffDirection,
        /// Whether they are allowed.
        enabled: bool,
        /// Of which members.
        members: ForMembers,
    },
    /// Shows how much may be transferred at the same time.
    TransferLimit,
    /// Sets how much may be transferred at the same time.
    SetTransferLimit {
        /// How many classes and partitions are worked on at the same time; `None`: as before.
        limit: Option<u64>,
        /// How many bytes a member pushes in a second; `None`: as before.
        bytes_per_second: Option<u64>,
        /// Of which members.
        members: ForMembers,
    },
}

/// What an operator wants of exchanges. It holds until a member stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeWish {
    /// None begins.
    Suspend,
    /// They begin again.
    Resume,
    /// In this time, in milliseconds, each class is exchanged once with each other primary.
    Interval(u64),
    /// All of a member are due at once, for a reason in the operator's words.
    StartNodeRepair(String),
    /// What has not begun waits for its turn again.
    StopNodeRepair,
}

/// A direction of transfers, as a node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandoffDirection {
    /// Copies that other nodes push.
    Inbound,
    /// Copies that the node pushes.
    Outbound,
    /// Both.
    Both,
}

/// The members that a command is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForMembers {
    /// The member that is asked.
    This,
    /// All members.
    All,
    /// The member with this name.
    Named(String),
}

/// Carries out commands about the cluster of a node. Each answer has a text for people in its field
/// `text`.
pub trait ClusterAdmin: Send + Sync {
    /// Carries out a command.
    fn run(&self, command: ClusterCommand) -> BoxFuture<'static, Result<Value, AdminError>>;

    /// What the status of the node says of its cluster; null if the node does not listen for
    /// others. It never waits.
    fn summary(&self) -> Value;
}
