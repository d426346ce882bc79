//! The configuration: Riak's keys, Ombak's own keys, and the sources of their values.
//!
//! What it is: a registry of every key with its value syntax, default and meaning ([`keys`]); a
//! parser for files in the format of riak.conf ([`file`]); the merge of defaults, file, environment
//! and command line ([`Effective`]); and the typed settings that a node is built from
//! ([`Settings`]).
//!
//! What it is not: nothing here opens a socket or a store. There are no includes and no
//! advanced.config.
//!
//! Invariants:
//! * A key that is not in the registry is an error in a file and on the command line.
//! * A key without effect always causes a warning if it is set.
//! * Every default is a valid value of its key.

mod backend;
#[cfg(test)]
mod backend_keys_tests;
mod effective;
mod file;
mod functions;
mod key_spec;
mod keys;
mod ledger_memory;
mod machine;
mod problem;
mod reader;
mod request_memory;
mod settings;
mod stores;
mod value;

pub use backend::{BackendSettings, DiskSettings, MultiSettings};
pub use effective::{Effective, Origin, Overrides, Setting, unknown_key};
pub use functions::FunctionSettings;
pub use key_spec::{KeySpec, Meaning};
pub(crate) use keys::SINGLE_BACKENDS;
pub use keys::{all as all_keys, find as find_key};
pub use problem::Problem;
pub use settings::{CERTIFICATE_KEYS, Listen, LogSettings, Settings, log_level};
pub use value::{Kind, Value};
