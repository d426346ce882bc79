//! Brings copies back to where they belong, and removes what nobody needs any more
//! (docs/design/replication.md §1, 2, 4, 5, 6).
//!
//! What it is: one queue of work for everything that must be pushed to other nodes and proved
//! there, and the answers to other nodes that do the same. It is built over an engine that it knows
//! as a [`RepairHost`], and [`Repair`] is its handle.
//!
//! ```text
//!   Repair ----> worker -------> kinds  (what is due, and how one piece is done)
//!     |            |               |      hand back, owed marks, orders, proofs, filling,
//!     |            |               v      unreadable versions
//!     |            |             fold ---> send ---> TransferClient of another node
//!     |            v
//!     |          rounds -------------------------> ReapingClient of all members
//!     |
//!     |----> exchange ---------------------------> ExchangeClient of another primary
//!     v
//!   Answers  <---- RepairAnswers <---- LocalReplica of the engine <---- another node
//! ```
//!
//! `hand_back` gives back what this node holds for others, and `fill` fills the classes that are
//! not full. `unreadable_repair` brings back what this node cannot read, and `unreadable` lets an
//! operator give it up. `take_back` finds what restored stores hold that other replicas have, too.
//! `prove` brings classes to their new nodes while the ring changes. `worker` does the work beside
//! the requests, and `kinds` lists what kinds of work there are. `compare` answers the questions of
//! other nodes. `rounds` removes tombstones and expired versions. `exchange` finds differences
//! between primaries that nobody reads; it is off unless somebody starts it.
//!
//! What it is not: it decides nothing about quorums. What is known of copies, and what requests
//! note about them, is in the engine (`kv/src/transfer` and `kv/src/reaping`). It reaches other
//! nodes only through [`TransferClient`](ombak_kv::replica::TransferClient) and
//! [`ReapingClient`](ombak_kv::replica::ReapingClient).
//!
//! Invariants:
//! * A copy leaves a store only after every primary of its class proved that it durably holds that
//!   version or a descendant, and only if the copy is still that version.
//! * Everything goes by class, never by partition alone.
//! * What a restored store held at its start is pushed to nobody, unless another replica has it,
//!   too, or an operator wants it.
//! * What cannot be read leaves a store only if every primary has exactly that version, if another
//!   version takes its place, or if an operator gives it up.
//! * The engine owns the answers, and neither these nor the worker own the engine: the worker is
//!   gone before the stores close.
//!
//! [`RepairHost`]: ombak_kv::repair_host::RepairHost

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod answers;
mod compare;
mod counts;
mod exchange;
mod feed_look;
mod figures;
mod fill;
mod fold;
mod hand_back;
mod hand_back_ranges;
mod index_repair;
mod key_choice;
mod kinds;
mod left_out;
mod orders;
mod progress;
mod prove;
mod ranges;
mod repair;
mod ring_change;
mod rounds;
mod send;
mod set_aside_report;
mod set_back;
mod take_back;
mod throttle;
mod unreadable;
mod unreadable_repair;
mod work;
mod worker;

pub use exchange::{
    ClassExchanges, DroppedCopy, DroppedReport, DroppedVersion, ExchangeAnswer, ExchangeClient, ExchangeConfig,
    ExchangeFigures, ExchangePart, ExchangePeers, ExchangeQuestion, ExchangeStatus, GROUPS, GroupSet, KeyHeld,
    KeysAnswer, KeysQuestion, LIST_MIXES_MAX, ListQuestion, MarkQuestion, NO_SLOTS, NodeRepair, OUTLINE_NUMBERS,
    RANGES, RANGES_IN_GROUP, RootAnswer, RootQuestion, SOME_RANGES_MAX, Standing, WaitingExchange,
};
pub use figures::Settled;
pub use index_repair::{INDEX_REPAIR_SPEED_MAX, IndexRepairState, IndexRepairStatus};
pub use key_choice::KeyChoice;
pub use progress::{Transfer, TransferKind};
pub use repair::Repair;
pub use set_aside_report::{SetAsideReport, SetAsideVersion};
pub use set_back::find_set_back;
pub use unreadable::{UnreadableReport, UnreadableVersion};

/// The engine of the node whose copies are worked on.
pub(crate) type Host = std::sync::Arc<dyn ombak_kv::repair_host::RepairHost>;
