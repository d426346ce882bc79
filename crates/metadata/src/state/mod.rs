//! The replicated state machine.
//!
//! What it is: the state that all nodes agree on, and a pure function from state and command to the
//! next state.
//!
//! What it is not: it checks neither bucket properties nor the records of namespaces, and does not
//! compute effective properties. It knows nothing of Raft but the identities of logs.
//!
//! Invariants:
//! * Equal commands in equal order give equal states, on all versions of the program.
//! * A refused command changes nothing, but the state knows from the first one on that the log has
//!   commands which versions without open records cannot read.
//! * An active bucket type stays active. A removed node, or a log that was replaced, never returns.
//! * Every partition of the goal belongs to a member. Until all homes have the goal, others may
//!   hold copies that were removed by force.
//! * A change that needs an empty cluster, bucket or type takes effect while that is closed to
//!   writes, or not at all.

mod command;
mod difference;
mod functions;
mod metadata;
mod open_records;
mod raft_id;
mod records;
mod ring_changes;
mod saved;
mod saved_records;
#[cfg(test)]
mod tests;
mod text;

pub use command::{Command, NewGoal, NewMember, Refusal, TakenRecord, TakenType};
pub use difference::{ChangedRecord, changed_records};
pub use functions::FUNCTIONS;
pub use metadata::Metadata;
pub use open_records::{OpenRecord, RecordName};
pub use raft_id::RaftId;
pub use records::{
    BucketName, BucketRecord, ClosedPart, ForcedFrom, Lineage, Member, MemberStatus, TypeName, TypeRecord,
};
pub use saved::BadSavedMetadata;
