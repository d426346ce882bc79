//! The keys of optional features: data types, indexes, search, MapReduce, and the reaper, eraser
//! and reader queues.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const INT_MAX: i64 = i64::MAX;
const TYPES: &str = "data types";
const QUERIES: &str = "the query API of Riak 3.4";
const ONE_DIRECTORY: &str = "all of these queues are in key_queues in platform_data_dir";
const NO_QUEUE: &str = "an index follows the stores every 200 ms, without a queue that could drop something";
const NO_JAVA: &str = "Ombak's search does not use Solr";
const CONTROL: &str = "Riak dropped Riak Control in 3.0";
const JAVASCRIPT: &str = "MapReduce with JavaScript";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::not_yet(
        "datatypes.compression_level",
        Kind::Int(0, 9),
        "1",
        "The compression level of stored data types.",
        TYPES,
    ),
    KeySpec::works(
        "secondary_index_timeout",
        Kind::Int(0, INT_MAX),
        "0",
        "Time limit, in milliseconds, of index queries that do not set a limit. 0 means no limit.",
    ),
    KeySpec::no_meaning(
        "secondary_index_json",
        Kind::Text,
        "otp",
        "The library that encodes the results of index queries.",
        "Ombak has only one JSON encoder",
    ),
    KeySpec::works(
        "dollarkey_readtombs",
        Kind::Flag,
        "disabled",
        "Whether queries of $key return deleted keys whose tombstones still exist. Riak's default is enabled.",
    ),
    KeySpec::works("log_index_fsm", Kind::Flag, "disabled", "Whether each index query is logged when it ends."),
    KeySpec::not_yet("query_timeout_secs", Kind::Int(1, INT_MAX), "60", "Time limit of a query, in seconds.", QUERIES),
    KeySpec::not_yet(
        "queue_inactivity_timeout_secs",
        Kind::Int(1, INT_MAX),
        "120",
        "Seconds after which results of a query that were not fetched are dropped.",
        QUERIES,
    ),
    KeySpec::not_yet(
        "queue_raw_max_results",
        Kind::Int(1, INT_MAX),
        "1000",
        "Number of results of a query that are kept.",
        QUERIES,
    ),
    KeySpec::no_meaning(
        "eraser_dataroot",
        Kind::Path,
        "$(platform_data_dir)/kv_eraser",
        "The directory of the eraser's queue.",
        ONE_DIRECTORY,
    ),
    KeySpec::no_meaning(
        "reaper_dataroot",
        Kind::Path,
        "$(platform_data_dir)/kv_reaper",
        "The directory of the reaper's queue.",
        ONE_DIRECTORY,
    ),
    KeySpec::no_meaning(
        "reader_dataroot",
        Kind::Path,
        "$(platform_data_dir)/kv_reader",
        "The directory of the reader's queue.",
        ONE_DIRECTORY,
    ),
    KeySpec::own(
        "key_queues.keys_per_second",
        Kind::Int(1, 1_000_000),
        "2000",
        "How many keys this node erases, reaps or repairs in a second at most, each by itself, for folds and for drops \
         of buckets.",
    ),
    KeySpec::works(
        "eraser_overflow_limit",
        Kind::Int(0, INT_MAX),
        "10000000",
        "Number of keys that may wait to be erased. A fold that finds more is refused.",
    ),
    KeySpec::works(
        "reaper_overflow_limit",
        Kind::Int(0, INT_MAX),
        "10000000",
        "Number of tombstones that may wait to be reaped. A fold that finds more is refused.",
    ),
    KeySpec::works(
        "reader_overflow_limit",
        Kind::Int(0, INT_MAX),
        "10000000",
        "Number of keys that may wait to be repaired. A fold that finds more is refused.",
    ),
    KeySpec::works(
        "search",
        Kind::Flag,
        "off",
        "Whether the node has full-text search. Set it alike on all nodes: what a node without search stores is \
         indexed when its search is switched on.",
    ),
    KeySpec::works(
        "search.root_dir",
        Kind::Path,
        "$(platform_data_dir)/search",
        "The directory of the search indexes. They are built anew from the stores if they are lost.",
    ),
    KeySpec::own(
        "search.memory",
        Kind::ByteSize,
        "64MB",
        "The memory in which documents wait to be written, for all search indexes together. Each index that is \
         written needs 15 MB of it, and others wait meanwhile.",
    ),
    KeySpec::no_meaning(
        "search.queue.batch.minimum",
        Kind::Int(1, INT_MAX),
        "10",
        "Number of waiting objects from which the index is updated.",
        NO_QUEUE,
    ),
    KeySpec::no_meaning(
        "search.queue.batch.maximum",
        Kind::Int(1, INT_MAX),
        "500",
        "Largest number of objects in one update of the index.",
        NO_QUEUE,
    ),
    KeySpec::no_meaning(
        "search.queue.batch.flush_interval",
        Kind::Duration,
        "500ms",
        "Longest time between two updates of the index.",
        NO_QUEUE,
    ),
    KeySpec::no_meaning(
        "search.queue.high_watermark",
        Kind::Int(1, INT_MAX),
        "1000",
        "Number of objects that may wait to be indexed.",
        NO_QUEUE,
    ),
    KeySpec::no_meaning(
        "search.queue.high_watermark.purge_strategy",
        Kind::Text,
        "purge_one",
        "Which objects are dropped when the queue is full.",
        NO_QUEUE,
    ),
    KeySpec::no_meaning(
        "search.solr.start_timeout",
        Kind::Duration,
        "30s",
        "Time limit for the start of Solr.",
        NO_JAVA,
    ),
    KeySpec::no_meaning("search.solr.port", Kind::Int(1, 65_535), "8093", "The port of Solr.", NO_JAVA),
    KeySpec::no_meaning("search.solr.jmx_port", Kind::Int(1, 65_535), "8985", "The management port of Solr.", NO_JAVA),
    KeySpec::no_meaning("search.solr.jvm_options", Kind::Text, "", "Options of Solr's Java virtual machine.", NO_JAVA),
    KeySpec::no_meaning("search.**", Kind::Text, "", "Further settings of Riak's search.", NO_JAVA),
    KeySpec::no_meaning("riak_control", Kind::Flag, "off", "Whether Riak Control is enabled.", CONTROL),
    KeySpec::no_meaning(
        "riak_control.auth.mode",
        Kind::Text,
        "off",
        "How Riak Control authenticates its users.",
        CONTROL,
    ),
    KeySpec::no_meaning(
        "riak_control.auth.user.$user.password",
        Kind::Text,
        "",
        "The password of a user of Riak Control.",
        CONTROL,
    ),
    KeySpec::works(
        "javascript.maximum_stack_size",
        Kind::ByteSize,
        "1MB",
        "How much stack a function in JavaScript may use. Riak's default is 16MB, for another engine: 1MB allows \
         several thousand calls within calls.",
    ),
    KeySpec::works(
        "javascript.maximum_heap_size",
        Kind::ByteSize,
        "8MB",
        "How much memory a function in JavaScript may use.",
    ),
    KeySpec::works(
        "javascript.hook_pool_size",
        Kind::Int(1, 1024),
        "2",
        "Number of processes for pre-commit hooks in JavaScript, and as many again for post-commit hooks.",
    ),
    KeySpec::works(
        "javascript.map_pool_size",
        Kind::Int(1, 1024),
        "8",
        "Number of processes for map functions in JavaScript.",
    ),
    KeySpec::works(
        "javascript.reduce_pool_size",
        Kind::Int(1, 1024),
        "6",
        "Number of processes for reduce functions in JavaScript.",
    ),
    KeySpec::works(
        "javascript.source_dir",
        Kind::Path,
        "",
        "The directory whose files *.js are loaded before each function in JavaScript, in the order of their names. \
         Hooks and jobs may name the functions in them. The files are read when the node starts.",
    ),
    KeySpec::own(
        "javascript.anonymous_functions",
        Kind::Flag,
        "off",
        "Whether MapReduce jobs may bring functions in JavaScript along, or name objects that hold them. Off, because \
         then everybody who may read can run programs on the nodes.",
    ),
    KeySpec::own(
        "javascript.call_time",
        Kind::Duration,
        "5s",
        "How long one call of a function in JavaScript may take.",
    ),
    KeySpec::not_yet("javascript.**", Kind::Text, "", "Further settings of JavaScript.", JAVASCRIPT),
];
