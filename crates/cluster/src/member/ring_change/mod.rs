//! How the ring of a cluster changes.
//!
//! What it is: staged changes, and the cluster as they find it ([`staged`]). While no member holds
//! an object, a change takes effect at once ([`closing`]). Otherwise the leader of the metadata
//! drives it by steps ([`driver`]), also the leave of a member.
//!
//! What it is not: it claims no partitions and words no refusals (`ombak_ring`), and moves no
//! objects (`ombak_kv`). The commands of operators are in `admin`.
//!
//! Invariants:
//! * Nothing depends on what a driver remembers: a new leader begins with a new round of reports.
//! * A step names the state that it was decided from, so a driver that leads no more does no harm.
//! * Only the metadata ends a closing.
//!
//! Rules: docs/design/ring-changes.md.

pub(super) mod closing;
pub(super) mod driver;
pub(super) mod member_change;
pub(super) mod pace;
pub(super) mod staged;
pub(super) mod state;
