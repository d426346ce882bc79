//! Riak's security: users, groups, sources, grants and passwords.
//!
//! What it is: the records that the metadata keep, the decisions that follow from them, and the
//! commands of `ombak admin security`. [`Roles`] is a snapshot of all records. It says which source
//! decides how a user proves who it is, and what a user may do. [`console::run`] carries out a
//! command. The facts are in docs/riak/semantics.md §11.
//!
//! What it is not: it has no I/O, no clock and no randomness, and it knows no cluster. Records come
//! from the caller and go back to it, and so do salts and ids.
//!
//! Invariants:
//! * A record that cannot be read closes and never opens. An unreadable user is unknown, an
//!   unreadable group has no members, without the record `all` nobody logs in, and an unreadable
//!   status means that security is on.
//! * All that belongs to a user is in one record, so it goes with the user in one change.
//! * A membership names the id of its group. It does not come to life again when a group of the
//!   same name is added later.
//! * Neither a password nor a hash is in an error, in debug output or in an answer as JSON.
//! * Everything is bounded ([`bounds`]), also what a stored hash can cost.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod address_range;
pub mod bounds;
pub mod console;
mod denial;
mod effective_grants;
mod name;
mod password;
mod record;
mod roles;
mod shown;
mod source;
mod unreadable_record;
mod user;

pub use address_range::{AddressRange, BadAddressRange};
pub use denial::{denial, denial_on_any};
pub use effective_grants::EffectiveGrants;
pub use password::{BadPassword, StoredPassword};
pub use record::validate;
pub use roles::Roles;
pub use source::{Source, SourceKind};
pub use unreadable_record::UnreadableRecord;
pub use user::{Group, User};

/// The namespace of the metadata that has the records.
pub const NAMESPACE: &str = "security";

/// The key of the record that says whether security is on. It also has the list of ciphers.
pub const STATUS_KEY: &str = "status";
