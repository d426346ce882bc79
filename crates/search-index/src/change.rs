//! Changes of an index.

use ombak_search::document_id::DocumentId;
use ombak_search::values::DocumentFields;

/// A change of an index.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexChange {
    /// Replaces all documents of a key.
    Put {
        /// The partition of the documents.
        partition: u32,
        /// Rises with each rebuild of the partition.
        generation: u64,
        /// The key in the storage: bytes that no other object of the node has.
        key: Vec<u8>,
        /// One document, or one for each sibling; none removes what is there.
        documents: Vec<IndexDocument>,
    },
    /// Removes all documents of a key.
    Remove {
        /// The key in the storage.
        key: Vec<u8>,
    },
    /// Removes documents of a partition that are older than a generation: the end of a rebuild.
    Sweep {
        /// The partition.
        partition: u32,
        /// The first generation that stays.
        generation: u64,
    },
}

/// A document of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDocument {
    /// What the document is of; its text is `_yz_id`. It has the bucket type, bucket and key, and
    /// the partition and the vtag of a sibling.
    pub id: DocumentId,
    /// The vtag of the object (`_yz_vtag`), also if it has no siblings.
    pub vtag: Option<String>,
    /// Whether the value could not be read (`_yz_err` is 1).
    pub has_error: bool,
    /// The last Unix second in which the document is found; `None`: it is always found.
    pub expires_secs: Option<u32>,
    /// The fields of the value.
    pub fields: DocumentFields,
}
