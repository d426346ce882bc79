//! The keys of bitcask (docs/riak/backends.md §2.8), and Ombak's own keys for it.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "bitcask.data_root",
        Kind::Path,
        "$(platform_data_dir)/bitcask",
        "The directory of bitcask's data files.",
    ),
    KeySpec::works(
        "bitcask.sync.strategy",
        Kind::Choice(&["none", "o_sync", "interval"]),
        "none",
        "When writes are synced to disk. none: the operating system decides when; acknowledged writes survive kill \
         -9, but not a power failure. o_sync: before each acknowledgement. interval: once in each \
         bitcask.sync.interval.",
    ),
    KeySpec::works(
        "bitcask.sync.interval",
        Kind::Duration,
        "1s",
        "Time between syncs with bitcask.sync.strategy = interval.",
    ),
    KeySpec::works(
        "bitcask.max_file_size",
        Kind::ByteSize,
        "2GB",
        "Size at which a new data file is begun. It must be less than 4GB.",
    ),
    KeySpec::works(
        "bitcask.merge.policy",
        Kind::Choice(&["always", "never", "window"]),
        "always",
        "When files may be merged.",
    ),
    KeySpec::works(
        "bitcask.merge.window.start",
        Kind::Int(0, 23),
        "0",
        "First hour of the day (UTC) for bitcask.merge.policy = window.",
    ),
    KeySpec::works(
        "bitcask.merge.window.end",
        Kind::Int(0, 23),
        "23",
        "Last hour of the day (UTC) for bitcask.merge.policy = window.",
    ),
    KeySpec::works(
        "bitcask.merge.triggers.fragmentation",
        Kind::Percent,
        "60",
        "Percentage of dead keys in a file that starts a merge.",
    ),
    KeySpec::works(
        "bitcask.merge.triggers.dead_bytes",
        Kind::ByteSize,
        "512MB",
        "Number of dead bytes in a file that starts a merge.",
    ),
    KeySpec::works(
        "bitcask.merge.thresholds.fragmentation",
        Kind::Percent,
        "40",
        "Percentage of dead keys in a file from which the file takes part in a merge.",
    ),
    KeySpec::works(
        "bitcask.merge.thresholds.dead_bytes",
        Kind::ByteSize,
        "128MB",
        "Number of dead bytes in a file from which the file takes part in a merge.",
    ),
    KeySpec::works(
        "bitcask.merge.thresholds.small_file",
        Kind::ByteSize,
        "10MB",
        "Size below which a file takes part in a merge.",
    ),
    KeySpec::own(
        "bitcask.merge.window.utc_offset_minutes",
        Kind::Int(-840, 840),
        "0",
        "Offset from UTC, in minutes, of the hours of the merge window.",
    ),
    KeySpec::own(
        "bitcask.merge.bytes_per_second",
        Kind::ByteSize,
        "20000000",
        "Bytes that all merges together may read and write in a second.",
    ),
    KeySpec::works(
        "bitcask.merge_check_interval",
        Kind::Duration,
        "3m",
        "Time between checks whether a merge is needed. A store that is written to also checks after every 8 MB.",
    ),
    KeySpec::works(
        "bitcask.merge_check_jitter",
        Kind::Percent,
        "30%",
        "Percentage by which bitcask.merge_check_interval varies at random.",
    ),
    KeySpec::works(
        "bitcask.max_merge_size",
        Kind::ByteSize,
        "100GB",
        "Total size of the files that one merge reads at most.",
    ),
    KeySpec::own(
        "bitcask.max_open_files",
        Kind::Int(16, 1_000_000),
        "512",
        "Number of data files that are held open, for all partitions together.",
    ),
    KeySpec::works("bitcask.expiry", Kind::DurationOr("off"), "off", "Age after which a value expires."),
    KeySpec::works(
        "bitcask.expiry.grace_time",
        Kind::Duration,
        "0s",
        "How long an expired value may stay on disk after it has expired, before it starts a merge.",
    ),
    KeySpec::no_meaning(
        "bitcask.open_timeout",
        Kind::Duration,
        "4s",
        "Time limit for opening a directory.",
        "a directory opens or fails without a time limit",
    ),
    KeySpec::no_meaning(
        "bitcask.fold.max_age",
        Kind::DurationOr("unlimited"),
        "unlimited",
        "Age up to which listings share one snapshot.",
        "every listing has its own snapshot",
    ),
    KeySpec::no_meaning(
        "bitcask.fold.max_puts",
        Kind::Text,
        "0",
        "Number of writes by which a shared snapshot may be out of date.",
        "every listing has its own snapshot",
    ),
    KeySpec::no_meaning(
        "bitcask.hintfile_checksums",
        Kind::Choice(&["strict", "allow_missing"]),
        "strict",
        "Whether hint files without checksums are refused.",
        "hint files are always checked",
    ),
    KeySpec::no_meaning(
        "bitcask.io_mode",
        Kind::Choice(&["erlang", "nif"]),
        "erlang",
        "The library that reads and writes files.",
        "Ombak has only one I/O library",
    ),
    KeySpec::own(
        "bitcask.compression",
        Kind::Choice(&["none", "lz4", "zstd"]),
        "none",
        "How values are compressed on disk. Values that were written with another setting stay readable.",
    ),
    KeySpec::own(
        "bitcask.compression.level",
        Kind::Int(1, 19),
        "1",
        "The level of bitcask.compression = zstd: 1 is the fastest, 19 gives the smallest files.",
    ),
    KeySpec::own(
        "bitcask.compression.point",
        Kind::Choice(&["on_receipt", "on_compact"]),
        "on_receipt",
        "When values are compressed: on_receipt is when they are written, on_compact is when they are first merged.",
    ),
];
