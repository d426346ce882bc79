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

/// The capabilities of this version of the program: one for each service, such as `coverage.1`, and
/// one for each feature that needs both sides and came later. Whoever needs such a feature asks for
/// its name (`ombak_peer::Peers::shares`).
pub fn capabilities() -> BTreeSet<String> {
    let services = service_numbers::ALL.iter().map(|(_, name)| format!("{name}.{VERSION}"));
    services.chain([RING_CHANGES.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_peer::{CAPABILITIES_MAX, CAPABILITY_BYTES_MAX};

    #[test]
    fn every_service_has_a_capability_of_its_own_that_fits_into_a_handshake() {
        let numbers = include_str!("service_numbers.rs").matches(": u16 =").count();
        let capabilities = capabilities();
        assert_eq!((service_numbers::ALL.len(), capabilities.len()), (numbers, numbers + 1));
        let distinct: BTreeSet<u16> = service_numbers::ALL.iter().map(|(number, _)| *number).collect();
        assert_eq!(distinct.len(), numbers);
        assert!(numbers <= CAPABILITIES_MAX);
        assert!(capabilities.iter().all(|name| name.len() <= CAPABILITY_BYTES_MAX));
    }
}
