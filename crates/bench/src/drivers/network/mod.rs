//! What drivers that speak over the network share: where a server is, a socket with a deadline, a connection that comes
//! back after it was lost, settings, and reasons of failure that do not grow without bound.

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
