//! The command line.
//!
//! What it is: the grammar ([`Request`]), what options change of a configuration ([`RunOptions::plan`]), and a
//! configuration in words ([`explain`]).
//!
//! What it is not: nothing here connects to anything or draws a random number.

mod address;
mod explain;
mod options;
mod overrides;

pub use address::Address;
pub use explain::explain;
pub use options::{CompareOptions, Refusal, Request, RunOptions};
pub use overrides::Planned;
