//! The keys for objects: limits, deletes, and the properties of untyped buckets.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const NO_ERLANG: &str = "Ombak cannot run functions in Erlang";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "object.size.maximum",
        Kind::ByteSize,
        "50MB",
        "Largest size of an object, including all of its siblings.",
    ),
    KeySpec::works(
        "object.size.warning_threshold",
        Kind::ByteSize,
        "5MB",
        "Object size from which a write logs a warning.",
    ),
    KeySpec::works(
        "object.siblings.maximum",
        Kind::Int(1, 1_000_000),
        "100",
        "Largest number of siblings that an object may have.",
    ),
    KeySpec::works(
        "object.siblings.warning_threshold",
        Kind::Int(1, 1_000_000),
        "25",
        "Number of siblings from which a write logs a warning.",
    ),
    KeySpec::no_meaning(
        "object.format",
        Kind::Choice(&["0", "1"]),
        "1",
        "The format of stored objects.",
        "Ombak stores objects in its own format; an import reads both formats of Riak",
    ),
    KeySpec::no_meaning(
        "metadata.format",
        Kind::Choice(&["v0", "v1"]),
        "v0",
        "The format of stored metadata.",
        "Ombak stores objects in its own format",
    ),
    KeySpec::own(
        "delete_mode",
        Kind::DeleteMode,
        "3s",
        "When the tombstone of a deleted key is removed: keep (never), immediate, or after a time. Riak sets this in \
         advanced.config.",
    ),
    KeySpec::no_meaning(
        "tombstone_pause",
        Kind::Int(0, 3_600_000),
        "2",
        "Milliseconds between a delete and the check whether its tombstone can be removed.",
        "the delete itself makes this check",
    ),
    KeySpec::works(
        "buckets.default.n_val",
        Kind::Int(1, 1024),
        "3",
        "Number of replicas of an object. This and the other buckets.default keys are the properties of untyped \
         buckets.",
    ),
    KeySpec::works("buckets.default.r", Kind::Quorum, "quorum", "Number of replies that a get waits for."),
    KeySpec::works("buckets.default.w", Kind::Quorum, "quorum", "Number of acknowledgements that a put waits for."),
    KeySpec::works(
        "buckets.default.dw",
        Kind::Quorum,
        "quorum",
        "Number of acknowledgements of stored writes that a put waits for.",
    ),
    KeySpec::works("buckets.default.rw", Kind::Quorum, "quorum", "The value of r and w in a delete."),
    KeySpec::works(
        "buckets.default.pr",
        Kind::Quorum,
        "0",
        "Number of replies from primary replicas that a get waits for.",
    ),
    KeySpec::works(
        "buckets.default.pw",
        Kind::Quorum,
        "0",
        "Number of acknowledgements from primary replicas that a put waits for.",
    ),
    KeySpec::works("buckets.default.node_confirms", Kind::Quorum, "0", "Number of distinct nodes that must answer."),
    KeySpec::works("buckets.default.notfound_ok", Kind::Flag, "true", "Whether 'not found' counts towards r."),
    KeySpec::works(
        "buckets.default.basic_quorum",
        Kind::Flag,
        "false",
        "Whether a get ends as soon as a majority of the replicas has answered 'not found'.",
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
        "Whether a write replaces the stored object regardless of vector clocks.",
    ),
    KeySpec::works(
        "buckets.default.merge_strategy",
        Kind::Choice(&["1", "2"]),
        "1",
        "How concurrent writes are detected: 1 by vector clocks alone, 2 by dotted version vectors.",
    ),
    KeySpec::no_meaning(
        "buckets.default.precommit",
        Kind::Hooks,
        "",
        "Erlang functions to run before a put. A node with this key does not start: it would refuse each put. Hooks in \
         JavaScript are registered with 'ombak admin function'.",
        NO_ERLANG,
    ),
    KeySpec::no_meaning(
        "buckets.default.postcommit",
        Kind::Hooks,
        "",
        "Erlang functions to run after a put. Each put counts as a failed hook. Hooks in JavaScript are registered with \
         'ombak admin function'.",
        NO_ERLANG,
    ),
    KeySpec::no_meaning(
        "retry_put_coordinator_failure",
        Kind::Flag,
        "on",
        "Whether a put is tried again when its coordinator fails.",
        "a single node coordinates its own puts",
    ),
    KeySpec::no_meaning(
        "mbox_check_enabled",
        Kind::Flag,
        "on",
        "Whether busy partitions forward puts to other partitions.",
        "partitions have no mailboxes",
    ),
];
