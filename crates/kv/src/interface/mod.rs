//! What the rest of the program sees of the engine: [`Kv`], its requests and replies, and the
//! import of objects.

mod costs;
mod emptiness;
mod hot;
mod import;
mod kv;
mod memory_reservation;
mod node_view;
mod partitions;
mod put_in_cluster;
mod queries;
mod requests;
mod shares;
mod slow;
mod waking;

pub use emptiness::Holdings;
pub use hot::{RequestCounts, TopOfNode};
pub use import::{ImportOutcome, Importer};
pub use kv::Kv;
pub use memory_reservation::MemoryReservation;
pub use node_view::Health;
pub use requests::{
    DeleteReply, DeleteRequest, GetOptions, GetReply, GetRequest, PreflistItem, PutCondition, PutOptions, PutReply,
    PutRequest, Read,
};
pub use shares::Share;
pub use slow::EndedJob;
