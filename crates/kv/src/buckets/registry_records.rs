//! Reads and changes records of namespaces.
//!
//! A record is changed from what it is at present. The node that is alone computes the change under
//! a lock. In a cluster the change names the version from which it starts, and it is computed again
//! if another node was faster. So a caller sees no difference between the two.

use super::error::PropsError;
use super::open_record::{NamespaceRecords, OpenRecord, RecordName};
use super::registry::BucketRegistry;
use super::state::{RecordChange, Snapshot};
use std::sync::Arc;

/// What becomes of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordEdit {
    /// It stays as it is.
    Keep,
    /// It has this value.
    Set(Arc<str>),
    /// It is removed.
    Remove,
}

impl BucketRegistry {
    /// A record of a namespace.
    pub fn record(&self, namespace: &str, key: &[u8]) -> Option<OpenRecord> {
        self.snapshot().records.open.get(namespace, key).cloned()
    }

    /// All records of a namespace, by their keys.
    pub fn records_of(&self, namespace: &str) -> NamespaceRecords {
        self.snapshot().records_of(namespace).cloned().unwrap_or_default()
    }

    /// Changes a record. `edit` gets the present one. It is called again if another node was
    /// faster, and once more if it answers [`PropsError::Refused`] while this node may be behind
    /// the others. Otherwise its error ends the change. The value is checked before it is proposed.
    /// When this returns, every member that can be reached has the change. Blocks: not for network
    /// threads.
    pub fn change_record(
        &self,
        namespace: &str,
        key: &[u8],
        edit: impl Fn(Option<&OpenRecord>) -> Result<RecordEdit, PropsError>,
    ) -> Result<(), PropsError> {
        let name = RecordName::new(namespace, key);
        self.change(|now| {
            let value = match edit(now.records.open.named(&name))? {
                RecordEdit::Keep => return Ok(None),
                RecordEdit::Set(value) => value,
                RecordEdit::Remove => {
                    self.namespaces().check_name(&name)?;
                    return Ok(Some(RecordChange::Open(name.clone(), None)));
                }
            };
            self.check_record(now, &name, &value)?;
            Ok(Some(RecordChange::Open(name.clone(), Some(OpenRecord { value, version: 0 }))))
        })
    }

    fn check_record(&self, now: &Snapshot, name: &RecordName, value: &str) -> Result<(), PropsError> {
        let none = NamespaceRecords::new();
        self.namespaces().check(now.records_of(&name.namespace).unwrap_or(&none), name, value)
    }
}

impl Snapshot {
    /// The records of a namespace; `None` if it has none.
    pub(super) fn records_of(&self, namespace: &str) -> Option<&NamespaceRecords> {
        self.records.open.of(namespace)
    }
}

#[cfg(test)]
mod tests;
