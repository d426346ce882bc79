//! Search on a node that is alone: real stores, real indexes, restarts and damage.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod administration;
mod following;
mod histories;
mod key_pages;
mod node;
