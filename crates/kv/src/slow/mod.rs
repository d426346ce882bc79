//! Requests that took long: which they were, and where their time went.
//!
//! [`SlowLog`] decides and writes. A request carries [`Spent`] along, to which each part of the
//! engine adds its time. A part measures only where the request waits, so that a request that
//! never waits reads no further clock.

mod course;
mod job_times;
mod request_kind;
mod slow_log;
mod slow_request;
mod spent;

pub(crate) use course::Course;
pub(crate) use job_times::JobTimes;
pub use request_kind::RequestKind;
pub(crate) use slow_log::SlowLog;
pub(crate) use slow_request::SlowRequest;
pub(crate) use spent::{Spent, micros_between};
