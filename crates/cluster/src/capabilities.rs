//! What a node can do, as its handshakes tell it: so a later version can tell what an earlier one
//! lacks.

use crate::service_numbers;
use std::collections::BTreeSet;

/// The version of the messages of all services. A service whose messages change in a way that an
/// earlier version does not understand gets a capability with a higher number, beside this one.
const VERSION: u32 = 1;

/// The node knows changes of the ring by steps (docs/design/ring-changes.md): the entries of the
/// metadata, the questions of the driver, and what a placement asks of requests.
pub const RING_CHANGES: &str = "ring-changes.1";

/// The node knows locations of members: those of the metadata, and staged changes and plans that
/// have some.
pub const LOCATIONS: &str = "locations.1";

/// The node knows values of data types, and puts that are operations on them
/// (docs/design/datatypes.md). Programs of a short time before the first release said 1: they
/// know no additions to values.
pub const DATA_TYPES: &str = "data-types.2";

/// The node knows registered functions in the metadata.
pub const FUNCTIONS: &str = "functions.1";

/// The node takes the time from a tombstone before it removes it, and lets a newer tombstone hide a
/// value in a bucket without siblings (docs/design/replication.md §6).
pub const TIMELESS_TOMBSTONES: &str = "timeless-tombstones.1";

/// The node works on parts of MapReduce jobs for others.
pub const MAPREDUCE: &str = "mapreduce.1";

/// The node says what it holds for a node that goes on after a pause.
pub const HOLDINGS_TOLD: &str = "holdings.1";

/// The node tells a new one whether its cluster knows a member with the name or the address of that
/// one.
pub const NEWCOMERS: &str = "newcomers.1";

/// What came after version 1. A name is added together with the last part of what it stands for:
/// other nodes believe it.
const LATER: &[&str] =
    &[RING_CHANGES, LOCATIONS, DATA_TYPES, MAPREDUCE, FUNCTIONS, HOLDINGS_TOLD, TIMELESS_TOMBSTONES, NEWCOMERS];

/// What a node speaks with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speaks {
    /// What the first program spoke that had clusters. Tests have such nodes in a cluster with
    /// newer ones.
    Version1,
    /// All that this program knows.
    #[default]
    Everything,
}

/// The capabilities of a node: one for each service, such as `coverage.1`, and one for each feature
/// that needs both sides and came later. Whoever needs such a feature of one node asks for its name
/// (`ombak_peer::Peers::shares`). A feature that all members must have is a [`crate::Feature`].
pub fn capabilities(speaks: Speaks) -> BTreeSet<String> {
    let services = service_numbers::ALL.iter().map(|(_, name)| format!("{name}.{VERSION}"));
    let later = LATER.iter().filter(|_| speaks == Speaks::Everything).map(|name| (*name).to_owned());
    services.chain(later).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_peer::{CAPABILITIES_MAX, CAPABILITY_BYTES_MAX};

    #[test]
    fn every_service_has_a_capability_of_its_own_that_fits_into_a_handshake() {
        let numbers = include_str!("service_numbers.rs").matches(": u16 =").count();
        let capabilities = capabilities(Speaks::Everything);
        let (first, later) = (service_numbers::ALL.len(), service_numbers::LATER.len());
        assert_eq!((first + later, capabilities.len()), (numbers, first + LATER.len()));
        let of_version_1 = service_numbers::ALL.iter().map(|(number, _)| *number);
        let distinct: BTreeSet<u16> = of_version_1.chain(service_numbers::LATER).collect();
        assert_eq!(distinct.len(), numbers);
        assert!(capabilities.len() <= CAPABILITIES_MAX);
        assert!(capabilities.iter().all(|name| name.len() <= CAPABILITY_BYTES_MAX));
    }

    /// What a node of version 1 says. Nodes of that version say it, so it never changes.
    #[test]
    fn version_1_has_these_capabilities() {
        let said = capabilities(Speaks::Version1).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(
            said,
            "coordinate.1 coverage.1 health-probe.1 members.1 membership.1 metadata.1 promise.1 reaping.1 \
             replica-read.1 replica-store.1 transfer.1"
        );
    }
}
