//! The keys of leveldb (docs/riak/backends.md §3).

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const ALWAYS: &str = "checksums of blocks are always verified";
const ONE_DIR: &str = "all levels are in leveldb.data_root";
const SHARED_THREADS: &str = "compaction runs on the node's maintenance thread";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "leveldb.data_root",
        Kind::Path,
        "$(platform_data_dir)/leveldb",
        "The directory of leveldb's data files.",
    ),
    KeySpec::works(
        "leveldb.maximum_memory.percent",
        Kind::Percent,
        "70",
        "Percentage of the machine's memory, or of this process's memory limit, for the caches and write buffers of \
         all partitions together.",
    ),
    KeySpec::works(
        "leveldb.maximum_memory",
        Kind::ByteSize,
        "",
        "Memory for the caches and write buffers of all partitions together. This key overrides \
         leveldb.maximum_memory.percent.",
    ),
    KeySpec::works(
        "leveldb.limited_developer_mem",
        Kind::Flag,
        "off",
        "Limits the memory of all partitions together to 64 MB, for development machines that run many nodes.",
    ),
    KeySpec::works(
        "leveldb.write_buffer_size_max",
        Kind::ByteSize,
        "60MB",
        "Largest size of a partition's write buffer. The buffers are smaller if leveldb.maximum_memory requires it.",
    ),
    KeySpec::no_meaning(
        "leveldb.write_buffer_size_min",
        Kind::ByteSize,
        "30MB",
        "Smallest size of a partition's write buffer.",
        "leveldb.maximum_memory determines how small the write buffers are",
    ),
    KeySpec::works(
        "leveldb.block_cache_threshold",
        Kind::ByteSize,
        "32MB",
        "The part of leveldb.maximum_memory that is kept for the block cache. The write buffers get at least a \
         quarter all the same.",
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
        "Whether tables have Bloom filters, which avoid disk reads for keys that do not exist.",
    ),
    KeySpec::works("leveldb.block.size", Kind::ByteSize, "4KB", "Size of a block of a table. It is at most 1MB."),
    KeySpec::works(
        "leveldb.block.restart_interval",
        Kind::Int(1, 255),
        "16",
        "Number of keys after which a block stores a whole key. The keys between are stored without the prefix that \
         they share.",
    ),
    KeySpec::no_meaning(
        "leveldb.block.size_steps",
        Kind::Int(0, i64::MAX),
        "16",
        "Number of steps in which blocks grow with the database.",
        "all blocks have the same size",
    ),
    KeySpec::works("leveldb.compression", Kind::Flag, "on", "Whether blocks are compressed. The algorithm is lz4."),
    KeySpec::no_meaning(
        "leveldb.compression.algorithm",
        Kind::Choice(&["snappy", "lz4"]),
        "lz4",
        "The algorithm that compresses blocks.",
        "lz4 is used for either value",
    ),
    KeySpec::own(
        "leveldb.max_open_files",
        Kind::Int(16, 1_000_000),
        "512",
        "Number of table files that are held open, for all partitions together. As many journal files are held open \
         in addition.",
    ),
    KeySpec::works(
        "leveldb.expiration",
        Kind::Flag,
        "off",
        "Whether values expire after leveldb.expiration.retention_time.",
    ),
    KeySpec::works(
        "leveldb.expiration.retention_time",
        Kind::DurationOr("unlimited"),
        "unlimited",
        "Age after which a value expires.",
    ),
    KeySpec::no_meaning(
        "leveldb.expiration.mode",
        Kind::Choice(&["whole_file", "normal"]),
        "whole_file",
        "Whether expired values are removed only when their whole file has expired.",
        "reads never return expired values, and compaction removes them from disk",
    ),
    KeySpec::no_meaning(
        "leveldb.verify_checksums",
        Kind::Flag,
        "on",
        "Whether the checksums of blocks are verified when they are read.",
        ALWAYS,
    ),
    KeySpec::no_meaning(
        "leveldb.verify_compaction",
        Kind::Flag,
        "on",
        "Whether the checksums of blocks are verified when they are compacted.",
        ALWAYS,
    ),
    KeySpec::no_meaning(
        "leveldb.threads",
        Kind::Int(1, i64::MAX),
        "71",
        "Number of threads for compaction.",
        SHARED_THREADS,
    ),
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
        "Whether the block cache survives a restart.",
        "the operating system's page cache survives a restart of the node",
    ),
    KeySpec::no_meaning(
        "leveldb.compaction.trigger.tombstone_count",
        Kind::Text,
        "1000",
        "Number of tombstones in a file that starts a compaction.",
        "the sizes of levels decide what is compacted",
    ),
    KeySpec::no_meaning(
        "leveldb.tiered",
        Kind::Text,
        "off",
        "The first level that is stored in leveldb.tiered.path.slow.",
        ONE_DIR,
    ),
    KeySpec::no_meaning(
        "leveldb.tiered.path.fast",
        Kind::Path,
        "",
        "The directory of the levels below leveldb.tiered.",
        ONE_DIR,
    ),
    KeySpec::no_meaning("leveldb.tiered.path.slow", Kind::Path, "", "The directory of the other levels.", ONE_DIR),
];
