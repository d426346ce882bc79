//! The grammar of the command line. Users see the doc comments of this file in `--help`.

use super::cluster_args::{ClusterCommand, HandoffCommand};
use super::debug::DebugArgs;
use super::exchange_args::{NodeCommand, TictacaaeCommand};
use super::fold::FoldCommand;
use super::function_args::FunctionCommand;
use super::key_jobs::BucketCommand;
use super::repair_2i::Repair2iArgs;
use super::riak_args::RiakCommand;
use super::scrub::ScrubCommand;
use super::search_args::SearchCommand;
use super::security::SecurityArgs;
use super::top::TopArgs;
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
Exit codes: 0 done, 1 failed, 2 wrong usage, 78 the node does not start until an operator has acted.";

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
    /// Run a node in the foreground until Ctrl-C, SIGTERM or 'ombak stop'.
    #[command(alias = "console", alias = "foreground")]
    Start {
        /// Start although files are missing or shorter than what the stores had durably written, or
        /// a whole store is missing. The loss is recorded, and the node reports it from then on. A
        /// key that is known to be missing answers with an error; a key whose loss is not known may
        /// answer with an older value.
        #[arg(long)]
        accept_loss: bool,
        /// Run the node in the background, and return when it is ready, or when it has ended
        /// without getting ready.
        #[arg(long)]
        background: bool,
    },
    /// The same as 'ombak start --background'.
    #[command(hide = true)]
    Daemon {
        /// As for 'ombak start'.
        #[arg(long)]
        accept_loss: bool,
    },
    /// The same as 'ombak config check'.
    #[command(hide = true)]
    Chkconfig,
    /// Stop the running node.
    Stop,
    /// Check that the node answers.
    Ping,
    /// Print the state of the node.
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
    /// Import data from Riak into a stopped node.
    #[command(subcommand)]
    Import(ImportCommand),
    /// Restore a backup into the empty directories of a node that is not running.
    ///
    /// The restored node begins a cluster of its own. A member whose data were lost is not restored
    /// from a backup: the other members have everything that is newer.
    Restore {
        /// The directory of the backup.
        dir: PathBuf,
        /// Only read the whole backup and verify its checksums; this needs no node and no
        /// configuration.
        #[arg(long)]
        check: bool,
        /// Restore although the configuration has a listener.peer: the node begins a cluster of its
        /// own. No member of its former cluster may run.
        #[arg(long, conflicts_with = "check")]
        new_cluster: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print 'config is OK', or everything that is wrong. The files with which the node proves
    /// itself to others are checked, too.
    Check,
    /// Explain one configuration key, or list the keys that begin alike.
    Describe {
        /// The key, for example listener.http.internal, or the beginning of keys, for example
        /// cluster.
        key: String,
    },
    /// Print the values in force, in the format of the configuration file.
    #[command(alias = "generate")]
    Effective,
    /// Print a configuration file with every supported key, commented out.
    Example,
}

