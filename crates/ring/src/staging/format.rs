//! The version of a stored form.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The version of a stored form, as a field of it. The reader knows all versions up to the last
/// one. Reading fails if the stored number is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatUpTo<const LAST: u32>(pub u32);

impl<const LAST: u32> Serialize for FormatUpTo<LAST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de, const LAST: u32> Deserialize<'de> for FormatUpTo<LAST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            known if (1..=LAST).contains(&known) => Ok(Self(known)),
            other => Err(D::Error::custom(format!(
                "format {other} is not known; this version reads the formats 1 to {LAST}"
            ))),
        }
    }
}
