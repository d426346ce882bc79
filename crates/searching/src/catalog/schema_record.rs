//! The record of a schema, and the form of schemas in records.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The longest schema, in bytes.
pub(crate) const SCHEMA_BYTES_MAX: usize = 1 << 20;

const VERSION: u32 = 1;
const ZSTD_LEVEL: i32 = 9;

/// The record of a schema: its bytes as they were uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaRecord {
    pub(crate) xml: Vec<u8>,
}

/// A record cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// It is of a later version, or damaged.
    #[error("the record cannot be read: {0}")]
    Unreadable(String),
    /// The schema has too many bytes.
    #[error("a schema has at most {SCHEMA_BYTES_MAX} bytes")]
    TooLong,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    zstd: String,
}

impl SchemaRecord {
    /// Reads the value of a record.
    pub(crate) fn read(value: &str) -> Result<Self, BadRecord> {
        let saved: Saved = serde_json::from_str(value).map_err(unreadable)?;
        if saved.version != VERSION {
            return Err(unreadable(format!("it has version {}, and this node knows {VERSION}", saved.version)));
        }
        Ok(Self { xml: unpack(&saved.zstd)? })
    }

    /// The value of the record.
    pub(crate) fn to_value(&self) -> Result<String, BadRecord> {
        let saved = Saved { version: VERSION, zstd: pack(&self.xml)? };
        serde_json::to_string(&saved).map_err(unreadable)
    }
}

pub(super) fn unreadable(why: impl ToString) -> BadRecord {
    BadRecord::Unreadable(why.to_string())
}

/// The bytes of a schema as a text. Records have a bound that long schemas would exceed.
pub(super) fn pack(xml: &[u8]) -> Result<String, BadRecord> {
    if xml.len() > SCHEMA_BYTES_MAX {
        return Err(BadRecord::TooLong);
    }
    Ok(STANDARD.encode(zstd::bulk::compress(xml, ZSTD_LEVEL).map_err(unreadable)?))
}

pub(super) fn unpack(text: &str) -> Result<Vec<u8>, BadRecord> {
    let bytes = STANDARD.decode(text).map_err(unreadable)?;
    zstd::bulk::decompress(&bytes, SCHEMA_BYTES_MAX).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_come_back_byte_for_byte() {
        let record = SchemaRecord { xml: b"<schema>\r\n \xef\xbb\xbf</schema>\n".to_vec() };
        assert_eq!(SchemaRecord::read(&record.to_value().unwrap()), Ok(record));
        assert_eq!(SchemaRecord { xml: vec![0; SCHEMA_BYTES_MAX + 1] }.to_value(), Err(BadRecord::TooLong));
    }

    #[test]
    fn the_form_of_version_1_stays() {
        // zstd's bytes differ between its versions; what is stored must be readable.
        let stored = r#"{"version":1,"zstd":"KLUv/SAJSQAAPHNjaGVtYS8+"}"#;
        assert_eq!(SchemaRecord::read(stored).unwrap().xml, b"<schema/>");
        assert!(SchemaRecord::read(r#"{"version":2,"zstd":""}"#).is_err());
        assert!(SchemaRecord::read("{}").is_err());
    }
}
