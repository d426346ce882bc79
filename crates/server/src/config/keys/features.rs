//! The keys of optional features: data types, indexes, search, MapReduce, and the reaper, eraser
//! and reader queues.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const INT_MAX: i64 = i64::MAX;
const TYPES: &str = "data types";
const QUERIES: &str = "the query API of Riak 3.4";
const FOLDS: &str = "the reaper and eraser";
const SEARCH: &str = "full-text search";
const NO_JAVA: &str = "search here does not run Solr";
const CONTROL: &str = "Riak dropped Riak Control in 3.0";
const JAVASCRIPT: &str = "MapReduce with JavaScript";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::not_yet(
        "datatypes.compression_level",
        Kind::Int(0, 9),
        "1",
        "How hard stored data types are compressed.",
        TYPES,
    ),
    KeySpec::works(
        "secondary_index_timeout",
        Kind::Int(0, INT_MAX),
        "0",
        "Milliseconds that an index query may take which names no limit; 0: no limit.",
    ),
    KeySpec::no_meaning(
        "secondary_index_json",
        Kind::Text,
        "otp",
        "Which library writes the results of index queries.",
        "there is one",
    ),
    KeySpec::works(
        "dollarkey_readtombs",
        Kind::Flag,
        "disabled",
        "Whether queries of $key show keys that were deleted and are not reaped yet. Riak's default is enabled.",
    ),
    KeySpec::works("log_index_fsm", Kind::Flag, "disabled", "Whether each index query is logged at its end."),
    KeySpec::not_yet("query_timeout_secs", Kind::Int(1, INT_MAX), "60", "Seconds that a query may take.", QUERIES),
    KeySpec::not_yet(
        "queue_inactivity_timeout_secs",
        Kind::Int(1, INT_MAX),
        "120",
        "Seconds after which the results of a query are dropped.",
        QUERIES,
    ),
    KeySpec::not_yet(
        "queue_raw_max_results",
        Kind::Int(1, INT_MAX),
        "1000",
        "Results of a query that are kept.",
        QUERIES,
    ),
    KeySpec::not_yet(
        "eraser_dataroot",
        Kind::Path,
        "$(platform_data_dir)/kv_eraser",
        "The directory of the eraser's queue.",
        FOLDS,
    ),
    KeySpec::not_yet(
        "reaper_dataroot",
        Kind::Path,
        "$(platform_data_dir)/kv_reaper",
        "The directory of the reaper's queue.",
        FOLDS,
    ),
    KeySpec::not_yet(
        "reader_dataroot",
        Kind::Path,
        "$(platform_data_dir)/kv_reader",
        "The directory of the reader's queue.",
        FOLDS,
    ),
    KeySpec::not_yet(
        "eraser_overflow_limit",
        Kind::Int(0, INT_MAX),
        "10000000",
        "Keys that the eraser's queue holds.",
        FOLDS,
    ),
    KeySpec::not_yet(
        "reaper_overflow_limit",
        Kind::Int(0, INT_MAX),
        "10000000",
        "Keys that the reaper's queue holds.",
        FOLDS,
    ),
    KeySpec::not_yet(
        "reader_overflow_limit",
        Kind::Int(0, INT_MAX),
        "10000000",
        "Keys that the reader's queue holds.",
        FOLDS,
    ),
    KeySpec::not_yet("search", Kind::Flag, "off", "Whether full-text search runs.", SEARCH),
    KeySpec::not_yet(
        "search.queue.batch.minimum",
        Kind::Int(1, INT_MAX),
        "10",
        "Objects from which the index is updated.",
        SEARCH,
    ),
    KeySpec::not_yet(
        "search.queue.batch.maximum",
        Kind::Int(1, INT_MAX),
        "500",
        "Objects in one update of the index.",
        SEARCH,
    ),
    KeySpec::not_yet(
        "search.queue.batch.flush_interval",
        Kind::Duration,
        "500ms",
        "Time after which the index is updated.",
        SEARCH,
    ),
    KeySpec::not_yet(
        "search.queue.high_watermark",
        Kind::Int(1, INT_MAX),
        "1000",
        "Objects that may wait for the index.",
        SEARCH,
    ),
    KeySpec::not_yet(
        "search.queue.high_watermark.purge_strategy",
        Kind::Text,
        "purge_one",
        "What goes when too many objects wait.",
        SEARCH,
    ),
    KeySpec::no_meaning(
        "search.solr.start_timeout",
        Kind::Duration,
        "30s",
        "How long Solr may take to start.",
        NO_JAVA,
    ),
    KeySpec::no_meaning("search.solr.port", Kind::Int(1, 65_535), "8093", "The port of Solr.", NO_JAVA),
    KeySpec::no_meaning("search.solr.jmx_port", Kind::Int(1, 65_535), "8985", "The management port of Solr.", NO_JAVA),
    KeySpec::no_meaning("search.solr.jvm_options", Kind::Text, "", "Options of Solr's Java machine.", NO_JAVA),
    KeySpec::no_meaning("search.**", Kind::Text, "", "Further settings of Riak's search.", NO_JAVA),
    KeySpec::no_meaning("riak_control", Kind::Flag, "off", "Whether Riak Control runs.", CONTROL),
    KeySpec::no_meaning("riak_control.auth.mode", Kind::Text, "off", "Who may use Riak Control.", CONTROL),
    KeySpec::no_meaning(
        "riak_control.auth.user.$user.password",
        Kind::Text,
        "",
        "A password of Riak Control.",
        CONTROL,
    ),
    KeySpec::not_yet(
        "javascript.maximum_stack_size",
        Kind::ByteSize,
        "16MB",
        "Stack of a JavaScript machine.",
        JAVASCRIPT,
    ),
    KeySpec::not_yet(
        "javascript.maximum_heap_size",
        Kind::ByteSize,
        "8MB",
        "Memory of a JavaScript machine.",
        JAVASCRIPT,
    ),
    KeySpec::not_yet(
        "javascript.hook_pool_size",
        Kind::Int(0, 1024),
        "2",
        "JavaScript machines for commit hooks.",
        JAVASCRIPT,
    ),
    KeySpec::not_yet(
        "javascript.map_pool_size",
        Kind::Int(0, 1024),
        "8",
        "JavaScript machines for map phases.",
        JAVASCRIPT,
    ),
    KeySpec::not_yet(
        "javascript.reduce_pool_size",
        Kind::Int(0, 1024),
        "6",
        "JavaScript machines for reduce phases.",
        JAVASCRIPT,
    ),
    KeySpec::not_yet("javascript.**", Kind::Text, "", "Further settings of JavaScript.", JAVASCRIPT),
];
