//! The metadata of the cluster over the transport, and the registry of bucket properties over the
//! metadata.
//!
//! What it is: [`PeerTransport`] carries the messages of the metadata's group, `service` answers
//! them, and `records` translates what was decided for the registry of the engine.
//!
//! What it is not: it decides nothing (`ombak_metadata`), and does not follow what was decided
//! (`crate::member`).

mod records;
mod service;
mod transport;

pub(crate) use records::{all_records, changed, command, is_function, taken_over};
pub(crate) use service::{Acquaintance, AcquaintanceCell, METADATA, MetadataSlot};
pub(crate) use transport::{PeerTransport, question};
