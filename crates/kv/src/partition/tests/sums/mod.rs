//! The sums of a partition are those of a fold over its store, whatever happens.

mod differences;
mod histories;
mod restarts;
mod threads;
pub(super) mod world;
