//! Records as text.

use crate::bounds::RECORD_BYTES_MAX;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of all records that this version writes, and the only one that it reads.
pub(crate) const VERSION: u32 = 1;

/// Why a record cannot be read. It has no part of the value, which can have a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A later version has written it.
    Later,
    /// It is damaged.
    Damaged(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later => f.write_str("a later version has written it"),
            Self::Damaged(why) => f.write_str(why),
        }
    }
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// A record as text. It is JSON with the member `version`.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// Checks what the form alone does not say: bounds, and that nothing is there twice.
    fn check(&self) -> Result<(), String>;

    /// Reads a record.
    fn read(value: &str) -> Result<Self, Unreadable> {
        if value.len() > RECORD_BYTES_MAX {
            return Err(Unreadable::Damaged(format!("it has more than {RECORD_BYTES_MAX} bytes")));
        }
        let versioned: Versioned = serde_json::from_str(value).map_err(|why| bad_json(&why))?;
        match versioned.version {
            VERSION => {}
            0 => return Err(Unreadable::Damaged("there is no version 0".to_owned())),
            _ => return Err(Unreadable::Later),
        }
        let record: Self = serde_json::from_str(value).map_err(|why| bad_json(&why))?;
        record.check().map_err(Unreadable::Damaged)?;
        Ok(record)
    }

    /// The text of the record, if it keeps within the bounds. The error says what does not.
    fn text(&self) -> Result<String, String> {
        self.check()?;
        let text = serde_json::to_string(self).map_err(|why| why.to_string())?;
        if text.len() > RECORD_BYTES_MAX {
            return Err(format!("the record would have {} bytes, and can have {RECORD_BYTES_MAX}", text.len()));
        }
        Ok(text)
    }
}

/// The messages of the parser quote what they find, so only the place is passed on.
fn bad_json(why: &serde_json::Error) -> Unreadable {
    Unreadable::Damaged(format!(
        "it is not what version {VERSION} has, at line {}, column {}",
        why.line(),
        why.column()
    ))
}
