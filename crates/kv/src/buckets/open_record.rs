//! The records of namespaces, as a node has them.
//!
//! What it is: a map from namespace and key to a value with a version, whose clones share
//! everything.
//!
//! What it is not: it checks no values ([`RecordNamespace`](super::RecordNamespace) does).
//!
//! Invariant: a namespace without records is not in the map, so equal records are equal maps.

use bytes::Bytes;
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use std::sync::Arc;

/// Which record it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordName {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name within the namespace.
    pub key: Bytes,
}

impl RecordName {
    /// The name of a record.
    pub fn new(namespace: &str, key: &[u8]) -> Self {
        Self { namespace: namespace.into(), key: Bytes::copy_from_slice(key) }
    }
}

/// A record of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRecord {
    /// Its value. What the text means is up to the namespace.
    pub value: Arc<str>,
    /// The number of the change that made it so; 0 without a cluster.
    pub version: u64,
}

/// The records of one namespace, by their keys.
pub type NamespaceRecords = OrdMap<Bytes, OpenRecord>;

/// A record that differs between two states.
pub(super) struct Difference {
    pub name: RecordName,
    pub old: Option<OpenRecord>,
    pub new: Option<OpenRecord>,
}

/// The records of all namespaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OpenRecords(OrdMap<Arc<str>, NamespaceRecords>);

impl OpenRecords {
    pub fn get(&self, namespace: &str, key: &[u8]) -> Option<&OpenRecord> {
        self.0.get(namespace)?.get(key)
    }

    /// The record with a name.
    pub fn named(&self, name: &RecordName) -> Option<&OpenRecord> {
        self.get(&name.namespace, &name.key)
    }

    pub fn of(&self, namespace: &str) -> Option<&NamespaceRecords> {
        self.0.get(namespace)
    }

    pub fn iter(&self) -> impl Iterator<Item = (RecordName, &OpenRecord)> {
        self.0.iter().flat_map(|(namespace, records)| {
            let name = move |key: &Bytes| RecordName { namespace: namespace.clone(), key: key.clone() };
            records.iter().map(move |(key, record)| (name(key), record))
        })
    }

    /// Sets a record; without one, there is none any more.
    pub fn set(&mut self, name: RecordName, record: Option<OpenRecord>) {
        let mut records = self.0.get(&name.namespace).cloned().unwrap_or_default();
        match record {
            Some(record) => drop(records.insert(name.key, record)),
            None => drop(records.remove(&name.key)),
        }
        if records.is_empty() {
            self.0.remove(&name.namespace);
        } else {
            self.0.insert(name.namespace, records);
        }
    }

    /// What differs from an earlier state. Parts that both share are skipped: after one change this
    /// takes O(log n).
    pub fn differences(&self, earlier: &Self) -> Vec<Difference> {
        let none = NamespaceRecords::new();
        let mut found = Vec::new();
        for item in earlier.0.diff(&self.0) {
            let (namespace, old, new) = match item {
                DiffItem::Add(namespace, new) => (namespace, &none, new),
                DiffItem::Update { old: (namespace, old), new: (_, new) } => (namespace, old, new),
                DiffItem::Remove(namespace, old) => (namespace, old, &none),
            };
            found.extend(old.diff(new).map(|item| {
                let (key, old, new) = match item {
                    DiffItem::Add(key, new) => (key, None, Some(new)),
                    DiffItem::Update { old: (key, old), new: (_, new) } => (key, Some(old), Some(new)),
                    DiffItem::Remove(key, old) => (key, Some(old), None),
                };
                let name = RecordName { namespace: namespace.clone(), key: key.clone() };
                Difference { name, old: old.cloned(), new: new.cloned() }
            }));
        }
        found
    }
}
