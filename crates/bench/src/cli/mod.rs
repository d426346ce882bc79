//! The command line.
//!
//! What it is: the grammar ([`Request`]), the changes that options make to a configuration
//! ([`RunOptions::plan`]), and a description of a configuration in words ([`explain`]).
//!
//! What it is not: nothing here opens a connection or draws a random number.

mod address;
mod explain;
mod options;
mod overrides;

pub use address::Address;
pub use explain::explain;
pub use options::{CompareOptions, Refusal, Request, RunOptions};
pub use overrides::Planned;
