//! What a node can do, as its handshakes tell it: so a later version can tell what an earlier one
//! lacks.

use crate::Feature;
use crate::services::registry;
use ombak_kv::replica::CoverageQuestion;
use ombak_peer::handshake::FIRST_WORDS;
use ombak_types::are_distinct_texts;
use std::collections::BTreeSet;

/// The node knows changes of the ring by steps (docs/design/ring-changes.md): the entries of the
/// metadata, the questions of the driver, and what a placement asks of requests.
pub const RING_CHANGES: &str = "ring-changes.1";

/// The node tells a new one whether its cluster knows a member with the name or the address of that
/// one.
pub const NEWCOMERS: &str = "newcomers.1";

/// What came after version 1 beside the features that all members must have ([`Feature::ALL`]). A
/// name is added together with the last part of what it stands for: other nodes believe it.
const LATER: [&str; 2] = [NEWCOMERS, FIRST_WORDS];

const COUNT: usize = Feature::ALL.len() + LATER.len();

/// The capabilities of features that are no service. Version 1 has none of them.
pub(crate) const FEATURES: &[&str] = &all_features();

const _: () = assert!(are_distinct_texts(FEATURES), "two features have one capability");

const fn all_features() -> [&'static str; COUNT] {
    let mut names = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        names[at] = match at < LATER.len() {
            true => LATER[at],
            false => Feature::ALL[at - LATER.len()].capability(),
        };
        at += 1;
    }
    names
}

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

/// The capabilities of a node: one for each service, such as `coverage.1`, those of the coverage
/// questions that came later, and one for each feature that needs both sides. Whoever needs one of
/// another node asks for its name (`ombak_peer::Peers::shares`). A feature that all members must
/// have is a [`crate::Feature`].
pub fn capabilities(speaks: Speaks) -> BTreeSet<String> {
    let services = registry::services(speaks).map(|service| service.capability);
    let later = FEATURES.iter().copied().chain(CoverageQuestion::capabilities());
    let later = later.filter(|_| speaks != Speaks::Version1);
    services.chain(later).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_peer::{CAPABILITIES_MAX, CAPABILITY_BYTES_MAX};

    fn said(speaks: Speaks) -> String {
        capabilities(speaks).into_iter().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_capability_fits_into_a_handshake() {
        let capabilities = capabilities(Speaks::Everything);
        assert!(capabilities.len() <= CAPABILITIES_MAX);
        assert!(capabilities.iter().all(|name| name.len() <= CAPABILITY_BYTES_MAX));
    }

    /// What a node of version 1 says. Nodes of that version say it, so it never changes.
    #[test]
    fn version_1_has_these_capabilities() {
        assert_eq!(
            said(Speaks::Version1),
            "coordinate.1 coverage.1 health-probe.1 members.1 membership.1 metadata.1 promise.1 reaping.1 \
             replica-read.1 replica-store.1 transfer.1"
        );
    }

    /// Nodes have said these names, so they stay. What a node of this version says beside them
    /// belongs to services and coverage questions.
    #[test]
    fn features_have_these_capabilities() {
        let said = capabilities(Speaks::Everything);
        for name in [
            "ring-changes.1",
            "locations.1",
            "data-types.2",
            "functions.1",
            "timeless-tombstones.1",
            "newcomers.1",
            "mapreduce.1",
            "holdings.1",
            "exchange.1",
            "first-words.1",
        ] {
            assert!(said.contains(name), "{name}");
        }
    }
}
