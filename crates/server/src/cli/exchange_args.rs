//! The grammar of the commands about exchanges between primaries. Users see the doc comments of
//! this file in `--help`.

use clap::{Args, Subcommand, ValueEnum};

/// The members that a command of Riak's form is for.
#[derive(Clone, Debug, Args)]
pub struct OnMembers {
    /// The name of a member, or 'all' [default: the node that is asked].
    #[arg(short = 'n', long = "member", value_name = "NODE")]
    pub member: Option<String>,
    /// Riak's choice of partitions. Settings are for whole nodes.
    #[arg(short = 'p', hide = true, value_parser = ["all"])]
    pub partition: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum TictacaaeCommand {
    /// Print or set how often each partition is compared with each other primary, until the node
    /// stops.
    Exchangetick {
        /// The time in milliseconds. The configuration key is exchange.interval.
        #[arg(value_name = "MS")]
        interval_ms: Option<u64>,
        #[command(flatten)]
        of: OnMembers,
    },
    /// Begin no exchange until the node stops or 'resume'. The node still answers those of others.
    Suspend {
        #[command(flatten)]
        of: OnMembers,
    },
    /// Let exchanges go on.
    Resume {
        #[command(flatten)]
        of: OnMembers,
    },
    /// Print the kept trees of this node that are not there or are being made.
    Treestatus {
        /// Print trees in these states: unbuilt (also 'empty' or 'partial'), building, built,
        /// rebuilding, or all.
        #[arg(long, value_name = "STATES", value_delimiter = ',', default_value = "unbuilt,rebuilding,building")]
        show: Vec<TreeStates>,
        /// Riak's choice of the form. '--json' prints JSON.
        #[arg(long, hide = true, value_parser = ["table", "human"])]
        format: Option<String>,
    },
    /// Make the kept trees of this node anew now, one after the other.
    #[command(alias = "rebuild_now")]
    RebuildNow {
        #[command(flatten)]
        of: OnPartition,
    },
    /// Make the kept trees of this node anew after a time.
    #[command(alias = "rebuild_soon")]
    RebuildSoon {
        /// The time in seconds.
        #[arg(value_name = "SECONDS")]
        delay: u64,
        #[command(flatten)]
        of: OnPartition,
    },
}

/// States of kept trees, by Riak's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TreeStates {
    #[value(alias = "empty", alias = "partial")]
    Unbuilt,
    Building,
    Built,
    Rebuilding,
    All,
}

/// The partitions of this node that a command is for.
#[derive(Clone, Debug, Args)]
pub struct OnPartition {
    /// The number of a partition, or 'all'.
    #[arg(short = 'p', value_name = "PARTITION", default_value = "all")]
    pub partition: String,
    /// Ask this member. The command is for the node that is asked, so only its name is accepted.
    #[arg(short = 'n', long = "member", value_name = "NODE")]
    pub member: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Compare everything of a node with the other primaries at once, and repair what differs, in
    /// both directions.
    #[command(subcommand)]
    Repair(NodeRepairCommand),
}

#[derive(Debug, Subcommand)]
pub enum NodeRepairCommand {
    /// Begin.
    Start {
        /// Why, for the log and the status.
        #[arg(default_value = "an operator wants it")]
        reason: String,
        #[command(flatten)]
        of: OnMembers,
    },
    /// Print how much is left.
    Status {
        /// Riak's form. It has no meaning here.
        #[arg(hide = true)]
        reason: Option<String>,
        #[command(flatten)]
        of: OnMembers,
    },
    /// End it: what has not begun waits for its turn.
    Stop {
        /// Riak's form. It has no meaning here.
        #[arg(hide = true)]
        reason: Option<String>,
        #[command(flatten)]
        of: OnMembers,
    },
}
