//! Failure detection over the transport: `ombak_membership` with its packets in requests of the
//! service [`PACKETS`], and probes of the request path ([`PROBES`]).

mod liveness;
mod probe;
mod running;
mod transport;

pub(crate) use probe::PROBES;
pub use running::Detection;
pub(crate) use running::{MembershipSlot, start};
pub(crate) use transport::PACKETS;
