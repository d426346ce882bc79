//! A connection that runs: the driver of a [`crate::mux::Mux`] over a stream of bytes.
//!
//! What it is: one task for each connection reads whatever has arrived, hands requests to services
//! and answers to callers, and writes everything that is queued with one vectored write. A service
//! may answer inside the call, which costs no task and no wake-up, or later through its
//! [`Responder`]. Callers and responders work on the shared state under a short lock.
//!
//! The kernel's send buffer is not under this crate's control. A driver hands it at most
//! [`WAKE_UP_BYTES`] at once, so what is urgent passes everything that is not in the kernel yet.

mod call;
mod driver;
mod service;
mod shared;

pub use call::{ItemStream, StreamPart};
pub use service::{Incoming, Responder, Service, Services, TwoServices};

pub(crate) use call::Call;
pub(crate) use driver::{Driver, DriverParts};
pub(crate) use shared::{NodeClock, Shared};

use crate::frame::PAYLOAD_BYTES_MAX;

/// How many bytes are prepared for one write: two full frames.
pub const WAKE_UP_BYTES: usize = 2 * PAYLOAD_BYTES_MAX;
