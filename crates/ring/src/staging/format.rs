//! The version of a stored form.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The version of a stored form, as a field of it. Reading fails if the stored number is another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format<const VERSION: u32>;

impl<const VERSION: u32> Serialize for Format<VERSION> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(VERSION)
    }
}

impl<'de, const VERSION: u32> Deserialize<'de> for Format<VERSION> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            found if found == VERSION => Ok(Self),
            found => Err(D::Error::custom(format!("format {found} is not known; this version reads format {VERSION}"))),
        }
    }
}
