//! The vocabulary of the engine: what callers ask, and what they get.
//!
//! What it is: requests and replies of gets, puts, deletes and index queries, the condition of a
//! put, the part of the data that a question is about ([`Holdings`]), and the memory that a caller
//! offers ([`MemoryReservation`]). Every other room of this crate may use it.
//!
//! What it is not: nothing here reads or writes a store, and nothing here knows another room.

mod holdings;
mod index_query;
mod memory_reservation;
#[allow(clippy::module_inception, reason = "requests and replies of one key, beside the other requests")]
mod requests;

pub use holdings::Holdings;
pub(crate) use holdings::bucket_prefix;
pub use index_query::{IndexMatch, IndexQuery, QueryConfig, QueryRange, compile_pattern};
pub(crate) use memory_reservation::READ_WITHOUT_RESERVATION_BYTES_MAX;
pub use memory_reservation::{MemoryReservation, UncountedMemory};
pub use requests::{
    DeleteReply, DeleteRequest, GetOptions, GetReply, GetRequest, PreflistItem, PutCondition, PutOptions, PutReply,
    PutRequest, Read,
};
