//! Addresses that begin with the same bits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Addresses that begin with the same bits, as CIDR writes them: `10.0.0.0/8` or `fd00::/8`. The
/// bits after the first ones are zero.
///
/// An IPv4 address that is written as an IPv6 address (`::ffff:10.0.0.1`) counts as the IPv4
/// address, in ranges as well. No range has addresses of both kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    first: IpAddr,
    bits: u8,
}

impl AddressRange {
    /// The range of the addresses that have the first `bits` bits of `address`; `None` if an
    /// address has fewer bits.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let (address, bits) = match address {
            IpAddr::V6(v6) if bits >= 96 => match v6.to_ipv4_mapped() {
                Some(v4) => (IpAddr::V4(v4), bits.checked_sub(96)?),
                None => (address, bits),
            },
            _ => (address, bits),
        };
        let first = match address {
            IpAddr::V4(v4) if bits <= 32 => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask_v4(bits))),
            IpAddr::V6(v6) if bits <= 128 => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask_v6(bits))),
            _ => return None,
        };
        Some(Self { first, bits })
    }

    /// Whether an address is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(other)) => first.to_bits() == other.to_bits() & mask_v4(self.bits),
            (IpAddr::V6(first), IpAddr::V6(other)) => first.to_bits() == other.to_bits() & mask_v6(self.bits),
            _ => false,
        }
    }

    /// With how many same bits the addresses begin.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// The first address.
    pub fn first(&self) -> IpAddr {
        self.first
    }
}

fn mask_v4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0)
}

fn mask_v6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0)
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// A text is no range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadAddressRange;

impl fmt::Display for BadAddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an address, a slash and a number of bits are needed, such as 10.1.2.3/32 or fd00::/8 (at most 32 bits \
             for IPv4 and 128 for IPv6)",
        )
    }
}

impl std::error::Error for BadAddressRange {}

impl FromStr for AddressRange {
    type Err = BadAddressRange;

    fn from_str(text: &str) -> Result<Self, BadAddressRange> {
        let (address, bits) = text.split_once('/').ok_or(BadAddressRange)?;
        if !bits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BadAddressRange);
        }
        let (address, bits) = (address.parse().ok(), bits.parse().ok());
        address.zip(bits).and_then(|(address, bits)| Self::new(address, bits)).ok_or(BadAddressRange)
    }
}

impl Serialize for AddressRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AddressRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> AddressRange {
        text.parse().unwrap_or_else(|_| panic!("{text} is a range"))
    }

    fn has(range_text: &str, address: &str) -> bool {
        range(range_text).contains(address.parse().unwrap())
    }

    #[test]
    fn a_range_begins_at_its_first_address() {
        for (given, stored) in [
            ("192.168.1.77/24", "192.168.1.0/24"),
            ("1.2.3.4/0", "0.0.0.0/0"),
            ("1.2.3.4/32", "1.2.3.4/32"),
            ("::1/128", "::1/128"),
            ("2001:db8:ffff::1/33", "2001:db8:8000::/33"),
            ("ff::1/0", "::/0"),
            ("::ffff:10.9.8.7/104", "10.0.0.0/8"),
            ("::ffff:10.9.8.7/128", "10.9.8.7/32"),
        ] {
            assert_eq!(range(given).to_string(), stored);
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for bad in [
            "",
            "/",
            "bad",
            "10.1.2.3",
            "10.1.2.3/",
            "1.2.3.4/33",
            "::1/129",
            "1.2.3/8",
            "1.2.3.4/+8",
            "1.2.3.4/-1",
            "1.2.3.4/8/8",
            "1.2.3.4/ 8",
            "::ffff:1.2.3.4/129",
            "1.2.3.4/99999999999",
        ] {
            assert_eq!(bad.parse::<AddressRange>(), Err(BadAddressRange), "{bad}");
        }
    }

    #[test]
    fn addresses_are_in_their_ranges_only() {
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("10.0.0.0/8", "::ffff:10.1.1.1"), "an IPv4 address in the form of IPv6");
        assert!(has("0.0.0.0/0", "255.1.1.1") && !has("0.0.0.0/0", "::1") && !has("::/0", "1.1.1.1"));
        assert!(!has("::/0", "::ffff:1.1.1.1"), "it counts as an IPv4 address");
        assert!(has("fd00::/8", "fdff::1") && !has("fd00::/8", "fe00::1"));
        assert!(has("127.0.0.1/32", "127.0.0.1") && !has("127.0.0.1/32", "127.0.0.2"));
    }
}
