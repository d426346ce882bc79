//! Common parts of the drivers that speak over the network: server addresses, a socket with
//! deadlines, a connection that is reopened after it was lost, access to settings, and a bounded
//! set of error reasons.

mod background;
mod backoff;
mod clock;
mod connection;
mod exchange_error;
mod reasons;
mod settings_reader;
mod socket;
mod target;

pub use background::Background;
pub use backoff::Backoff;
pub use clock::unix_now;
pub use connection::Connection;
pub use exchange_error::ExchangeError;
pub use reasons::Reasons;
pub use settings_reader::{SettingsReader, bytes};
pub use target::{Target, of_worker};
