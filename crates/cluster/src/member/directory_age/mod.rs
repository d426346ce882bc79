//! Whether the data directory of a node is the newest one (docs/design/replication.md §8).
//!
//! What it is: the place where the age of a directory is judged. [`own_directory`] judges this
//! node's directory by what the other members know of it. [`known_starts`] remembers what this node
//! knows of the others' directories and answers their questions. [`admission`] refuses a peer whose
//! directory is older than the metadata knows, and a node that was removed. [`milestones`] keep a
//! directory apart from copies of it, and [`asking_transport`] asks before messages pass.
//!
//! What it is not: it carries out nothing. What a node does that takes no part is in
//! `following::taking_no_part`.
//!
//! Invariants:
//! * A node judges its own directory by itself. A member only says what it knows.
//! * No message of the metadata passes between two nodes before one has asked the other.
//! * A node that has once been found to have an older directory, or to be removed, stays out until
//!   its process ends.
//! * A member that does not answer holds nobody up.

pub(super) mod admission;
pub(super) mod asking_transport;
pub(super) mod known_starts;
pub(super) mod milestones;
pub(super) mod own_directory;
