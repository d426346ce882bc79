//! What two members tell each other when a connection between them begins: for each store of the
//! other one, the highest seq that this node was told (docs/design/anti-entropy.md §3).
//!
//! What it is: the first words of a connection (`ombak_peer::handshake::FirstWords`) and their
//! bytes. A node that hears a seq which its store has lost counts that store as restored, before it
//! sends that peer a request and before it executes one of that peer's.
//!
//! What it is not: it keeps nothing and compares nothing. The engine does
//! (`ombak_kv::repair_host::ToldSeqs`).
//!
//! Invariant: a node hears the words of a peer before anything else of a connection. So a store
//! that was set back is found out before anything of it reaches a node that was told more.

mod admission;
mod message;
mod words;

pub(crate) use admission::TellingAdmission;
