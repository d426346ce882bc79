//! Told seqs: what the stores of other nodes were known to have on their disks
//! (docs/design/anti-entropy.md §3).
//!
//! What it is: for each other node and partition, the highest pair of store id and seq that the
//! node has told after a sync. `seqs` keeps them and `file` makes them durable. `set_back` compares
//! what other nodes were told with the stores of this node (`own_stores`), and so finds a store
//! that was set back.
//!
//! What it is not: it sends nothing. Votes, answers and orders of reaping carry told seqs, and so
//! do sums and the first words of a connection.
//!
//! Invariants:
//! * A told seq is on the disk of a primary before the primary removes a version because of it.
//! * Of one store the highest seq stays. A node that tells of another store has a new one.
//! * The number of told seqs is bounded.

mod file;
mod own_stores;
mod seqs;
mod set_back;
#[cfg(test)]
mod tests;

pub(crate) use own_stores::OwnStores;
pub use seqs::ToldSeqs;
pub use set_back::SetBack;
