//! The grammar of `ombak admin function`. Users see the doc comments of this file in `--help`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum FunctionCommand {
    /// Register a function in JavaScript on all nodes of the cluster.
    ///
    /// The node compiles it first. Jobs and hooks that begin afterwards find it by its name, before
    /// functions of javascript.source_dir.
    Create {
        /// The name, for example My.countWords. Names that begin with Riak are taken.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// The file with the source: one function, at most 64 KB. '-' reads standard input.
        file: PathBuf,
        /// Replace a function with this name.
        #[arg(long)]
        replace: bool,
    },
    /// List the registered functions, and which of them are commit hooks.
    List,
    /// Print the source of a registered function.
    Show {
        /// The name of the function.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
    /// Delete a registered function on all nodes of the cluster.
    Delete {
        /// The name of the function.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// Delete it although it is a commit hook of a bucket or bucket type. Writes there are
        /// refused then.
        #[arg(long)]
        force: bool,
    },
    /// Call a function once on the node, and print what it gives, what it logs and how long it
    /// takes.
    ///
    /// Nothing is stored. The function may be registered, built in, or in javascript.source_dir.
    Test {
        /// The name of the function.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// A file with the object that the function gets, in JSON. '-' reads standard input.
        #[arg(long, value_name = "FILE", required_unless_present = "values")]
        object: Option<PathBuf>,
        /// The values that a reduce function gets: a list in JSON.
        #[arg(long, value_name = "JSON", conflicts_with = "object")]
        values: Option<String>,
        /// The argument of a map or reduce function, in JSON.
        #[arg(long, value_name = "JSON")]
        arg: Option<String>,
        /// As what it is called [default: map with --object, reduce with --values].
        #[arg(long = "as", value_name = "ROLE")]
        role: Option<Role>,
    },
}

/// As what a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    Map,
    Reduce,
    Precommit,
    Postcommit,
}

impl Role {
    /// The word in requests.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Reduce => "reduce",
            Self::Precommit => "precommit",
            Self::Postcommit => "postcommit",
        }
    }
}
