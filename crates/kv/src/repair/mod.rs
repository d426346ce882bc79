//! Brings copies back to where they belong, and removes what nobody needs any more
//! (docs/design/replication.md §1, 2, 4, 6).
//!
//! What it is: one queue of work for everything that must be pushed to other nodes and proved
//! there. `hand_back` gives back what this node holds for others, and `fill` fills the classes that
//! are not full. `unreadable_repair` brings back what this node cannot read, and `unreadable` lets
//! an operator give it up. `take_back` finds what restored stores hold that other replicas have,
//! too. `prove` brings classes to their new nodes while the ring changes. `worker` does the work,
//! beside the requests. `compare` answers the questions of other nodes. `rounds` removes tombstones
//! and expired versions.
//!
//! What it is not: it decides nothing about quorums. What is known of copies, and what requests
//! note about them, is in `transfer` and `reaping`. It reaches other nodes only through
//! [`TransferClient`](crate::TransferClient) and [`ReapingClient`](crate::ReapingClient).
//!
//! Invariants:
//! * A copy leaves a store only after every primary of its class proved that it durably holds that
//!   version or a descendant, and only if the copy is still that version.
//! * Everything goes by class, never by partition alone.
//! * What a restored store held at its start is pushed to nobody, unless another replica has it,
//!   too, or an operator wants it.
//! * What cannot be read leaves a store only if every primary has exactly that version, if another
//!   version takes its place, or if an operator gives it up.

mod compare;
mod figures;
mod fill;
mod fold;
mod hand_back;
mod hand_back_ranges;
mod prove;
mod ring_change;
mod rounds;
mod send;
mod set_aside_report;
mod take_back;
mod unreadable;
mod unreadable_repair;
mod worker;

pub use figures::Settled;
pub(crate) use rounds::Driver;
pub use set_aside_report::{SetAsideReport, SetAsideVersion};
pub use unreadable::{UnreadableReport, UnreadableVersion};
