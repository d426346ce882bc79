//! Exchanges between primaries: the questions by which two of them find out how what they hold
//! differs (`ombak_repair`, docs/architecture/repair.md).
//!
//! `messages` lays out the questions and answers, `remote` asks, and `service` answers. The service
//! is being tried out: nodes have it only where they speak [`crate::Speaks::WithTrials`].

pub(crate) mod messages;
mod remote;
mod service;

pub(crate) use remote::start;
pub(crate) use service::EXCHANGES;
