//! The actions of a read, which the runtime executes.

use super::events::Ask;
use crate::requests::GetReply;
use ombak_types::{Error, Object};
use smallvec::SmallVec;

/// An action that the runtime must execute.
#[derive(Clone, Debug, PartialEq)]
pub enum GetAction {
    /// Ask a replica.
    Ask {
        /// The index of the replica in the request's list.
        replica: usize,
        /// The data to ask for.
        ask: Ask,
    },
    /// Answer the client.
    Reply(Result<GetReply, Error>),
    /// Send a replica the version that it lacks, to be merged by clock.
    Repair {
        /// The index of the replica in the request's list.
        replica: usize,
        /// The version that it lacks.
        object: Object,
        /// What the replica has instead.
        lack: Lack,
    },
    /// No further action follows.
    Done,
}

/// What a replica that needs repair has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Nothing.
    Missing,
    /// An older version, a concurrent one, or another one with the same clock.
    Older,
    /// A version that cannot be read. The one that it is sent may take its place.
    Unreadable,
}

/// The actions of one step.
pub type GetActions = SmallVec<[GetAction; 3]>;
