//! Which addresses count as one client.

use std::net::{IpAddr, Ipv6Addr};

/// The addresses that count as one client: an address of IPv4, or the 64 bits of an address of IPv6
/// that a site gives to a network. Within these a single machine can have any address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientNetwork(IpAddr);

impl ClientNetwork {
    /// The network of an address.
    pub(super) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
            address => address,
        })
    }

    /// The bytes that stand for it.
    pub(super) fn bytes(self) -> [u8; 16] {
        match self.0 {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_client() {
        let of = |text: &str| ClientNetwork::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:10.1.2.3"), of("10.1.2.3"));
        assert_ne!(of("10.1.2.3"), of("10.1.2.4"));
        assert_ne!(of("10.1.2.3").bytes(), of("10.1.2.4").bytes());
    }
}
