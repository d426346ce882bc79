//! The keys of bitcask (docs/riak/backends.md §2.8), and Ombak's own keys for it.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "bitcask.data_root",
        Kind::Path,
        "$(platform_data_dir)/bitcask",
        "The directory of bitcask's files.",
    ),
    KeySpec::works(
        "bitcask.sync.strategy",
        Kind::Choice(&["none", "o_sync", "interval"]),
        "none",
        "When writes reach the disk: none (when the operating system likes; they survive kill -9, not a power cut), \
         o_sync (before each acknowledgement), interval (every bitcask.sync.interval).",
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
        "Size (below 4GB) at which a new data file is begun.",
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
        "Share of dead keys in a file that starts a merge.",
    ),
    KeySpec::works(
        "bitcask.merge.triggers.dead_bytes",
        Kind::ByteSize,
        "512MB",
        "Bytes of dead values in a file that start a merge.",
    ),
    KeySpec::works(
        "bitcask.merge.thresholds.fragmentation",
        Kind::Percent,
        "40",
        "Share of dead keys from which a file takes part in a merge.",
    ),
    KeySpec::works(
        "bitcask.merge.thresholds.dead_bytes",
        Kind::ByteSize,
        "128MB",
        "Bytes of dead values from which a file takes part in a merge.",
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
        "What to add to UTC for the hours of the window.",
    ),
    KeySpec::own(
        "bitcask.merge.bytes_per_second",
        Kind::ByteSize,
        "20000000",
        "How much all merges together may read and write a second.",
    ),
    KeySpec::works(
        "bitcask.merge_check_interval",
        Kind::Duration,
        "3m",
        "Time between looks whether to merge; a store that is written to looks after every 8 MB, too.",
    ),
    KeySpec::works("bitcask.merge_check_jitter", Kind::Percent, "30%", "Share by which that time varies at random."),
    KeySpec::works("bitcask.max_merge_size", Kind::ByteSize, "100GB", "Bytes of the files that one merge takes."),
    KeySpec::own(
        "bitcask.max_open_files",
        Kind::Int(16, 1_000_000),
        "512",
        "Data files that are held open, over all partitions.",
    ),
    KeySpec::works("bitcask.expiry", Kind::DurationOr("off"), "off", "Age at which a value is gone."),
    KeySpec::works(
        "bitcask.expiry.grace_time",
        Kind::Duration,
        "0s",
        "How much longer an expired value may stay on disk before it alone starts a merge.",
    ),
    KeySpec::no_meaning(
        "bitcask.open_timeout",
        Kind::Duration,
        "4s",
        "How long opening a directory may take.",
        "a directory opens or fails without a time limit",
    ),
    KeySpec::no_meaning(
        "bitcask.fold.max_age",
        Kind::DurationOr("unlimited"),
        "unlimited",
        "Age of a view that a listing may share.",
        "every listing has a view of its own",
    ),
    KeySpec::no_meaning(
        "bitcask.fold.max_puts",
        Kind::Text,
        "0",
        "Writes that a shared view may lag behind.",
        "every listing has a view of its own",
    ),
    KeySpec::no_meaning(
        "bitcask.hintfile_checksums",
        Kind::Choice(&["strict", "allow_missing"]),
        "strict",
        "Whether hint files need checksums.",
        "hint files are always checked",
    ),
    KeySpec::no_meaning(
        "bitcask.io_mode",
        Kind::Choice(&["erlang", "nif"]),
        "erlang",
        "Which library does the I/O.",
        "there is one way of doing I/O here",
    ),
    KeySpec::own(
        "bitcask.compression",
        Kind::Choice(&["none", "lz4", "zstd"]),
        "none",
        "How values are compressed on disk. What was written with another setting stays readable.",
    ),
    KeySpec::own(
        "bitcask.compression.level",
        Kind::Int(1, 19),
        "1",
        "How hard bitcask.compression = zstd tries: 1 is fast, 19 is small.",
    ),
    KeySpec::own(
        "bitcask.compression.point",
        Kind::Choice(&["on_receipt", "on_compact"]),
        "on_receipt",
        "When values are compressed: when they are written, or when they are first merged.",
    ),
];
