//! The keys and buckets with the most requests, and the largest objects, of the last moments.
//!
//! What it is: [`Sketch`] keeps the heaviest names of a stream in bounded memory, with a known
//! error. [`HotKeys`] feeds it with a sample of the requests that this node coordinates. It has a
//! shard for each few network threads, and a thread that finds its shard locked goes on without
//! it.
//!
//! What it is not: it does not count exactly. Statistics do that, without names.

mod hot_keys;
mod largest;
mod name;
mod report;
mod sampler;
mod shard;
mod sketch;

pub(crate) use hot_keys::HotKeys;
pub use name::Name;
pub use report::{HotBucket, HotKey, HotReport, LargeObject};
