//! How a node comes into a cluster, and how it stays out of one.
//!
//! What it is: a new node asks the peers of its configuration before it serves ([`newcomer`]). A
//! node that is alone joins the cluster of another node, and leaves it again before the commit
//! ([`join`]). A join whose end a node did not learn is taken back ([`unfinished_join`]). Until the
//! commit a node looks whether it still joins ([`withdrawal_watch`]). A node that has just come
//! waits until it has heard of the others ([`members_up`]), and one that has just started until it
//! knows what they have decided ([`catching_up`]). [`description`] is what a node is told that
//! wants to join.
//!
//! What it is not: it moves no partitions. A join is only staged; a plan and a commit make it
//! effective, and `ring_change` carries that out. What a state of the metadata says is put in force
//! by `following`.
//!
//! Invariants:
//! * A node has one log at a time. A loss of power leaves it alone as it was, or a member.
//! * A node that begins to join notes that durably before it asks, and forgets it only when the
//!   join has ended.
//! * Until the commit, what the node brings stays where it is.
//!
//! Rules: docs/design/replication.md §8 (new nodes) and §15 (what a node brings).

pub(super) mod catching_up;
pub(super) mod description;
pub(super) mod join;
pub(super) mod members_up;
pub(super) mod newcomer;
pub(super) mod state;
pub(super) mod unfinished_join;
pub(super) mod withdrawal_watch;
