//! The ids of users and groups.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which user or group of a name it is. Records have it as 16 hexadecimal digits, because not every
/// reader of JSON has integers of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RoleId(pub(crate) u64);

impl Serialize for RoleId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for RoleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = is_hex.then(|| u64::from_str_radix(&text, 16).ok()).flatten();
        id.map(Self).ok_or_else(|| serde::de::Error::custom("no id"))
    }
}
