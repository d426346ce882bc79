//! The transport between the nodes of a cluster.
//!
//! What it is: it carries opaque requests and answers of numbered services over a few connections
//! for each pair of nodes. Each layer is usable and tested by itself:
//!
//! * [`frame`] is the layout of the bytes on a connection.
//! * [`handshake`] proves that both sides know the cluster's secret and exchanges who they are.
//! * [`clock`] relates the clocks of the two sides, so that a request's age survives a pause.
//! * [`mux`] shares one connection between many requests.
//! * [`connection`] runs a connection over a stream of bytes and calls services.
//! * [`peers`] has all connections of a node, and opens them on demand.
//!
//! What it is not: it knows no keys, objects, rings or quorums. It starts no retry of its own: a
//! request is sent at most once, over one connection, and dies with that connection
//! (docs/design/replication.md §6 and §12). It does not encrypt: whoever can change packets between
//! two nodes can change requests after the handshake, unless the network below encrypts, as
//! `ombak_tls::TlsNetwork` does.
//!
//! Invariants:
//! * [`frame`], [`handshake`], [`clock`] and [`mux`] have no I/O, read no clock and draw no random
//!   numbers.
//! * No bytes of a peer cause a panic, or an allocation that the limits in force do not cover.
//! * A stranger, who does not know the secret, learns nothing except which protocol versions the
//!   node speaks.
//! * Every queue counts its bytes and its entries, and refuses more at once.
//! * A caller learns whether its request was provably not executed.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod clock;
pub mod connection;
mod counters;
mod cursor;
pub mod error;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
pub mod handshake;
pub mod identity;
pub mod mux;
pub mod peers;
mod sessions;

pub use connection::{Incoming, ItemStream, Responder, Service, Services, StreamPart};
pub use counters::PeerCounts;
pub use error::{PeerError, RefusalCode};
pub use identity::{CAPABILITIES_MAX, CAPABILITY_BYTES_MAX, Channel, Lane, NodeIdentity, RingVersion};
pub use ombak_types::NodeId;
pub use peers::{IdentifyError, Outgoing, Peers, PeersConfig, PeersParts, PendingCall};
pub use sessions::{Admission, KeepOlderSession, LiveSession};
