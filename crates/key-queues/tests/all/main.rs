//! Jobs of keys on a node that is alone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod jobs;
mod node;
