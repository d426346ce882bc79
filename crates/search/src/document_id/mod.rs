//! The unique key of a document: `_yz_id`.
//!
//! ```text
//!  1*maps*cities*Z%1rich*37            type maps, bucket cities, key Z*rich, partition 37
//!  1*maps*cities*Z%1rich*37*3RVAwLn    the same object, the sibling with this vtag
//! ```
//!
//! What it is: the text of a key, written and read back.
//!
//! What it is not: it knows no ring, so any number is a partition.
//!
//! Invariants:
//! * Two ids have the same text only if they are equal, and a text is read only if it is what its
//!   id is written as.
//! * The texts of ids of different objects sort the same way whatever their partitions are, so two
//!   replicas that hold different partitions of the same objects agree on the order.

mod id;

pub use id::{BadDocumentId, DOCUMENT_ID_BYTES_MAX, DocumentId};
