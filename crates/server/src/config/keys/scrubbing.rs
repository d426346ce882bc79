//! Keys of scrubbing.

use super::super::key_spec::KeySpec;
use super::super::value::Kind;

/// The keys of this family.
pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::own(
        "scrub.enabled",
        Kind::Flag,
        "on",
        "Whether the node reads and checks what lies on its disks although nobody asks for it, so that damage is found \
         while other nodes still have the data. Damaged versions are repaired from them, and nothing is ever removed. \
         'ombak admin scrub' shows how far it has come.",
    ),
    KeySpec::own(
        "scrub.interval",
        Kind::Duration,
        "30d",
        "How long a round of scrubbing over everything on the node takes. The rate follows from that and from the size \
         of the stores, and is never below 64 KB a second. Less than a minute counts as a minute.",
    ),
    KeySpec::own(
        "scrub.bytes_per_second_max",
        Kind::ByteSize,
        "20MB",
        "Maximum of the bytes that scrubbing reads in a second, also in a round that an operator has begun; 0: no limit.",
    ),
];
