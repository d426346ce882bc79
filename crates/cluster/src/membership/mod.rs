//! Failure detection over the transport: `ombak_membership` with its packets in requests of the
//! service `MEMBERSHIP`, and probes of the request path.

mod liveness;
mod probe;
mod running;
mod transport;

pub use running::Detection;
pub(crate) use running::{MembershipSlot, register, start};
