//! Failure detection over the transport: `ombak_failure_detection` with its packets in requests of
//! the service [`PACKETS`], and probes of the request path ([`PROBES`]).
//!
//! What it is not: it does not decide which nodes are members. Members come from outside, and a
//! node that is none is neither probed nor believed.

mod liveness;
mod probe;
mod running;
mod transport;

pub(crate) use probe::PROBES;
pub use running::Detection;
pub(crate) use running::{FailureDetectorSlot, start};
pub(crate) use transport::PACKETS;
