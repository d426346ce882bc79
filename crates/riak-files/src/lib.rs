//! Readers of the files that Riak's own backends write, for `ombak import`.
//!
//! What it is: [`bitcask`] reads Riak's bitcask directories. Readers for leveled and eleveldb will
//! join it.
//!
//! What it is not: none of these formats is a format of Ombak. This crate knows nothing about
//! Ombak's stores, except the name of the file that tells an Ombak store from Riak's bitcask.
//!
//! Invariant: a reader changes nothing in the directories that it reads.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod bitcask;
