//! Whether a peer answers requests.
//!
//! A peer can answer gossip and yet no requests: its process is stopped, a link works one way, its
//! disk hangs. [`RequestHealth`] learns that from the requests themselves, and from probes that are
//! sent when there are no others.
//!
//! With the default times, a peer from which nothing comes is down for requests after about 1.1 s,
//! whether it was busy or idle before. Two good probes in a row, 200 ms apart, let it
//! back in. Each relapse doubles how many it needs, up to 16, so that a peer that fails again and
//! again does not come and go with each probe.

mod request_health;
mod traffic;

pub use request_health::{HealthConfig, RequestHealth, Step};
pub(crate) use traffic::TrafficCounters;
pub use traffic::{Outcome, Traffic};
