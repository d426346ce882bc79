//! Changes that are not in an index yet.

use ombak_search::values::Value;
use ombak_search_index::{IndexChange, IndexDocument};

/// About how many bytes of documents wait in memory. More are written before the end of a turn.
const BYTES_MAX: usize = 8 << 20;
/// How many changes wait in memory.
const CHANGES_MAX: usize = 20_000;

/// The changes that wait for the next write.
#[derive(Default)]
pub(super) struct Waiting {
    changes: Vec<IndexChange>,
    bytes: usize,
}

impl Waiting {
    pub(super) fn push(&mut self, change: IndexChange) {
        self.bytes += bytes_of(&change);
        self.changes.push(change);
    }

    /// Whether they should be written before more come.
    pub(super) const fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX || self.changes.len() > CHANGES_MAX
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Takes all of them, in their order.
    pub(super) fn take(&mut self) -> Vec<IndexChange> {
        self.bytes = 0;
        std::mem::take(&mut self.changes)
    }
}

/// About how many bytes a change takes in memory.
fn bytes_of(change: &IndexChange) -> usize {
    match change {
        IndexChange::Put { key, documents, .. } => {
            let of_document = |document: &IndexDocument| {
                let values = document.fields.values.iter();
                256 + values.map(|(name, value)| 64 + name.len() + bytes_of_value(value)).sum::<usize>()
            };
            key.len() + documents.iter().map(of_document).sum::<usize>()
        }
        IndexChange::Remove { key } => 64 + key.len(),
        IndexChange::Sweep { .. } => 64,
    }
}

fn bytes_of_value(value: &Value) -> usize {
    match value {
        Value::String(text) | Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}
