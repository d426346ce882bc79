//! What a request takes: memory that it reserves, and time.

use crate::requests::MemoryReservation;
use crate::slow::Spent;

/// The costs of one request.
pub(crate) struct Costs<'a> {
    /// Where the request reserves memory for large versions.
    pub(crate) room: &'a mut dyn MemoryReservation,
    pub(crate) spent: Spent,
    /// Whether it is a part of another request, which is counted as a whole.
    pub(crate) is_part: bool,
    /// Whether the node did not admit the request or one of its parts. Such a request counts as
    /// refused.
    pub(crate) is_refused: bool,
}

impl<'a> Costs<'a> {
    /// The costs of a request of a client.
    pub(crate) fn of_request(room: &'a mut dyn MemoryReservation) -> Self {
        Self { room, spent: Spent::default(), is_part: false, is_refused: false }
    }

    /// The costs of requests that are parts of another one.
    pub(crate) fn of_parts(room: &'a mut dyn MemoryReservation) -> Self {
        Self { is_part: true, ..Self::of_request(room) }
    }
}
