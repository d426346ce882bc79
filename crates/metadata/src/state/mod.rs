//! The replicated state machine.
//!
//! What it is: the state that all nodes agree on, and a pure function from state and command to the
//! next state.
//!
//! What it is not: it does not check bucket properties and does not compute effective ones. It
//! knows nothing of Raft but the identities of logs.
//!
//! Invariants:
//! * Equal commands in equal order give equal states, on all versions of the program.
//! * A refused command changes nothing.
//! * An active bucket type stays active. A removed node, or a log that was replaced, never returns.
//! * Every partition belongs to a member.

mod command;
mod metadata;
mod raft_id;
mod records;
mod saved;
#[cfg(test)]
mod tests;
mod text;

pub use command::{Command, NewMember, Refusal};
pub use metadata::Metadata;
pub use raft_id::RaftId;
pub use records::{BucketName, BucketRecord, ForcedFrom, Lineage, Member, MemberStatus, TypeName, TypeRecord};
pub use saved::BadSavedMetadata;
