//! 64-bit numbers as hexadecimal text, because JSON readers lose the low bits of large numbers. For
//! `#[serde(with = "hex")]`.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes 16 hexadecimal digits.
pub fn serialize<S: Serializer>(n: &u64, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&format!("{n:016x}"))
}

/// Reads hexadecimal digits.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    u64::from_str_radix(&String::deserialize(d)?, 16).map_err(D::Error::custom)
}
