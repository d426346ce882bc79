//! What a namespace of records brings.
//!
//! What it is: [`RecordNamespace`] checks the values of one namespace before they are proposed, and
//! learns of changes. Functions are one (`functions`). Users, grants and schemas can be others
//! (docs/architecture/metadata-records.md).
//!
//! What it is not: it stores and replicates nothing. The registry does the one, and the metadata of
//! the cluster the other.
//!
//! Invariant: a value is checked once, on the node that proposes it. All members take what was
//! decided as it is, so members of different versions come to the same records. An observer must
//! therefore expect values that its own version would not let through.

use super::error::PropsError;
use super::open_record::OpenRecord;
use bytes::Bytes;
use ombak_types::props::{PropErrors, PropMap};
use std::fmt;

/// The longest name of a namespace, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 32;
/// The longest key, in bytes.
pub const RECORD_KEY_BYTES_MAX: usize = 1024;
/// The longest value, in bytes. One entry of the metadata's log holds it, and one message has
/// hundreds of entries.
pub const RECORD_VALUE_BYTES_MAX: usize = 64 << 10;

/// How much a namespace can have. Each node has all records in memory, and a snapshot of the
/// metadata has them all. Nodes that propose at the same moment can exceed a bound by one record
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordBounds {
    /// How many records.
    pub records_max: usize,
    /// How many bytes all values can have together.
    pub values_bytes_max: usize,
}

impl Default for RecordBounds {
    fn default() -> Self {
        Self { records_max: 1000, values_bytes_max: 8 << 20 }
    }
}

/// A record that has changed, as an observer sees it.
#[derive(Clone, Copy, Debug)]
pub struct RecordUpdate<'a> {
    /// The key.
    pub key: &'a Bytes,
    /// The record that was there when the observer was called last; `None` if there was none.
    pub old: Option<&'a OpenRecord>,
    /// The record that is there now; `None` after a removal.
    pub new: Option<&'a OpenRecord>,
}

/// A namespace of records in the metadata.
pub trait RecordNamespace: Send + Sync + fmt::Debug {
    /// Its name: at most [`NAMESPACE_BYTES_MAX`] bytes. It is stored and sent, so it never changes.
    fn name(&self) -> &'static str;

    /// How much it can have.
    fn bounds(&self) -> RecordBounds {
        RecordBounds::default()
    }

    /// Checks a value before it is proposed. It may be asked again, when others were faster.
    fn validate(&self, key: &[u8], value: &str) -> Result<(), PropsError>;

    /// Checks what a change of properties says of the records of the namespace, on the node that
    /// proposes it. `effective` is what holds afterwards.
    fn check_props(&self, _effective: &PropMap, _changes: &PropMap) -> Result<(), PropErrors> {
        Ok(())
    }

    /// The error for a value that does not fit beside the others.
    fn full(&self, bounds: RecordBounds) -> PropsError {
        let (name, bytes) = (self.name(), bounds.values_bytes_max);
        PropsError::BadRecord(format!("the records of {name} have more than {bytes} bytes together"))
    }

    /// Learns of a change that was decided, just before the registry of this node has it, and
    /// before the change is acknowledged. Calls come in the order of the changes, and several
    /// changes of one record may come as one update. Beginning with the first call, whoever follows
    /// the calls knows all records: at the start of a node each of its records is an update without
    /// an old one. It must be quick, and must not call the registry.
    fn changed(&self, _update: RecordUpdate<'_>) {}

    /// What speaks against joining a cluster, whose records replace the own ones, as a sentence for
    /// operators; `None` if nothing does.
    fn conflict(&self, key: &[u8], own: &OpenRecord, of_cluster: Option<&OpenRecord>) -> Option<String> {
        conflict(self.name(), key, own, of_cluster)
    }
}

/// What speaks against joining a cluster, for records of a namespace of which nothing is known.
pub(super) fn conflict(
    namespace: &str,
    key: &[u8],
    own: &OpenRecord,
    of_cluster: Option<&OpenRecord>,
) -> Option<String> {
    let what = match of_cluster {
        Some(of_cluster) if of_cluster.value == own.value => return None,
        Some(_) => "has another value in the cluster. Set the same one there, or remove it here.",
        None => "is set here, and not in the cluster. Set it there first, or remove it here.",
    };
    Some(format!("the record '{}' of {namespace} {what}", key.escape_ascii()))
}
