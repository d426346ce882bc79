//! The services of a node. A service appears here once. Two services with one number or one
//! capability do not compile, and neither do two kinds of messages with one name.

use super::context::NodeContext;
use super::gate::Gates;
use super::message_kind::MessageKind;
use super::node_service::{NodeService, Opened, Server, Since};
use crate::capabilities::{FEATURES, Speaks};
use crate::member::MemberContext;
use crate::{coverage, exchange, failure_detection, jobs, member, metadata, replica, waking};
use ombak_peer::Services;
use ombak_peer::connection::TwoServices;
use ombak_types::{are_distinct_numbers, are_distinct_texts, place_of_text};

/// All services.
const SERVICES: &[NodeService] = &[
    replica::READ,
    replica::STORE,
    replica::COORDINATE,
    metadata::METADATA,
    failure_detection::PACKETS,
    member::MEMBERS,
    replica::TRANSFER,
    coverage::COVERAGE,
    replica::REAPING,
    failure_detection::PROBES,
    replica::PROMISE,
    jobs::PARTS,
    waking::HOLDINGS,
    exchange::EXCHANGES,
    replica::REAP_ORDERS,
];

const _: () = check::<{ SERVICES.len() }>(SERVICES, FEATURES);

/// Fails to compile if two services have one number or one capability, or if a feature has the
/// capability of a service. `N` is the number of services.
const fn check<const N: usize>(services: &[NodeService], features: &[&str]) {
    let (mut numbers, mut capabilities, mut at) = ([0; N], [""; N], 0);
    while at < N {
        (numbers[at], capabilities[at]) = (services[at].number, services[at].capability);
        let is_of_feature = place_of_text(capabilities[at], features) < features.len();
        assert!(!is_of_feature, "a feature has the capability of a service");
        at += 1;
    }
    assert!(are_distinct_numbers(&numbers), "two services have one number");
    assert!(are_distinct_texts(&capabilities), "two services have one capability");
}

const _: () = check_messages::<{ message_count(SERVICES) }>(SERVICES);

/// Fails to compile if two kinds of messages have one name. `N` is the number of kinds of messages.
const fn check_messages<const N: usize>(services: &[NodeService]) {
    let (mut names, mut count, mut at) = ([""; N], 0, 0);
    while at < services.len() {
        let mut kind = 0;
        while kind < services[at].messages.len() {
            names[count] = services[at].messages[kind].name;
            (count, kind) = (count + 1, kind + 1);
        }
        at += 1;
    }
    assert!(are_distinct_texts(&names), "two kinds of messages have one name");
}

/// The number of kinds of messages.
const fn message_count(services: &[NodeService]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < services.len() {
        count += services[at].messages.len();
        at += 1;
    }
    count
}

/// The services of a node that speaks this.
pub(crate) fn services(speaks: Speaks) -> impl Iterator<Item = &'static NodeService> {
    SERVICES.iter().filter(move |service| match service.since {
        Since::Version1 => true,
        Since::Later => speaks != Speaks::Version1,
    })
}

/// All kinds of messages of all services.
pub(crate) fn messages() -> impl Iterator<Item = &'static MessageKind> {
    SERVICES.iter().flat_map(|service| service.messages)
}

/// Opens the services that every node has.
pub(crate) fn open_of_node(context: &NodeContext, speaks: Speaks, into: &mut Services) -> Result<Gates, TwoServices> {
    let mut gates = Gates::default();
    for service in services(speaks) {
        if let Server::OfNode(open) = service.server {
            let Opened { service: server, gate } = open(context);
            into.register(service.number, service.title, server)?;
            gate.into_iter().for_each(|gate| gates.add(gate));
        }
    }
    Ok(gates)
}

/// Opens the services that members have.
pub(crate) fn open_of_member(context: &MemberContext, speaks: Speaks, into: &mut Services) -> Result<(), TwoServices> {
    for service in services(speaks) {
        if let Server::OfMember(open) = service.server {
            into.register(service.number, service.title, open(context).service)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn refuses(change: impl FnOnce(&mut NodeService)) -> bool {
        let mut other = NodeService { number: 60_000, capability: "another-service.1", ..waking::HOLDINGS };
        change(&mut other);
        std::panic::catch_unwind(|| check::<2>(&[waking::HOLDINGS, other], FEATURES)).is_err()
    }

    #[test]
    fn what_two_services_must_not_share_is_refused() {
        assert!(!refuses(|_| {}));
        assert!(refuses(|other| other.number = waking::HOLDINGS.number));
        assert!(refuses(|other| other.capability = waking::HOLDINGS.capability));
        assert!(refuses(|other| other.capability = FEATURES[0]));
    }

    /// Other nodes know services by these numbers and capabilities, so they never change. What is
    /// added to the services is added here.
    #[test]
    fn services_have_the_numbers_that_other_nodes_know() {
        let mut known: Vec<_> = SERVICES.iter().map(|service| (service.number, service.capability)).collect();
        known.sort_unstable();
        let expected = [
            (1, "replica-read.1"),
            (2, "replica-store.1"),
            (3, "coordinate.1"),
            (4, "metadata.1"),
            (5, "membership.1"),
            (6, "members.1"),
            (7, "transfer.1"),
            (8, "coverage.1"),
            (9, "reaping.1"),
            (10, "health-probe.1"),
            (11, "promise.1"),
            (12, "mapreduce.1"),
            (13, "holdings.1"),
            (14, "exchange.1"),
            (15, "reap-orders.1"),
        ];
        assert_eq!(known, expected);
    }

    #[test]
    fn a_kind_of_message_belongs_to_one_service() {
        const TWICE: &[NodeService] = &[waking::HOLDINGS, waking::HOLDINGS];
        const ONCE: &[NodeService] = &[waking::HOLDINGS, coverage::COVERAGE];
        assert!(std::panic::catch_unwind(|| check_messages::<{ message_count(TWICE) }>(TWICE)).is_err());
        assert!(std::panic::catch_unwind(|| check_messages::<{ message_count(ONCE) }>(ONCE)).is_ok());
    }

    #[test]
    fn titles_tell_services_apart() {
        let titles: BTreeSet<&str> = SERVICES.iter().map(|service| service.title).collect();
        assert_eq!(titles.len(), SERVICES.len());
    }
}
