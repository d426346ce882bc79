//! The records of namespaces: users, grants or schemas can live here, and functions do.
//!
//! What it is: a map from namespace and key to a value with a version. A record changes only from
//! the version that its sender saw.
//!
//! What it is not: it knows no namespace, checks no value and has no bounds. The node that proposes
//! a record has checked it. If `apply` checked it as well, nodes of different versions could come
//! to different states.

use super::command::{Refusal, TakenRecord};
use super::metadata::Metadata;
use bytes::Bytes;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A record of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenRecord {
    /// Its value. What the text means is up to the namespace.
    pub value: Arc<str>,
    /// The index of the command that set this value.
    pub version: u64,
}

/// Which record it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordName {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name within the namespace.
    pub key: Bytes,
}

/// The records of one namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Namespace {
    pub records: OrdMap<Bytes, OpenRecord>,
    /// The index of the last command that changed one of them. It stays when the last record is
    /// gone, because the log may still have the command.
    pub changed: u64,
}

/// The records of all namespaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OpenRecords {
    pub namespaces: OrdMap<Arc<str>, Namespace>,
    /// The index of a command that only versions with open records understand: the last one that
    /// took effect, or the first one that was refused before any did; 0: the log has had none.
    pub used: u64,
}

impl OpenRecords {
    pub fn get(&self, namespace: &str, key: &[u8]) -> Option<&OpenRecord> {
        self.namespaces.get(namespace)?.records.get(key)
    }

    /// Sets or removes a record. `expected` is its version; `None`: it does not exist yet.
    pub fn put(
        &mut self,
        index: u64,
        namespace: Arc<str>,
        key: Bytes,
        expected: Option<u64>,
        value: Option<Arc<str>>,
    ) -> Result<(), Refusal> {
        if self.get(&namespace, &key).map(|record| record.version) != expected {
            return Err(Refusal::Changed);
        }
        let Namespace { records, changed } = self.namespaces.entry(namespace).or_default();
        match value {
            Some(value) => drop(records.insert(key, OpenRecord { value, version: index })),
            None => drop(records.remove(&key)),
        }
        *changed = index;
        Ok(())
    }
}

impl Metadata {
    /// The records of a namespace, by their keys; `None` if it never had one.
    pub fn records_of(&self, namespace: &str) -> Option<&OrdMap<Bytes, OpenRecord>> {
        self.open.namespaces.get(namespace).map(|namespace| &namespace.records)
    }

    /// A record of a namespace.
    pub fn record(&self, namespace: &str, key: &[u8]) -> Option<&OpenRecord> {
        self.open.get(namespace, key)
    }

    /// Whether a namespace ever had a record. Then the log may have what only programs understand
    /// that know the namespace.
    pub fn has_had_records(&self, namespace: &str) -> bool {
        self.open.namespaces.get(namespace).is_some_and(|namespace| namespace.changed > 0)
    }

    /// Whether log or state have what programs without open records cannot read.
    pub fn has_used_open_records(&self) -> bool {
        self.open.used > 0
    }

    pub(super) fn put_record(
        &mut self,
        index: u64,
        namespace: Arc<str>,
        key: Bytes,
        expected: Option<u64>,
        value: Option<Arc<str>>,
    ) -> Result<(), Refusal> {
        let put = self.open.put(index, namespace, key, expected, value);
        // The log has the command, also if it is refused.
        if put.is_ok() || self.open.used == 0 {
            self.open.used = index;
        }
        put
    }

    pub(super) fn take_over_records(&mut self, index: u64, records: Vec<TakenRecord>) {
        for TakenRecord { namespace, key, value } in records {
            // A record that exists already stays as it is.
            let _ = self.put_record(index, namespace, key, None, Some(value));
        }
    }
}
