//! The records of namespaces in the saved form of the state.
//!
//! Versions without open records have functions in a part of their own. It is written as long as no
//! command was used that those versions do not know, so they can read the state.

use super::functions::FUNCTIONS;
use super::open_records::{Namespace, OpenRecord, OpenRecords};
use super::text;
use bytes::Bytes;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The part that format 4 has.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedFunctions {
    changed: u64,
    records: Vec<(Arc<str>, SavedFunction)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedFunction {
    source: Arc<str>,
    version: u64,
}

/// The part that format 5 has.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedRecords {
    used: u64,
    namespaces: Vec<SavedNamespace>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedNamespace {
    name: Arc<str>,
    changed: u64,
    records: Vec<(Key, OpenRecord)>,
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Key(#[serde(with = "text")] Bytes);

impl OpenRecords {
    /// The functions as format 4 has them; `None` if there never was one. The commands of versions
    /// without open records have set all of them, so their names are text.
    pub fn to_saved_functions(&self) -> Option<SavedFunctions> {
        let Namespace { records, changed } = self.namespaces.get(FUNCTIONS)?;
        let name = |key: &Bytes| -> Arc<str> { String::from_utf8_lossy(key).into() };
        let saved = |record: &OpenRecord| SavedFunction { source: record.value.clone(), version: record.version };
        let records = records.iter().map(|(key, record)| (name(key), saved(record))).collect();
        Some(SavedFunctions { changed: *changed, records })
    }

    pub fn to_saved(&self) -> SavedRecords {
        let records = |namespace: &Namespace| {
            namespace.records.iter().map(|(key, record)| (Key(key.clone()), record.clone())).collect()
        };
        let namespaces = self.namespaces.iter().map(|(name, namespace)| SavedNamespace {
            name: name.clone(),
            changed: namespace.changed,
            records: records(namespace),
        });
        SavedRecords { used: self.used, namespaces: namespaces.collect() }
    }
}

impl From<SavedFunctions> for OpenRecords {
    fn from(saved: SavedFunctions) -> Self {
        let key = |name: Arc<str>| Bytes::copy_from_slice(name.as_bytes());
        let record = |saved: SavedFunction| OpenRecord { value: saved.source, version: saved.version };
        let records = saved.records.into_iter().map(|(name, saved)| (key(name), record(saved))).collect();
        let functions = Namespace { records, changed: saved.changed };
        Self { namespaces: OrdMap::unit(FUNCTIONS.into(), functions), used: 0 }
    }
}

impl From<SavedRecords> for OpenRecords {
    fn from(saved: SavedRecords) -> Self {
        let namespaces = saved.namespaces.into_iter().map(|SavedNamespace { name, changed, records }| {
            let records = records.into_iter().map(|(key, record)| (key.0, record)).collect();
            (name, Namespace { records, changed })
        });
        Self { namespaces: namespaces.collect(), used: saved.used }
    }
}
