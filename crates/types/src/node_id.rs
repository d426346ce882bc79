//! The identity of a node.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// The identity of a node: a random number, drawn when its data directory is first started, and
/// never used again for another node. A node's name and addresses are attributes that can change;
/// its identity cannot.
///
/// Its text has 16 hexadecimal digits. JSON and other texts hold the text, because JSON readers
/// lose the low bits of large numbers. Binary formats hold the number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u64);

/// The error for a text that is not the identity of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the identity of a node has {} hexadecimal digits", NodeId::DIGITS)]
pub struct BadNodeId;

impl NodeId {
    /// The number of digits of the text.
    pub const DIGITS: usize = 16;

    /// The identity with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for NodeId {
    type Err = BadNodeId;

    fn from_str(text: &str) -> Result<Self, BadNodeId> {
        // `from_str_radix` alone would accept a sign.
        if text.len() != Self::DIGITS || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(BadNodeId);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| BadNodeId)
    }
}

impl Serialize for NodeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_u64(self.0) }
    }
}

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            u64::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn only_sixteen_hexadecimal_digits_are_an_identity() {
        assert_eq!(NodeId::new(0xabc).to_string(), "0000000000000abc");
        assert_eq!("0000000000000ABC".parse(), Ok(NodeId::new(0xabc)));
        for bad in ["", "abc", "+000000000000abc", "0000000000000abg", "00000000000000abc", "000000000000abç"] {
            assert_eq!(bad.parse::<NodeId>(), Err(BadNodeId), "{bad}");
        }
    }

    #[test]
    fn a_json_number_is_no_identity_because_readers_round_it() {
        assert!(serde_json::from_str::<NodeId>("2748").is_err());
        let said = serde_json::from_str::<NodeId>("\"abc\"").unwrap_err().to_string();
        assert!(said.contains("16 hexadecimal digits"), "{said}");
    }

    proptest! {
        #[test]
        fn an_identity_survives_text_and_json(number in any::<u64>()) {
            let id = NodeId::new(number);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            let names = BTreeMap::from([(id, "a name")]);
            let json = serde_json::to_string(&names).unwrap();
            prop_assert_eq!(serde_json::from_str::<BTreeMap<NodeId, &str>>(&json).unwrap(), names);
        }
    }
}
