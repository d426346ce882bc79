//! Parts of listings, index queries and other coverage questions that nodes answer for each other.
//!
//! What is asked is the business of `ombak_kv::coverage`: this module carries any question that is
//! registered there.
//!
//! An answer is a stream of items. The asking node grants a window of bytes, so a node never works
//! far ahead of a slow reader. When the asking node drops the stream, the work at the other node
//! ends with its present piece.

pub(crate) mod messages;
mod remote;
mod service;

pub(crate) use remote::RemoteCoverage;
pub(crate) use service::COVERAGE;

/// How many bytes a node may send ahead of what was consumed. Half of it holds the longest message
/// of an answer, which has twice [`ITEM_BYTES_MAX`]. The asking node has room for 455 such windows
/// of one other node.
const WINDOW_BYTES: usize = 576 << 10;
/// About how many bytes an item has at most, unless a single name or entry is longer. A longer one
/// travels in parts of this length.
const ITEM_BYTES_MAX: usize = 128 << 10;
/// The longest item of another node that is put together again. An index entry is a part of an
/// object, and a larger object does not travel between nodes either.
const WHOLE_ITEM_BYTES_MAX: usize = 64 << 20;
