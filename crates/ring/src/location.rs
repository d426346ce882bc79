//! Where a node is.

use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The name of a place whose nodes may fail together: a rack, a room, a zone.
///
/// A name has 1 to 63 bytes of UTF-8 and no control character. It lies in the value itself, so a
/// location can be copied like a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Location {
    /// The name, and zeros after it. So the order of locations is that of their names.
    bytes: [u8; Self::BYTES_MAX],
    length: u8,
}

/// The locations of nodes. A node that is missing here is at an unknown location.
pub type Locations = BTreeMap<NodeId, Location>;

/// Why a text is no name of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLocation {
    /// It is empty.
    #[error("the name of a location must not be empty")]
    Empty,
    /// It is too long.
    #[error("the name of a location has at most {} bytes", Location::BYTES_MAX)]
    TooLong,
    /// It would spoil what commands print.
    #[error("the name of a location must not have control characters")]
    ControlCharacter,
}

impl Location {
    /// The longest name.
    pub const BYTES_MAX: usize = 63;

    /// The name.
    pub fn as_str(&self) -> &str {
        let name = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        // The bytes came from a text.
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl FromStr for Location {
    type Err = BadLocation;

    fn from_str(name: &str) -> Result<Self, BadLocation> {
        if name.is_empty() {
            return Err(BadLocation::Empty);
        }
        if name.chars().any(char::is_control) {
            return Err(BadLocation::ControlCharacter);
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes.get_mut(..name.len()).ok_or(BadLocation::TooLong)?.copy_from_slice(name.as_bytes());
        Ok(Self { bytes, length: name.len() as u8 })
    }
}

impl TryFrom<String> for Location {
    type Error = BadLocation;

    fn try_from(name: String) -> Result<Self, BadLocation> {
        name.parse()
    }
}

impl From<Location> for String {
    fn from(location: Location) -> Self {
        location.as_str().to_owned()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_short_name() {
        let rack: Location = "Gestell ä".parse().unwrap();
        assert_eq!((rack.as_str(), rack.to_string()), ("Gestell ä", "Gestell ä".to_owned()));
        let text = serde_json::to_string(&rack).unwrap();
        assert_eq!((text.as_str(), serde_json::from_str::<Location>(&text).unwrap()), ("\"Gestell ä\"", rack));
        assert_eq!("x".repeat(63).parse::<Location>().unwrap().as_str().len(), 63);
        assert_eq!("x".repeat(64).parse::<Location>(), Err(BadLocation::TooLong));
        assert_eq!("".parse::<Location>(), Err(BadLocation::Empty));
        assert_eq!("a\nb".parse::<Location>(), Err(BadLocation::ControlCharacter));
        assert!(serde_json::from_str::<Location>("\"\"").is_err());
    }

    #[test]
    fn locations_have_the_order_of_their_names() {
        let mut locations: Vec<Location> = ["b", "aa", "a", "ab"].iter().map(|name| name.parse().unwrap()).collect();
        locations.sort_unstable();
        assert_eq!(locations.iter().map(Location::as_str).collect::<Vec<_>>(), ["a", "aa", "ab", "b"]);
    }
}
