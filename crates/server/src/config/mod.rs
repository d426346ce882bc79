//! The configuration: Riak's keys, Ombak's own keys, and the sources of their values.
//!
//! What it is: a registry of every key with its value syntax, default and meaning ([`keys`]); a
//! parser for files in the format of riak.conf ([`file`]); the merge of defaults, file, environment
//! and command line ([`Effective`]); and the typed settings that a node is built from
//! ([`Settings`]).
//!
//! What it is not: nothing here opens a socket or a store, or resolves a name. There are no
//! includes and no advanced.config.
//!
//! Invariants:
//! * A key that is not in the registry is an error in a file and on the command line.
//! * A key without effect causes a warning if it asks for something ([`vain`]): one line for each
//!   reason. A key that has its default value, or belongs to a feature that is off, asks for
//!   nothing.
//! * A configuration that asks for security which does not exist is refused, unless a key accepts
//!   that.
//! * Every default is a valid value of its key.

mod backend;
#[cfg(test)]
mod backend_keys_tests;
mod client_tls;
mod effective;
mod file;
mod functions;
mod host_port;
mod key_spec;
mod keys;
mod ledger_memory;
mod machine;
mod peers;
mod problem;
mod reader;
mod request_memory;
mod search;
mod settings;
mod stores;
mod vain;
mod value;

pub use backend::{BackendSettings, DiskSettings, MultiSettings};
pub use client_tls::CLIENT_FILE_KEYS;
pub use effective::{Effective, Origin, Overrides, Setting, unknown_key};
pub use functions::FunctionSettings;
pub use host_port::HostPort;
pub use key_spec::{KeySpec, Meaning};
pub(crate) use keys::SINGLE_BACKENDS;
pub use keys::{all as all_keys, find as find_key};
pub use peers::CERTIFICATE_KEYS;
pub use problem::Problem;
pub use search::SearchSettings;
pub use settings::{AuditSettings, Listen, LogSettings, Settings, log_level, slow_request};
pub use value::{Kind, Value};
