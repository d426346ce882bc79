//! The grammar of the commands that monitoring and deployment of Riak call. Users see the doc
//! comments of this file in `--help`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum RiakCommand {
    /// Print the services that the node runs.
    Services,
    /// Wait until a service of a node runs.
    #[command(alias = "wait_for_service")]
    WaitForService {
        /// The service: riak_kv for requests, riak_pipe for MapReduce.
        service: String,
        /// The name of the node [default: the node that is asked].
        #[arg(value_name = "NODE")]
        member: Option<String>,
        /// How long to wait, at most a year. Meanwhile the node may also be down.
        #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = seconds())]
        wait: u64,
    },
    /// Print statistics by their names.
    #[command(subcommand)]
    Stat(StatCommand),
    /// Print what an operator should look at.
    Diag,
}

/// At most a year, so that the end of the wait is a time that the clock can show.
fn seconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(..=31_536_000)
}

#[derive(Debug, Subcommand)]
pub enum StatCommand {
    /// Print the statistics whose names match.
    Show {
        /// Names of 'ombak admin status'; * stands for any characters [default: all].
        #[arg(value_name = "PATTERN")]
        patterns: Vec<String>,
    },
}
