//! Which users have logged in from where.

use super::client_network::ClientNetwork;
use std::collections::{HashMap, VecDeque};

/// How many users are kept. There can be no more at a time; those that were deleted may be among
/// them.
const USERS_MAX: usize = 10_000;
/// How many networks of a user are kept, so that one user cannot displace the others.
const NETWORKS_MAX: usize = 32;

/// Which users have logged in from where. Their next checks have a share of their own.
#[derive(Debug, Default)]
pub(super) struct ProvenPairs {
    /// The last network is the one that was used last.
    networks: HashMap<Box<str>, VecDeque<ClientNetwork>>,
}

impl ProvenPairs {
    /// Whether a user has logged in from a network.
    pub(super) fn has(&self, user: &str, network: ClientNetwork) -> bool {
        self.networks.get(user).is_some_and(|networks| networks.contains(&network))
    }

    /// A user has logged in from a network.
    pub(super) fn note(&mut self, user: &str, network: ClientNetwork) {
        if !self.networks.contains_key(user) {
            if self.networks.len() >= USERS_MAX
                && let Some(other) = self.networks.keys().next().cloned()
            {
                self.networks.remove(&other);
            }
            self.networks.insert(user.into(), VecDeque::new());
        }
        let Some(networks) = self.networks.get_mut(user) else { return };
        if networks.back() == Some(&network) {
            return;
        }
        networks.retain(|other| *other != network);
        if networks.len() >= NETWORKS_MAX {
            networks.pop_front();
        }
        networks.push_back(network);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn network(number: u32) -> ClientNetwork {
        ClientNetwork::of(Ipv4Addr::from_bits(number).into())
    }

    #[test]
    fn a_pair_is_proven_until_its_user_has_come_from_many_other_places() {
        let mut pairs = ProvenPairs::default();
        pairs.note("alice", network(0));
        assert!(pairs.has("alice", network(0)) && !pairs.has("bob", network(0)));
        for number in 1..1000 {
            pairs.note("bob", network(number));
            pairs.note("bob", network(0));
        }
        assert!(pairs.has("alice", network(0)) && pairs.has("bob", network(0)));
        assert_eq!(pairs.networks["bob"].len(), NETWORKS_MAX);
        for number in 0..2 * USERS_MAX {
            pairs.note(&number.to_string(), network(0));
        }
        assert_eq!(pairs.networks.len(), USERS_MAX);
    }
}
