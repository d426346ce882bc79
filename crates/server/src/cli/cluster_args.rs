//! The grammar of the commands about the cluster and about handoff. Users see the doc comments of
//! this file in `--help`.

use super::key_names::KeyNames;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Let this node join a cluster. A plan and a commit make it effective.
    Join {
        /// The address on which a member of the cluster listens for other nodes (listener.peer).
        /// HOST is a name or an IP address, and NAME is ignored.
        #[arg(value_name = "[NAME@]HOST:PORT")]
        address: String,
    },
    /// Let this node, whose data directory is new, take the place of the member that had its name
    /// or its address, and whose directory is lost. What only that member held is lost. A plan and
    /// a commit make it effective.
    Rejoin {
        /// The address on which another member listens for other nodes [default: cluster.peers].
        #[arg(value_name = "[NAME@]HOST:PORT")]
        address: Option<String>,
    },
    /// Let this node go on as a cluster of its own, although it is new and its peers
    /// (cluster.peers) have not said that no member is lost whose place it should take.
    Alone,
    /// Let a member hand over what it holds, and leave the cluster. A plan and a commit make it
    /// effective. Its process ends when it has left.
    Leave {
        /// The name of the member [default: the node that is asked].
        #[arg(value_name = "NAME")]
        member: Option<String>,
    },
    /// Remove a member without its data. What only it holds is lost. A plan and a commit make it
    /// effective.
    ForceRemove {
        /// The name of the member.
        #[arg(value_name = "NAME")]
        member: String,
    },
    /// Let a node that joins take the place of a member, which hands over what it holds and leaves.
    /// A plan and a commit make it effective.
    Replace {
        /// The name of the member.
        #[arg(value_name = "NAME")]
        member: String,
        /// The name of the node that joins.
        #[arg(value_name = "WITH")]
        with: String,
    },
    /// Let a node that joins take the place of a member that is lost. What only that member holds
    /// is lost. A plan and a commit make it effective.
    ForceReplace {
        /// The name of the member.
        #[arg(value_name = "NAME")]
        member: String,
        /// The name of the node that joins.
        #[arg(value_name = "WITH")]
        with: String,
    },
    /// Say at which location a node is, such as a rack or a zone. Replicas are spread over
    /// locations. A plan and a commit make it effective.
    Location {
        /// The name of the location.
        #[arg(value_name = "LOCATION")]
        location: String,
        /// The name of the node [default: the node that is asked].
        #[arg(short = 'n', long = "member", value_name = "NAME")]
        member: Option<String>,
    },
    /// Print what the staged changes would do.
    Plan,
    /// Carry out the plan that was printed last.
    Commit {
        /// Also if it destroys data: a removal by force that leaves partitions without a full
        /// replica. The plan says which.
        #[arg(long)]
        accept_loss: bool,
    },
    /// Drop all staged changes.
    Clear,
    /// Print the members, their addresses, and which of them are up.
    Status,
    /// Print the partitions that a member owns, and those of which it holds copies for others.
    Partitions {
        /// The name of the member [default: the node that is asked].
        #[arg(short = 'n', long = "member", value_name = "NAME")]
        member: Option<String>,
    },
    /// Print the number of partitions of the ring, or those that a member owns.
    #[command(alias = "partition_count")]
    PartitionCount {
        /// The name of the member [default: the whole ring].
        #[arg(short = 'n', long = "member", value_name = "NAME")]
        member: Option<String>,
    },
    /// Print the index, the number and the owner of a partition.
    Partition {
        /// id=NUMBER or index=INDEX.
        #[arg(value_name = "id=NUMBER|index=INDEX")]
        partition: String,
    },
    /// Print the keys that only a restored store of this node has. Other nodes may have deleted
    /// them since, so they are neither served nor handed to others until an operator decides.
    RestoredKeys {
        /// Take the keys back, deleted since or not, and bring them to all nodes to which they
        /// belong.
        #[arg(long, conflicts_with = "drop")]
        push: bool,
        /// Remove the keys.
        #[arg(long)]
        drop: bool,
        /// Store copies again that exchanges have dropped because their keys had been removed on
        /// all other nodes, and bring them to all nodes to which they belong.
        #[arg(long, conflicts_with_all = ["push", "drop"])]
        push_dropped: bool,
        #[command(flatten)]
        keys: KeyNames,
    },
    /// Print the keys that this node has found it cannot read, and that no other node has replaced.
    /// What other nodes need of them waits until they can be read again, or until an operator gives
    /// them up.
    UnreadableKeys {
        /// Give the keys up: remove them from this node, if they still cannot be read. The other
        /// nodes bring back what they have.
        #[arg(long)]
        drop: bool,
        #[command(flatten)]
        keys: KeyNames,
    },
    /// Print whether everything lies where it belongs: the ring is the one that was committed last,
    /// no member joins, leaves or is marked as down, and no node holds copies for others, owes
    /// writes to others, lacks something, cannot read something, or transfers something.
    Settled {
        /// Wait until it is so, but not longer than this.
        #[arg(long, value_name = "SECONDS")]
        wait: Option<u64>,
        /// Also ask for tombstones and expired values: they have all been removed.
        #[arg(long)]
        reaped: bool,
    },
}

/// The members that a command is for.
#[derive(Clone, Debug, Args)]
pub struct MemberArgs {
    /// The name of the member [default: the node that is asked].
    #[arg(short = 'n', long = "member", value_name = "NAME", conflicts_with = "all")]
    pub member: Option<String>,
    /// All members of the cluster.
    #[arg(short = 'a', long)]
    pub all: bool,
}

/// A direction of handoff, as a node sees it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Direction {
    /// What other nodes hand to the node.
    Inbound,
    /// What the node hands to others.
    Outbound,
    /// Both.
    Both,
}

#[derive(Debug, Subcommand)]
pub enum HandoffCommand {
    /// Allow handoff again. What has waited begins at once.
    Enable {
        /// Which direction.
        direction: Direction,
        #[command(flatten)]
        of: MemberArgs,
    },
    /// Stop handoff until it is enabled or the node stops. Transfers that are under way end, and
    /// what has to be transferred is kept. Requests of clients are not affected.
    Disable {
        /// Which direction.
        direction: Direction,
        #[command(flatten)]
        of: MemberArgs,
    },
    /// Print which members hand off and take, and their limits.
    #[command(alias = "config")]
    Status,
    /// Print how many transfers each member has.
    Summary,
    /// Print each transfer that is under way, with its rate and the time that is left.
    Details {
        #[command(flatten)]
        of: MemberArgs,
    },
}
