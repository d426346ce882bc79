//! Exchanges between primaries: the questions by which two of them find out how what they hold
//! differs (`ombak_repair`, docs/architecture/repair.md).
//!
//! `messages` lays out the questions and answers, `remote` asks, and `service` answers. Members of
//! version 1 have no exchanges. A class with such a primary is not exchanged.

pub(crate) mod messages;
mod remote;
mod service;

pub(crate) use remote::start;
pub(crate) use service::EXCHANGES;
