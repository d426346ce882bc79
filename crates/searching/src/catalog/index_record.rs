//! The record of an index.

use super::schema_record::{BadRecord, pack, unpack, unreadable};
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;

/// The record of an index. It has the schema itself, so that an index stays what it is when another
/// schema is uploaded under the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    /// The name of the schema.
    pub(crate) schema: String,
    /// The schema when this build began.
    pub(crate) xml: Vec<u8>,
    /// The n_val of the buckets that may be in the index.
    pub(crate) n_val: u32,
    /// A number that no other index has, also not one that had the name before.
    pub(crate) incarnation: u64,
    /// Which build of the index this is. A rebuild begins the next one.
    pub(crate) build: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    schema: String,
    zstd: String,
    n_val: u32,
    incarnation: u64,
    build: u64,
}

impl IndexRecord {
    /// Reads the value of a record.
    pub(crate) fn read(value: &str) -> Result<Self, BadRecord> {
        let Saved { version, schema, zstd, n_val, incarnation, build } =
            serde_json::from_str(value).map_err(unreadable)?;
        if version != VERSION {
            return Err(unreadable(format!("it has version {version}, and this node knows {VERSION}")));
        }
        Ok(Self { schema, xml: unpack(&zstd)?, n_val, incarnation, build })
    }

    /// The value of the record.
    pub(crate) fn to_value(&self) -> Result<String, BadRecord> {
        let Self { schema, xml, n_val, incarnation, build } = self;
        let zstd = pack(xml)?;
        let (schema, n_val, incarnation, build) = (schema.clone(), *n_val, *incarnation, *build);
        let saved = Saved { version: VERSION, schema, zstd, n_val, incarnation, build };
        serde_json::to_string(&saved).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_version_1_stays() {
        let stored = r#"{"version":1,"schema":"s","zstd":"KLUv/SAJSQAAPHNjaGVtYS8+","n_val":3,"incarnation":18446744073709551615,"build":2}"#;
        let record = IndexRecord::read(stored).unwrap();
        let expected =
            IndexRecord { schema: "s".into(), xml: b"<schema/>".to_vec(), n_val: 3, incarnation: u64::MAX, build: 2 };
        assert_eq!(record, expected);
        assert_eq!(IndexRecord::read(&record.to_value().unwrap()), Ok(expected));
        assert!(IndexRecord::read(&stored.replace(":1,", ":2,")).is_err());
    }
}
