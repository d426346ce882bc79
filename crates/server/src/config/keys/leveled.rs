//! The keys of leveled (docs/riak/backends.md §4.5), and Ombak's own keys for it.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const ONE_CACHE: &str = "there is only one cache of unwritten keys, and leveled.penciller_cache_size limits it";
const OWN_LOG: &str = "logging is configured by logger.*";
const COUNTED: &str = "the live data of each file is counted at every change and not sampled";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "leveled.data_root",
        Kind::Path,
        "$(platform_data_dir)/leveled",
        "The directory of leveled's data files.",
    ),
    KeySpec::works(
        "leveled.sync_strategy",
        Kind::Choice(&["none", "sync", "riak_sync"]),
        "none",
        "When writes are synced to disk. none: the operating system decides when; acknowledged writes survive kill \
         -9, but not a power failure. sync and riak_sync: before each acknowledgement.",
    ),
    KeySpec::works(
        "leveled.compression_method",
        Kind::Choice(&["native", "lz4", "zstd", "none"]),
        "native",
        "How values are compressed in the journal. native is zstd in Ombak. Values that were written with another \
         setting stay readable.",
    ),
    KeySpec::works(
        "leveled.compression_point",
        Kind::Choice(&["on_receipt", "on_compact"]),
        "on_receipt",
        "When values are compressed: on_receipt is when they are written, on_compact is when the journal is first \
         compacted.",
    ),
    KeySpec::works(
        "leveled.compression_level",
        Kind::Int(1, 19),
        "1",
        "The level of zstd: 1 is the fastest, 19 gives the smallest files.",
    ),
    KeySpec::works(
        "leveled.ledger_compression",
        Kind::Choice(&["as_store", "native", "lz4", "zstd", "none"]),
        "as_store",
        "Whether keys and metadata are compressed in the ledger. as_store does as leveled.compression_method says. \
         none does not compress; every other value uses lz4.",
    ),
    KeySpec::works(
        "leveled.journal_size",
        Kind::ByteSize,
        "1000000000",
        "Size at which a new journal file is begun. It must be less than 4GB.",
    ),
    KeySpec::works(
        "leveled.journal_objectcount",
        Kind::Int(1, 4_000_000_000),
        "200000",
        "Number of object versions in a journal file at which a new file is begun.",
    ),
    KeySpec::works(
        "leveled.penciller_cache_size",
        Kind::Int(1, 100_000_000),
        "20000",
        "Number of keys that a partition gathers in memory before it writes them to its ledger. Each takes about 210 \
         bytes.",
    ),
    KeySpec::own(
        "leveled.penciller_memory",
        Kind::ByteSize,
        "64MB",
        "Memory in which all partitions together gather keys. Each partition has an equal share.",
    ),
    KeySpec::no_meaning(
        "leveled.cache_size",
        Kind::Int(1, i64::MAX),
        "2000",
        "Number of keys in the first cache.",
        ONE_CACHE,
    ),
    KeySpec::no_meaning(
        "leveled.cache_multiple",
        Kind::Int(1, i64::MAX),
        "2",
        "Multiple of leveled.cache_size to which the first cache may grow.",
        ONE_CACHE,
    ),
    KeySpec::own(
        "leveled.block_cache_size",
        Kind::ByteSize,
        "64MB",
        "Memory of the cache for blocks of the ledgers, for all partitions together.",
    ),
    KeySpec::own(
        "leveled.max_open_files",
        Kind::Int(16, 1_000_000),
        "512",
        "Number of journal files that are held open, for all partitions together. As many ledger files are held open \
         in addition.",
    ),
    KeySpec::works(
        "leveled.compaction_low_hour",
        Kind::Int(0, 23),
        "0",
        "First hour of the day (UTC) in which compaction may run.",
    ),
    KeySpec::works(
        "leveled.compaction_top_hour",
        Kind::Int(0, 23),
        "23",
        "Last hour of the day (UTC) in which compaction may run.",
    ),
    KeySpec::own(
        "leveled.compaction_utc_offset_minutes",
        Kind::Int(-840, 840),
        "0",
        "Offset from UTC, in minutes, of the hours in which compaction may run.",
    ),
    KeySpec::works(
        "leveled.compaction_runs_perday",
        Kind::Int(1, 86_400),
        "24",
        "Number of times a day that each partition checks whether its journal needs compaction. A partition that is \
         written to also checks after every 8 MB.",
    ),
    KeySpec::no_meaning(
        "leveled.compaction_scores_perday",
        Kind::Int(1, i64::MAX),
        "2",
        "Number of times a day that journal files are scored.",
        COUNTED,
    ),
    KeySpec::works(
        "leveled.singlefile_compactionpercentage",
        Kind::Percent,
        "25",
        "Percentage of live data up to which a single journal file is compacted.",
    ),
    KeySpec::works(
        "leveled.maxrunlength_compactionpercentage",
        Kind::Percent,
        "59",
        "If the percentage of live data in a partition's journal is lower than this, the files with the least live \
         data are compacted until it is reached. Riak's default is 75, which copies each value more often.",
    ),
    KeySpec::no_meaning(
        "leveled.max_run_length",
        Kind::Int(1, i64::MAX),
        "4",
        "Number of journal files that one compaction reads at most.",
        "one compaction reads all files that need it",
    ),
    KeySpec::own(
        "leveled.compaction_bytes_per_second",
        Kind::ByteSize,
        "20000000",
        "Bytes that all compactions together may read and write in a second while there are no writes. Writes raise \
         the limit.",
    ),
    KeySpec::works(
        "leveled.snapshot_timeout_short",
        Kind::Int(1, 10_000_000),
        "1800",
        "Seconds after which the snapshot of an index query is released.",
    ),
    KeySpec::works(
        "leveled.snapshot_timeout_long",
        Kind::Int(1, 10_000_000),
        "86400",
        "Seconds after which the snapshot of any other fold is released.",
    ),
    KeySpec::no_meaning(
        "leveled.ledger_pagecachelevel",
        Kind::Int(0, 8),
        "4",
        "Number of levels of the ledger that are read into the page cache.",
        "blocks are read when they are needed",
    ),
    KeySpec::no_meaning("leveled.log_level", Kind::Text, "info", "The level of leveled's log messages.", OWN_LOG),
    KeySpec::no_meaning(
        "leveled.stats_percentage",
        Kind::Percent,
        "10",
        "Percentage of calls whose times are measured.",
        OWN_LOG,
    ),
    KeySpec::no_meaning(
        "leveled.stats_logfrequency",
        Kind::Int(1, i64::MAX),
        "30",
        "Seconds between log messages with measured times.",
        OWN_LOG,
    ),
    KeySpec::no_meaning(
        "leveled_reload_recalc",
        Kind::Flag,
        "off",
        "How index entries are recovered when a ledger is rebuilt.",
        "index entries are always recalculated from the newest version of each key in the journal",
    ),
];
