//! The command line's grammar.

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  ombak start                                  run a node in the foreground, data in ./data
  ombak kv put greetings en hello              store a value
  ombak kv get greetings en                    read it
  ombak admin bucket-type create carts '{\"props\":{\"allow_mult\":true}}'
  ombak admin bucket-type activate carts
  ombak config describe bitcask.sync.strategy  what a setting means

Commands find the node that runs in ./data by themselves; --node HOST:PORT or OMBAK_NODE name another one.
Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// A distributed key-value database that Riak's clients can use.
#[derive(Debug, Parser)]
#[command(name = "ombak", version = super::VERSION_TEXT, after_help = AFTER_HELP, propagate_version = false)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Clone, Debug, Default, Args)]
pub struct Common {
    /// The node to talk to [default: the one that runs in the data directory, then 127.0.0.1].
    #[arg(long, global = true, value_name = "HOST:PORT", env = "OMBAK_NODE")]
    pub node: Option<String>,
    /// Data directory [default: platform_data_dir of the configuration, ./data].
    #[arg(long, global = true, value_name = "DIR", env = "OMBAK_DATA")]
    pub data: Option<PathBuf>,
    /// Configuration file [default: ./ombak.conf, then /etc/ombak/ombak.conf, if there is one].
    #[arg(long, global = true, value_name = "FILE", env = "OMBAK_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a node in the foreground, until Ctrl-C, SIGTERM or 'ombak stop'.
    Start {
        /// Start although stores lack what they had durably stored: a file is missing or shorter, or a whole store. It is noted,
        /// and told from then on. What is known to be missing answers an error; what is not may answer something older.
        #[arg(long)]
        accept_loss: bool,
    },
    /// Stop the node.
    Stop,
    /// Ask whether the node answers.
    Ping,
    /// Say how the node is.
    Status,
    /// Print the version.
    Version,
    /// Print the node's process id.
    #[command(hide = true)]
    Getpid,
    /// Check and explain the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Read and write values.
    #[command(subcommand)]
    Kv(KvCommand),
    /// Administer the node.
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Bring data from elsewhere into a stopped node.
    #[command(subcommand)]
    Import(ImportCommand),
    /// Put a backup into the empty directories of a node that is not running.
    Restore {
        /// What 'ombak admin backup' wrote.
        dir: PathBuf,
        /// Only read the whole backup and compare it with its checksums; needs no node and no configuration.
        #[arg(long)]
        check: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say 'config is OK', or everything that is wrong.
    Check,
    /// Explain a key.
    Describe {
        /// The key, listener.http.internal for instance.
        key: String,
    },
    /// Print the values in force, in the form of the file.
    #[command(alias = "generate")]
    Effective,
    /// Print a file with every key that works, commented.
    Example,
}

/// Where a value lives.
#[derive(Clone, Debug, Args)]
pub struct KeyArgs {
    /// The bucket.
    pub bucket: OsString,
    /// The key.
    pub key: OsString,
    /// The bucket type.
    #[arg(short = 't', long = "type", value_name = "TYPE", default_value = "default")]
    pub bucket_type: OsString,
}

#[derive(Debug, Subcommand)]
pub enum KvCommand {
    /// Print a value, byte for byte.
    Get {
        #[command(flatten)]
        at: KeyArgs,
        /// Which of several siblings, counted from 1.
        #[arg(long, value_name = "N")]
        sibling: Option<usize>,
    },
    /// Store a value; it replaces whatever is there now.
    Put {
        #[command(flatten)]
        at: KeyArgs,
        /// The value; without it, or with -, it is read from standard input.
        value: Option<OsString>,
        /// MIME type [default: text/plain for UTF-8, else application/octet-stream].
        #[arg(long, value_name = "TYPE")]
        content_type: Option<String>,
    },
    /// Remove a value.
    #[command(alias = "delete")]
    Del {
        #[command(flatten)]
        at: KeyArgs,
    },
    /// Print the keys of a bucket, or the buckets of a type. Walks over every key of the node.
    List {
        /// The bucket; without it, buckets are listed.
        bucket: Option<OsString>,
        /// The bucket type.
        #[arg(short = 't', long = "type", value_name = "TYPE", default_value = "default")]
        bucket_type: OsString,
    },
}

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Examine, repair or convert the files of a stopped node.
    #[command(subcommand)]
    Backend(BackendCommand),
    /// Create, change and look at bucket types.
    #[command(subcommand, alias = "bucket_type")]
    BucketType(BucketTypeCommand),
    /// Print all statistics.
    Status,
    /// Write a value and read it back.
    Test,
    /// Take a backup of the node while it runs.
    Backup {
        /// Where it goes, on the node's machine: a name below platform_backup_dir, or a path that leads there. A new
        /// directory, or one with an earlier backup of this node, of which only what has changed is replaced.
        dir: PathBuf,
        /// For a new directory: an earlier backup in another one below platform_backup_dir, with which it may share files.
        #[arg(long, value_name = "DIR")]
        since: Option<PathBuf>,
    },
    /// Change a setting of the running node, until it stops: logger.level=debug.
    Set {
        /// KEY=VALUE. The key that can be changed is logger.level.
        #[arg(value_name = "KEY=VALUE")]
        assignment: String,
    },
    /// Print a setting of the running node.
    Show {
        /// The key, logger.level for instance.
        key: String,
    },
    /// Print how the store of each partition is.
    #[command(alias = "vnode_status")]
    VnodeStatus,
}

#[derive(Debug, Subcommand)]
pub enum BackendCommand {
    /// Write what the stopped node has in one backend to another, which has nothing yet. The old files stay.
    Convert {
        /// The backend that has the data: one of storage_backend's words, or a name of multi_backend.NAME.
        #[arg(long, value_name = "NAME")]
        from: String,
        /// The backend that is to have it.
        #[arg(long, value_name = "NAME")]
        to: String,
    },
    /// Read everything that the stopped node has on disk and say what is damaged.
    Verify {
        /// Take out what is damaged, keep a copy of it in the directory 'quarantine' of the backend, and leave a node that
        /// serves the rest.
        #[arg(long)]
        repair: bool,
        /// Only this backend: one of storage_backend's words, or a name of multi_backend.NAME [default: what the node uses].
        #[arg(long, value_name = "NAME")]
        backend: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum BucketTypeCommand {
    /// Create a type; it has to be activated before it can be used.
    Create {
        /// Its name.
        name: String,
        /// Its properties: '{"props":{"n_val":3}}'.
        props: Option<String>,
    },
    /// Change properties of an active type.
    Update {
        /// Its name.
        name: String,
        /// The properties to change: '{"props":{"n_val":3}}'.
        props: String,
    },
    /// Put a created type to use, for ever.
    Activate {
        /// Its name.
        name: String,
    },
    /// Print how far a type has come, and its properties.
    Status {
        /// Its name.
        name: String,
    },
    /// Print all types.
    List,
    /// Give an active type the default properties again.
    Reset {
        /// Its name.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Take in the bitcask directory of a Riak node: one folder per partition.
    Bitcask {
        /// The data root of its bitcask, /var/lib/riak/bitcask for instance.
        dir: PathBuf,
        /// Bucket types to create first, {"carts": {"props": {"n_val": 3}}} for instance.
        #[arg(long, value_name = "FILE")]
        types: Option<PathBuf>,
        /// Start from the beginning instead of where an interrupted import stopped.
        #[arg(long)]
        restart: bool,
    },
}
