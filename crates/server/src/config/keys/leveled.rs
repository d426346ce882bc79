//! The keys of leveled (docs/riak/backends.md §4.5), and Ombak's own keys for it.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const ONE_CACHE: &str = "what has not been written yet is kept once, as leveled.penciller_cache_size says";
const OWN_LOG: &str = "logging is configured by logger.*";
const COUNTED: &str = "how much of a file is current is counted as it changes, not sampled";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "leveled.data_root",
        Kind::Path,
        "$(platform_data_dir)/leveled",
        "The directory of leveled's files.",
    ),
    KeySpec::works(
        "leveled.sync_strategy",
        Kind::Choice(&["none", "sync", "riak_sync"]),
        "none",
        "When writes reach the disk: none (when the operating system likes; they survive kill -9, not a power cut), sync \
         and riak_sync (before each acknowledgement).",
    ),
    KeySpec::works(
        "leveled.compression_method",
        Kind::Choice(&["native", "lz4", "zstd", "none"]),
        "native",
        "How values are compressed in the journal. native is zstd here. What was written with another setting stays \
         readable.",
    ),
    KeySpec::works(
        "leveled.compression_point",
        Kind::Choice(&["on_receipt", "on_compact"]),
        "on_receipt",
        "When values are compressed: when they are written, or when the journal is first compacted.",
    ),
    KeySpec::works("leveled.compression_level", Kind::Int(1, 19), "1", "How hard zstd tries: 1 is fast, 19 is small."),
    KeySpec::works(
        "leveled.ledger_compression",
        Kind::Choice(&["as_store", "native", "lz4", "zstd", "none"]),
        "as_store",
        "Whether keys and heads are compressed in the ledger: none, or lz4 with every other word; as_store follows \
         leveled.compression_method.",
    ),
    KeySpec::works(
        "leveled.journal_size",
        Kind::ByteSize,
        "1000000000",
        "Size (below 4GB) at which a new journal file is begun.",
    ),
    KeySpec::works(
        "leveled.journal_objectcount",
        Kind::Int(1, 4_000_000_000),
        "200000",
        "Versions in a journal file at which a new one is begun.",
    ),
    KeySpec::works(
        "leveled.penciller_cache_size",
        Kind::Int(1, 100_000_000),
        "20000",
        "Keys that a partition gathers in memory (about 210 bytes each) before it writes them to its ledger.",
    ),
    KeySpec::works(
        "leveled.penciller_memory",
        Kind::ByteSize,
        "64MB",
        "What all partitions together gather in memory at most; each has its share. Ombak's own.",
    ),
    KeySpec::no_meaning("leveled.cache_size", Kind::Int(1, i64::MAX), "2000", "Keys in the first cache.", ONE_CACHE),
    KeySpec::no_meaning(
        "leveled.cache_multiple",
        Kind::Int(1, i64::MAX),
        "2",
        "How far the first cache may grow beyond its size.",
        ONE_CACHE,
    ),
    KeySpec::own(
        "leveled.block_cache_size",
        Kind::ByteSize,
        "64MB",
        "Memory for blocks of ledgers that were read, for all partitions together.",
    ),
    KeySpec::own(
        "leveled.max_open_files",
        Kind::Int(16, 1_000_000),
        "512",
        "Journal files that are held open, over all partitions; as many again of the ledgers.",
    ),
    KeySpec::works(
        "leveled.compaction_low_hour",
        Kind::Int(0, 23),
        "0",
        "First hour of the day (UTC) in which the journal is compacted.",
    ),
    KeySpec::works(
        "leveled.compaction_top_hour",
        Kind::Int(0, 23),
        "23",
        "Last hour of the day (UTC) in which the journal is compacted.",
    ),
    KeySpec::own(
        "leveled.compaction_utc_offset_minutes",
        Kind::Int(-840, 840),
        "0",
        "What to add to UTC for those hours.",
    ),
    KeySpec::works(
        "leveled.compaction_runs_perday",
        Kind::Int(1, 86_400),
        "24",
        "How often a day each partition looks whether to compact its journal; one that is written to looks after every 8 MB, too.",
    ),
    KeySpec::no_meaning(
        "leveled.compaction_scores_perday",
        Kind::Int(1, i64::MAX),
        "2",
        "How often a day journal files are scored.",
        COUNTED,
    ),
    KeySpec::works(
        "leveled.singlefile_compactionpercentage",
        Kind::Percent,
        "25",
        "A journal file of which no more than this would be kept is compacted.",
    ),
    KeySpec::works(
        "leveled.maxrunlength_compactionpercentage",
        Kind::Percent,
        "59",
        "Where less than this of a partition's journal is current, its worst files are compacted until more is. Riak has 75 \
         here, which copies each value more often.",
    ),
    KeySpec::no_meaning(
        "leveled.max_run_length",
        Kind::Int(1, i64::MAX),
        "4",
        "Journal files that one compaction takes.",
        "one compaction takes as many as have to be compacted",
    ),
    KeySpec::own(
        "leveled.compaction_bytes_per_second",
        Kind::ByteSize,
        "20000000",
        "How much all compactions together may read and write a second while nobody writes; what is written adds to it.",
    ),
    KeySpec::works(
        "leveled.snapshot_timeout_short",
        Kind::Int(1, 10_000_000),
        "1800",
        "Seconds after which an index query loses its view of a partition.",
    ),
    KeySpec::works(
        "leveled.snapshot_timeout_long",
        Kind::Int(1, 10_000_000),
        "86400",
        "Seconds after which any other fold loses its view of a partition.",
    ),
    KeySpec::no_meaning(
        "leveled.ledger_pagecachelevel",
        Kind::Int(0, 8),
        "4",
        "Levels of the ledger that are read into the page cache.",
        "blocks are read when they are needed",
    ),
    KeySpec::no_meaning("leveled.log_level", Kind::Text, "info", "What leveled logs.", OWN_LOG),
    KeySpec::no_meaning("leveled.stats_percentage", Kind::Percent, "10", "Share of calls that are timed.", OWN_LOG),
    KeySpec::no_meaning(
        "leveled.stats_logfrequency",
        Kind::Int(1, i64::MAX),
        "30",
        "Seconds between logged times.",
        OWN_LOG,
    ),
    KeySpec::no_meaning(
        "leveled_reload_recalc",
        Kind::Flag,
        "off",
        "How index entries are found again when a ledger is made anew.",
        "they are always recalculated, from the newest version of each key, which is in the journal as a whole",
    ),
];
