//! The keys of anti-entropy: exchanges between primaries, and what Riak has for its hash trees.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

const INT_MAX: i64 = i64::MAX;
const NO_TREES: &str = "exchanges compare sums that each write keeps up, and no hash trees";
const COMPARES_ALL: &str = "an exchange compares everything that differs";
const PRIMARIES: &str = "exchanges are always between primaries";

pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::works(
        "anti_entropy",
        Kind::Choice(&["active", "passive", "active-debug"]),
        "active",
        "Whether the node compares what it holds with the other primaries in the background, \
         and repairs what differs. \
         passive: the node begins no comparison, unless tictacaae_active is active. It answers those of other nodes in \
         any case. active-debug is the same as active.",
    ),
    KeySpec::own(
        "exchange.interval",
        Kind::Duration,
        "",
        "In this time each partition is compared once with each other primary, in each direction. Two nodes that hold \
         the same send each other about a hundred bytes for that. Less than a second counts as a second. Without a \
         value, tictacaae_exchangetick decides.",
    ),
    KeySpec::own(
        "exchange.bytes_per_second",
        Kind::ByteSize,
        "4MB",
        "Maximum of the bytes of sums and lists that this node's exchanges send and ask for in a second; 0: no limit. \
         What is repaired counts towards handoff.bytes_per_second.",
    ),
    KeySpec::no_meaning(
        "aae_tokenbucket",
        Kind::Flag,
        "enabled",
        "Whether updates of the anti-entropy trees are throttled.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "anti_entropy.tree.build_limit.number",
        Kind::Int(0, INT_MAX),
        "1",
        "Number of hash trees that may be built in the time span of anti_entropy.tree.build_limit.per_timespan.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "anti_entropy.tree.build_limit.per_timespan",
        Kind::Duration,
        "1h",
        "The time span for anti_entropy.tree.build_limit.number.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "anti_entropy.tree.expiry",
        Kind::DurationOr("never"),
        "1w",
        "Age at which a hash tree is rebuilt.",
        NO_TREES,
    ),
    KeySpec::works(
        "anti_entropy.concurrency_limit",
        Kind::Int(1, 64),
        "2",
        "Number of exchanges that the node runs at the same time.",
    ),
    KeySpec::no_meaning("anti_entropy.trigger_interval", Kind::Duration, "15s", "Time between exchanges.", NO_TREES),
    KeySpec::no_meaning(
        "anti_entropy.data_dir",
        Kind::Path,
        "$(platform_data_dir)/anti_entropy",
        "The directory of the hash trees.",
        "kept trees are saved in the directory trees below platform_data_dir",
    ),
    KeySpec::no_meaning(
        "anti_entropy.throttle.$tier.mailbox_size",
        Kind::Int(0, INT_MAX),
        "",
        "Mailbox length from which this tier of the throttle applies.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "anti_entropy.throttle.$tier.delay",
        Kind::Duration,
        "",
        "Delay of this tier of the throttle.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "anti_entropy.**",
        Kind::Text,
        "",
        "Further settings of the older anti-entropy system.",
        NO_TREES,
    ),
    KeySpec::works(
        "tictacaae_active",
        Kind::Choice(&["active", "passive"]),
        "",
        "active: the node compares what it holds with the other primaries, also where anti_entropy is passive, as in \
         clusters of Riak that use the newer of its two systems, and keeps the trees of all n_vals. passive: anti-entropy \
         folds find nothing, as in Riak. Without this setting, folds work, a node keeps the trees of an n_val for a day \
         after a fold has asked for them, and anti_entropy decides about comparisons.",
    ),
    KeySpec::no_meaning(
        "tictacaae_dataroot",
        Kind::Path,
        "$(platform_data_dir)/tictac_aae",
        "The directory of the hash trees.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "tictacaae_parallelstore",
        Kind::Choice(&["leveled_ko", "leveled_so"]),
        "leveled_ko",
        "The kind of key store that is kept in parallel to a backend that cannot serve as one.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "tictacaae_storeheads",
        Kind::Flag,
        "disabled",
        "Whether the parallel key store also holds object metadata.",
        NO_TREES,
    ),
    KeySpec::works(
        "tictacaae_rebuildwait",
        Kind::Int(0, INT_MAX),
        "336",
        "Hours after which a kept tree is made anew, and compared with the one that it replaces.",
    ),
    KeySpec::works(
        "tictacaae_rebuilddelay",
        Kind::Int(0, INT_MAX),
        "345600",
        "Seconds over which these rebuilds are spread.",
    ),
    KeySpec::own(
        "kept_trees.memory",
        Kind::ByteSize,
        "512MB",
        "The most memory that kept trees take, about 4 MB for each partition and n_val. Where a tree has no room, folds \
         for it read the heads of all objects.",
    ),
    KeySpec::no_meaning(
        "tictacaae_rebuildtick",
        Kind::Int(0, INT_MAX),
        "3600000",
        "Milliseconds between checks whether a rebuild is due.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "tictacaae_rebuild_blocktime",
        Kind::Int(0, INT_MAX),
        "1000",
        "Milliseconds for which a rebuild may block a partition.",
        NO_TREES,
    ),
    KeySpec::works(
        "tictacaae_exchangetick",
        Kind::Int(0, INT_MAX),
        "480000",
        "Milliseconds in which each partition is compared once with each other primary, if exchange.interval has no \
         value.",
    ),
    KeySpec::no_meaning(
        "tictacaae_maxresults",
        Kind::Int(0, INT_MAX),
        "64",
        "Number of tree segments that one exchange compares.",
        COMPARES_ALL,
    ),
    KeySpec::no_meaning(
        "tictacaae_repairloops",
        Kind::Int(0, INT_MAX),
        "4",
        "Number of exchanges in a row after a difference was found.",
        COMPARES_ALL,
    ),
    KeySpec::no_meaning(
        "tictacaae_rangeboost",
        Kind::Int(0, INT_MAX),
        "2",
        "Factor by which an exchange of a range compares more segments.",
        COMPARES_ALL,
    ),
    KeySpec::no_meaning(
        "tictacaae_primaryonly",
        Kind::Flag,
        "on",
        "Whether only primary replicas are compared.",
        PRIMARIES,
    ),
    KeySpec::no_meaning(
        "tictacaae_backendcompression",
        Kind::Text,
        "native",
        "How the parallel key store compresses its data.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "tictacaae_backendloglevel",
        Kind::Text,
        "info",
        "The level of the parallel key store's log messages.",
        NO_TREES,
    ),
    KeySpec::no_meaning(
        "legacyformat_tictacaae_tree",
        Kind::Flag,
        "disabled",
        "Whether hash trees have the format of Riak 2.9.",
        "Ombak has no hash trees in that format",
    ),
    KeySpec::no_meaning(
        "aae_fetchclocks_repair",
        Kind::Flag,
        "disabled",
        "Whether a comparison of vector clocks repairs the hash trees.",
        NO_TREES,
    ),
];
