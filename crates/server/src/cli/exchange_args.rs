//! The grammar of the commands about exchanges between primaries. Users see the doc comments of
//! this file in `--help`.

use clap::{Args, Subcommand};

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
