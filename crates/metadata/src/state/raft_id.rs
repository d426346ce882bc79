//! The identity of a log, under which a node takes part in votes.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;

/// The identity of a metadata log: a random number that is stored with the log. A node takes part
/// under the identity of its log, not under its own: if the log is lost or an older copy of it
/// returns, the node begins a new log and cannot break a promise that the old one gave
/// (docs/design/replication.md §8). It is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RaftId(u64);

impl RaftId {
    /// The identity with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for RaftId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for RaftId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for RaftId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RaftId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_ours = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| is_ours);
        number.map(Self).ok_or_else(|| D::Error::custom("the identity of a log has 16 hexadecimal digits"))
    }
}
