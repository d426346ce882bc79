//! The keys of leveldb (docs/riak/backends.md §3).

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const ALWAYS: &str = "blocks are always verified";
const ONE_DIR: &str = "all levels lie in leveldb.data_root";
const SHARED_THREADS: &str = "compaction runs on the node's maintenance thread";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "leveldb.data_root",
        Kind::Path,
        "$(platform_data_dir)/leveldb",
        "The directory of leveldb's files.",
    ),
    KeySpec::works(
        "leveldb.maximum_memory.percent",
        Kind::Percent,
        "70",
        "Share of the machine's memory (or of what this process may have of it) for the caches and write buffers of all \
         partitions together.",
    ),
    KeySpec::works("leveldb.maximum_memory", Kind::ByteSize, "", "The same in bytes; goes before the percentage."),
    KeySpec::works(
        "leveldb.limited_developer_mem",
        Kind::Flag,
        "off",
        "Whether 64MB have to do for all partitions together, for a machine that runs many nodes.",
    ),
    KeySpec::works(
        "leveldb.write_buffer_size_max",
        Kind::ByteSize,
        "60MB",
        "What a partition gathers in memory at most before it writes it. Less where maximum_memory asks for it.",
    ),
    KeySpec::no_meaning(
        "leveldb.write_buffer_size_min",
        Kind::ByteSize,
        "30MB",
        "The least that a partition gathers in memory.",
        "how much less than leveldb.write_buffer_size_max follows from leveldb.maximum_memory",
    ),
    KeySpec::works(
        "leveldb.block_cache_threshold",
        Kind::ByteSize,
        "32MB",
        "What the block cache keeps of maximum_memory however many write buffers there are.",
    ),
    KeySpec::works(
        "leveldb.sync_on_write",
        Kind::Flag,
        "off",
        "Whether each write is synced to disk before it is acknowledged.",
    ),
    KeySpec::works(
        "leveldb.bloomfilter",
        Kind::Flag,
        "on",
        "Whether tables have filters that spare reads of absent keys.",
    ),
    KeySpec::works("leveldb.block.size", Kind::ByteSize, "4KB", "Size of a block of a table (at most 1MB)."),
    KeySpec::works(
        "leveldb.block.restart_interval",
        Kind::Int(1, 255),
        "16",
        "Keys of a block of which only the first is written as a whole.",
    ),
    KeySpec::no_meaning(
        "leveldb.block.size_steps",
        Kind::Int(0, i64::MAX),
        "16",
        "How far blocks grow with the database.",
        "blocks have one size",
    ),
    KeySpec::works("leveldb.compression", Kind::Flag, "on", "Whether blocks are compressed, with lz4."),
    KeySpec::no_meaning(
        "leveldb.compression.algorithm",
        Kind::Choice(&["snappy", "lz4"]),
        "lz4",
        "How blocks are compressed.",
        "it is lz4 with either word",
    ),
    KeySpec::own(
        "leveldb.max_open_files",
        Kind::Int(16, 1_000_000),
        "512",
        "Table files that are held open, over all partitions; as many again of the log behind them.",
    ),
    KeySpec::works(
        "leveldb.expiration",
        Kind::Flag,
        "off",
        "Whether values are gone after leveldb.expiration.retention_time.",
    ),
    KeySpec::works(
        "leveldb.expiration.retention_time",
        Kind::DurationOr("unlimited"),
        "unlimited",
        "Age at which a value is gone.",
    ),
    KeySpec::no_meaning(
        "leveldb.expiration.mode",
        Kind::Choice(&["whole_file", "normal"]),
        "whole_file",
        "Whether expired values go only with their whole file.",
        "expired values are gone at once for readers, and from the disk with compaction",
    ),
    KeySpec::no_meaning(
        "leveldb.verify_checksums",
        Kind::Flag,
        "on",
        "Whether blocks that are read are verified.",
        ALWAYS,
    ),
    KeySpec::no_meaning(
        "leveldb.verify_compaction",
        Kind::Flag,
        "on",
        "Whether blocks that are compacted are verified.",
        ALWAYS,
    ),
    KeySpec::no_meaning("leveldb.threads", Kind::Int(1, i64::MAX), "71", "Threads for compaction.", SHARED_THREADS),
    KeySpec::no_meaning(
        "leveldb.fadvise_willneed",
        Kind::Flag,
        "false",
        "Whether files are read into the page cache when they are opened.",
        "blocks are read when they are needed",
    ),
    KeySpec::no_meaning(
        "leveldb.cache_object_warming",
        Kind::Flag,
        "true",
        "Whether the block cache outlives a restart.",
        "the page cache does",
    ),
    KeySpec::no_meaning(
        "leveldb.compaction.trigger.tombstone_count",
        Kind::Text,
        "1000",
        "Deletes in a file that start a compaction.",
        "compaction goes by the sizes of levels",
    ),
    KeySpec::no_meaning("leveldb.tiered", Kind::Text, "off", "From which level on the slow disk is used.", ONE_DIR),
    KeySpec::no_meaning("leveldb.tiered.path.fast", Kind::Path, "", "Where the first levels lie.", ONE_DIR),
    KeySpec::no_meaning("leveldb.tiered.path.slow", Kind::Path, "", "Where the last levels lie.", ONE_DIR),
];
