//! Common parts of the drivers that speak over the network: server addresses, a socket with
//! deadlines, a connection that is reopened after it was lost, access to settings, and a bounded
//! set of error reasons.

mod background;
mod backoff;
mod clock;
mod connection;
mod read;
mod reasons;
mod socket;
mod target;
mod trouble;

pub use background::Background;
pub use backoff::Backoff;
pub use clock::unix_now;
pub use connection::Connection;
pub use read::{Read, bytes};
pub use reasons::Reasons;
pub use target::{Target, of_worker};
pub use trouble::Trouble;
