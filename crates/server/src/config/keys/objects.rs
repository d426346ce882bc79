//! The keys for objects: limits, deletes, and the properties of untyped buckets.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "object.size.maximum",
        Kind::ByteSize,
        "50MB",
        "The largest object that is stored, all siblings together.",
    ),
    KeySpec::works("object.size.warning_threshold", Kind::ByteSize, "5MB", "Size from which a write is logged."),
    KeySpec::works(
        "object.siblings.maximum",
        Kind::Int(1, 1_000_000),
        "100",
        "The most siblings that an object may have.",
    ),
    KeySpec::works(
        "object.siblings.warning_threshold",
        Kind::Int(1, 1_000_000),
        "25",
        "Number of siblings from which a write is logged.",
    ),
    KeySpec::no_meaning(
        "object.format",
        Kind::Choice(&["0", "1"]),
        "1",
        "The form of stored objects.",
        "stored objects have a form of Ombak's own; Riak's both forms are read on import",
    ),
    KeySpec::no_meaning(
        "metadata.format",
        Kind::Choice(&["v0", "v1"]),
        "v0",
        "The form of stored metadata.",
        "stored objects have a form of Ombak's own",
    ),
    KeySpec::own(
        "delete_mode",
        Kind::DeleteMode,
        "3s",
        "When the tombstone of a deleted key is removed: keep (never), immediate, or after a time. In Riak this is set \
         in advanced.config.",
    ),
    KeySpec::no_meaning(
        "tombstone_pause",
        Kind::Int(0, 3_600_000),
        "2",
        "Milliseconds between a delete and the check whether its tombstone can go.",
        "the check comes with the delete itself",
    ),
    KeySpec::works("buckets.default.n_val", Kind::Int(1, 1024), "3", "Copies of an object in an untyped bucket."),
    KeySpec::works("buckets.default.r", Kind::Quorum, "quorum", "Replies that a get waits for."),
    KeySpec::works("buckets.default.w", Kind::Quorum, "quorum", "Acknowledgements that a put waits for."),
    KeySpec::works(
        "buckets.default.dw",
        Kind::Quorum,
        "quorum",
        "Acknowledgements after the write to the store that a put waits for.",
    ),
    KeySpec::works("buckets.default.rw", Kind::Quorum, "quorum", "Stands in for r and w in a delete."),
    KeySpec::works("buckets.default.pr", Kind::Quorum, "0", "Replies from primaries that a get waits for."),
    KeySpec::works("buckets.default.pw", Kind::Quorum, "0", "Acknowledgements from primaries that a put waits for."),
    KeySpec::works("buckets.default.node_confirms", Kind::Quorum, "0", "Distinct nodes that have to answer."),
    KeySpec::works("buckets.default.notfound_ok", Kind::Flag, "true", "Whether 'not found' counts towards r."),
    KeySpec::works(
        "buckets.default.basic_quorum",
        Kind::Flag,
        "false",
        "Whether a get gives up after a majority of 'not found'.",
    ),
    KeySpec::works(
        "buckets.default.allow_mult",
        Kind::Flag,
        "false",
        "Whether concurrent writes are kept as siblings.",
    ),
    KeySpec::works(
        "buckets.default.last_write_wins",
        Kind::Flag,
        "false",
        "Whether a write replaces whatever is there.",
    ),
    KeySpec::works(
        "buckets.default.merge_strategy",
        Kind::Choice(&["1", "2"]),
        "1",
        "How siblings are told apart: 1 by vector clock alone, 2 by dotted version vectors.",
    ),
    KeySpec::works(
        "buckets.default.precommit",
        Kind::Hooks,
        "",
        "Erlang functions to run before a put. There is no Erlang here: a bucket that names one refuses its puts.",
    ),
    KeySpec::works(
        "buckets.default.postcommit",
        Kind::Hooks,
        "",
        "Erlang functions to run after a put. There is no Erlang here: each put is counted as a failed hook.",
    ),
    KeySpec::no_meaning(
        "retry_put_coordinator_failure",
        Kind::Flag,
        "on",
        "Whether a put is tried again when its coordinator fails.",
        "one node coordinates its own puts",
    ),
    KeySpec::no_meaning(
        "mbox_check_enabled",
        Kind::Flag,
        "on",
        "Whether busy partitions hand puts on.",
        "partitions have no mailboxes here",
    ),
];
