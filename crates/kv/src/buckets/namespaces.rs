//! The list of the namespaces of records that a node knows, and the check of what is proposed.
//!
//! What it is: the engine has the default list, and a program that has more namespaces gives its
//! own list with the hooks of the node.
//!
//! What it is not: it knows no values. Each namespace checks its own.
//!
//! Invariant: records of a namespace that a node does not know are kept and passed on, and cannot
//! be changed on that node.

use super::error::PropsError;
use super::functions::FunctionsNamespace;
use super::open_record::{Difference, NamespaceRecords, OpenRecord, OpenRecords, RecordName};
use super::record_namespace::{
    NAMESPACE_BYTES_MAX, RECORD_KEY_BYTES_MAX, RECORD_VALUE_BYTES_MAX, RecordNamespace, RecordUpdate, conflict,
};
use ombak_types::props::PropMap;
use std::sync::Arc;

/// The namespaces that a node knows. The default list has those of this crate. Namespaces remember
/// what they were told, so each start of a node has a list of its own.
#[derive(Clone, Debug)]
pub struct Namespaces(Arc<[Arc<dyn RecordNamespace>]>);

impl Default for Namespaces {
    fn default() -> Self {
        Self::new(vec![Arc::new(FunctionsNamespace::default())])
    }
}

impl Namespaces {
    /// The list of these namespaces. Of two with one name the first counts.
    pub fn new(namespaces: Vec<Arc<dyn RecordNamespace>>) -> Self {
        Self(namespaces.into())
    }

    /// The namespace with a name.
    pub(super) fn named(&self, name: &str) -> Option<&dyn RecordNamespace> {
        self.0.iter().find(|namespace| namespace.name() == name).map(|namespace| &**namespace)
    }

    /// Checks what a change of properties says of records. `effective` is what held before.
    pub(super) fn check_props(&self, effective: &PropMap, changes: &PropMap) -> Result<(), PropsError> {
        let mut after = effective.clone();
        after.extend(changes.clone());
        Ok(self.0.iter().try_for_each(|namespace| namespace.check_props(&after, changes))?)
    }

    /// Checks which record is set or removed. Returns its namespace.
    pub(super) fn check_name(&self, name: &RecordName) -> Result<&dyn RecordNamespace, PropsError> {
        let namespace = self.named(&name.namespace).filter(|namespace| namespace.name().len() <= NAMESPACE_BYTES_MAX);
        let unknown = || PropsError::BadRecord(format!("this node knows no records of {}", name.namespace));
        let namespace = namespace.ok_or_else(unknown)?;
        if name.key.is_empty() || name.key.len() > RECORD_KEY_BYTES_MAX {
            return Err(PropsError::BadRecord(format!("a key has 1 to {RECORD_KEY_BYTES_MAX} bytes")));
        }
        Ok(namespace)
    }

    /// Checks a value before it is proposed beside the present records of its namespace.
    pub(super) fn check(&self, present: &NamespaceRecords, name: &RecordName, value: &str) -> Result<(), PropsError> {
        let namespace = self.check_name(name)?;
        namespace.validate(&name.key, value)?;
        if value.len() > RECORD_VALUE_BYTES_MAX {
            return Err(PropsError::BadRecord(format!("the value has more than {RECORD_VALUE_BYTES_MAX} bytes")));
        }
        // In JSON such a character takes six bytes.
        if value.chars().any(|c| c.is_ascii_control() && !"\t\n\r".contains(c)) {
            return Err(PropsError::BadRecord("the value has control characters".into()));
        }
        let bounds = namespace.bounds();
        let others = || present.iter().filter(|(other, _)| **other != name.key);
        if others().count() >= bounds.records_max {
            return Err(PropsError::TooMany(bounds.records_max));
        }
        let bytes: usize = others().map(|(_, record)| record.value.len()).sum();
        if bytes + value.len() > bounds.values_bytes_max {
            return Err(namespace.full(bounds));
        }
        Ok(())
    }

    /// What speaks against joining a cluster that has another record, or none.
    pub(super) fn conflict(&self, name: &RecordName, own: &OpenRecord, theirs: Option<&OpenRecord>) -> Option<String> {
        match self.named(&name.namespace) {
            Some(namespace) => namespace.conflict(&name.key, own, theirs),
            None => conflict(&name.namespace, &name.key, own, theirs),
        }
    }

    /// Tells the observers of namespaces what differs between two states.
    pub(super) fn tell(&self, before: &OpenRecords, now: &OpenRecords) {
        for Difference { name, old, new } in now.differences(before) {
            if let Some(namespace) = self.named(&name.namespace) {
                namespace.changed(RecordUpdate { key: &name.key, old: old.as_ref(), new: new.as_ref() });
            }
        }
    }
}