/// The bucket type, bucket and key of a value.
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
    /// Print a value exactly as it is stored.
    Get {
        #[command(flatten)]
        at: KeyArgs,
        /// Which of several siblings to print, counted from 1.
        #[arg(long, value_name = "N")]
        sibling: Option<usize>,
    },
    /// Store a value; it replaces the current one and its siblings.
    Put {
        #[command(flatten)]
        at: KeyArgs,
        /// The value. If it is missing or '-', it is read from standard input.
        value: Option<OsString>,
        /// MIME type [default: text/plain if the value is UTF-8, otherwise
        /// application/octet-stream].
        #[arg(long, value_name = "TYPE")]
        content_type: Option<String>,
    },
    /// Delete a value.
    #[command(alias = "delete")]
    Del {
        #[command(flatten)]
        at: KeyArgs,
    },
    /// List the keys of a bucket, or the buckets of a type. This reads every key of the node.
    List {
        /// The bucket; without it, the buckets are listed.
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
    /// Create, change and show bucket types.
    #[command(subcommand, alias = "bucket_type")]
    BucketType(BucketTypeCommand),
    /// Form a cluster.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Register, show and test functions in JavaScript for jobs and commit hooks.
    #[command(subcommand)]
    Function(FunctionCommand),
    /// Print the members of the cluster and their shares of the ring.
    #[command(alias = "member_status")]
    MemberStatus,
    /// Print who carries out changes of the cluster, and which nodes cannot be reached.
    #[command(alias = "ring_status")]
    RingStatus,
    /// Print whether all nodes agree on the ring.
    Ringready,
    /// Mark a member that does not answer as down, so that the cluster changes without it.
    Down {
        /// The name of the member.
        #[arg(value_name = "NODE")]
        member: String,
    },
    /// Print what nodes hold for others, what they owe to others or may lack, and what is being
    /// transferred.
    Transfers,
    /// Stop, resume and show the handoff between nodes.
    #[command(subcommand)]
    Handoff(HandoffCommand),
    /// Print or set how many partitions a node transfers at the same time.
    #[command(alias = "transfer_limit")]
    TransferLimit {
        /// The limit of all nodes, or a node's name and its limit; 0: no transfer begins. Without
        /// it, the limits are printed. It holds until the node stops; the configuration key is
        /// transfer_limit.
        #[arg(value_name = "[NODE] LIMIT", num_args = 0..=2)]
        limit: Vec<String>,
        /// How many bytes a node sends in a second, such as 50MB; 0: no limit. The configuration
        /// key is handoff.bytes_per_second.
        #[arg(long, value_name = "BYTES")]
        rate: Option<String>,
    },
    /// Show and steer scrubbing: the node reads and checks what lies on its disks although nobody
    /// asks for it.
    #[command(subcommand)]
    Scrub(ScrubCommand),
    /// Indexes and schemas of full-text search.
    #[command(subcommand)]
    Search(SearchCommand),
    /// Print when partitions were last compared with the other primaries, and how many keys that
    /// has repaired.
    #[command(alias = "aae_status")]
    AaeStatus,
    /// Suspend and resume the exchanges between primaries, and set how often they run.
    #[command(subcommand)]
    Tictacaae(TictacaaeCommand),
    /// Repair a node.
    #[command(subcommand)]
    Node(NodeCommand),
    /// Gather something of many objects at once, over the whole cluster; erase, reap and repair
    /// them.
    #[command(subcommand)]
    Fold(FoldCommand),
    /// Drop a bucket.
    #[command(subcommand)]
    Bucket(BucketCommand),
    /// Users, groups, sources and grants, and whether security is on.
    Security(SecurityArgs),
    /// Compare the index entries of this node with its objects, and mend what differs.
    #[command(name = "repair-2i", alias = "repair_2i")]
    Repair2i(Repair2iArgs),
    /// Print all statistics.
    Status,
    /// Show what the node is busy with: rates, times, the hottest keys and buckets, and the largest
    /// objects. The picture is renewed until Ctrl-C.
    Top(TopArgs),
    /// Collect what support needs to know about the node, without secrets, in a tar.gz file. This
    /// also works when the node is down.
    Debug(DebugArgs),
    /// Write a test value and read it back.
    Test,
    /// Take a backup of the node while it runs.
    Backup {
        /// Directory for the backup on the node's machine: a name below platform_backup_dir, or a
        /// path that lies there. It is new, or it holds an earlier backup of this node, in which
        /// only changed files are replaced.
        dir: PathBuf,
        /// An earlier backup, in another directory below platform_backup_dir, with which a backup
        /// in a new directory may share files.
        #[arg(long, value_name = "DIR")]
        since: Option<PathBuf>,
    },
    /// Change a setting of the running node until it stops, for example logger.level=debug.
    Set {
        /// KEY=VALUE. Only logger.level, log.slow_request and participate_in_coverage can be
        /// changed.
        #[arg(value_name = "KEY=VALUE")]
        assignment: String,
    },
    /// Print a setting of the running node.
    Show {
        /// The key, for example logger.level.
        key: String,
    },
    /// Print the state of the store of each partition.
    #[command(alias = "vnode_status")]
    VnodeStatus,
    #[command(flatten)]
    Riak(RiakCommand),
}

#[derive(Debug, Subcommand)]
pub enum BackendCommand {
    /// Copy all data of a stopped node from one backend to another one that is still empty. The old
    /// files stay.
    Convert {
        /// The backend that has the data: a word for storage_backend, or a name from
        /// multi_backend.NAME.
        #[arg(long, value_name = "NAME")]
        from: String,
        /// The backend to copy to.
        #[arg(long, value_name = "NAME")]
        to: String,
    },
    /// Read everything that a stopped node has on disk and report what is damaged.
    ///
    /// A member of a cluster repairs itself from the other members: what is unreadable when it is
    /// read, and everything that a repair has removed after the next start.
    Verify {
        /// Remove what is damaged so that the node can serve the rest. A copy of what is removed is
        /// kept in the backend's directory 'quarantine'.
        #[arg(long)]
        repair: bool,
        /// Examine only this backend: a word for storage_backend, or a name from multi_backend.NAME
        /// [default: the backends that the node uses].
        #[arg(long, value_name = "NAME")]
        backend: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum BucketTypeCommand {
    /// Create a bucket type. It must be activated before it can be used.
    Create {
        /// The name of the bucket type.
        name: String,
        /// The properties, for example '{"props":{"n_val":3}}'.
        props: Option<String>,
    },
    /// Change properties of an active bucket type.
    Update {
        /// The name of the bucket type.
        name: String,
        /// The properties to change, for example '{"props":{"n_val":3}}'.
        props: String,
    },
    /// Activate a created bucket type so that it can be used. This cannot be undone.
    Activate {
        /// The name of the bucket type.
        name: String,
    },
    /// Print the status of a bucket type and its properties.
    Status {
        /// The name of the bucket type.
        name: String,
    },
    /// List all bucket types.
    List,
    /// Reset the properties of an active bucket type to their defaults.
    Reset {
        /// The name of the bucket type.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Import the bitcask directory of a Riak node, which has one subdirectory for each partition.
    ///
    /// A node that has been part of a cluster takes no import, not even of a cluster of its own.
    Bitcask {
        /// The data root of Riak's bitcask, for example /var/lib/riak/bitcask.
        dir: PathBuf,
        /// JSON file with bucket types to create first, for example {"carts": {"props": {"n_val":
        /// 3}}}.
        #[arg(long, value_name = "FILE")]
        types: Option<PathBuf>,
        /// Start from the beginning instead of continuing where an interrupted import stopped.
        #[arg(long)]
        restart: bool,
    },
}
