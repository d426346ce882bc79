//! The numbers of the services that nodes have for each other. A number is never used for something
//! else later.

/// Reads of one key at a replica.
pub const REPLICA_READ: u16 = 1;
/// Stores of one version at a replica.
pub const REPLICA_STORE: u16 = 2;
/// Puts that the receiver coordinates.
pub const COORDINATE: u16 = 3;
/// Messages of the metadata's Raft group.
pub const METADATA: u16 = 4;
/// Failure detection.
pub const MEMBERSHIP: u16 = 5;
/// Joining, leaving and the checks before a change of the ring.
pub const MEMBERS: u16 = 6;
/// Comparisons and pushes of copies between replicas.
pub const TRANSFER: u16 = 7;
/// Parts of listings and index queries.
pub const COVERAGE: u16 = 8;
/// Rounds of reaping.
pub const REAPING: u16 = 9;
/// Whether a node answers requests at all.
pub const HEALTH_PROBE: u16 = 10;
/// Questions of conditional puts before they write.
pub const PROMISE: u16 = 11;

/// Parts of MapReduce jobs.
pub const JOB_PART: u16 = 12;
/// What a node holds for one that goes on after a pause.
pub const HOLDINGS: u16 = 13;

/// The services of version 1 by their numbers. The names are part of the capabilities of a node.
pub const ALL: [(u16, &str); 11] = [
    (REPLICA_READ, "replica-read"),
    (REPLICA_STORE, "replica-store"),
    (COORDINATE, "coordinate"),
    (METADATA, "metadata"),
    (MEMBERSHIP, "membership"),
    (MEMBERS, "members"),
    (TRANSFER, "transfer"),
    (COVERAGE, "coverage"),
    (REAPING, "reaping"),
    (HEALTH_PROBE, "health-probe"),
    (PROMISE, "promise"),
];

/// The services that came later. A node that has one says so with a capability of that feature.
pub const LATER: [u16; 2] = [JOB_PART, HOLDINGS];
