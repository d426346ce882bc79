//! What a put does to a value of a data type, as it travels to the node that coordinates the put.

use crate::codec;
use crate::{BadBytes, CannotMerge, Clock, Refusal, Request, State};
use bytes::Bytes;
use ombak_types::Actor;

/// What a put does to a value of a data type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The operations of a client.
    Request {
        /// The operations.
        request: Request,
        /// What the client had seen of the value.
        context: Option<Clock>,
    },
    /// A whole state is merged into the value: a client has put Riak's bytes.
    Merge(State),
}

impl Change {
    /// The state after the change. `actor` has issued no dot that the state does not know.
    ///
    /// # Errors
    /// [`Refusal`]: the change cannot be applied as a whole.
    pub fn apply(&self, mut state: State, actor: &Actor) -> Result<State, Refusal> {
        let merged = match self {
            Self::Request { request, context } => state.merge_delta(&state.delta(request, actor, context.as_ref())?),
            Self::Merge(other) => state.merge(other),
        };
        match merged {
            Ok(()) => Ok(state),
            // The delta of a state fits it, so only types can differ.
            Err(CannotMerge::WrongType | CannotMerge::MissingPast(_)) => Err(Refusal::WrongType),
        }
    }

    /// The bytes in a message.
    pub fn to_bytes(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads such bytes.
    ///
    /// # Errors
    /// The bytes are not a change, or one of a version that is not known.
    pub fn from_bytes(bytes: &Bytes) -> Result<Self, BadBytes> {
        codec::decode(bytes)
    }
}
