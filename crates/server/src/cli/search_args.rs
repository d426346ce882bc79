//! The grammar of `ombak admin search`. Users see the doc comments of this file in `--help`.

use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum SearchCommand {
    /// Create, delete and rebuild indexes, and show how they stand.
    #[command(subcommand)]
    Index(IndexCommand),
    /// Upload and print schemas.
    #[command(subcommand)]
    Schema(SchemaCommand),
}

#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// List the indexes, with what this node has of each.
    List,
    /// Create an index on all nodes of the cluster. If it exists, nothing changes.
    ///
    /// Buckets and bucket types whose property search_index names it are indexed.
    Create {
        /// The name of the index.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// The schema [default: _yz_default].
        #[arg(long, value_name = "SCHEMA")]
        schema: Option<String>,
        /// The n_val of the buckets that will have the index [default: 3].
        #[arg(long, value_name = "N")]
        n_val: Option<u32>,
    },
    /// Delete an index that no bucket and no bucket type names, on all nodes of the cluster.
    Delete {
        /// The name of the index.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
    /// Print what this node has of an index, and how far each partition is behind.
    Status {
        /// The name of the index [default: all].
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: Option<String>,
    },
    /// Build an index anew, with the schema that has its name now.
    ///
    /// Queries are answered as before until the new index has everything.
    Rebuild {
        /// The name of the index.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum SchemaCommand {
    /// Keep a schema under a name, on all nodes of the cluster. Indexes that exist have the one of
    /// before until they are rebuilt.
    Upload {
        /// The name of the schema.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// The file with the schema, in Solr's XML. '-' reads standard input.
        file: PathBuf,
    },
    /// List the schemas.
    List,
    /// Print a schema as it was uploaded.
    Show {
        /// The name of the schema.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
}
