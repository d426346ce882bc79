//! What operators see of an engine: its health, its hot keys, its work and its memory. The methods
//! of [`Kv`](crate::Kv) return these types.

pub use crate::engine::ReplicaMemoryStatus;
pub use crate::hot::{HotBucket, HotKey, HotReport, LargeObject, Name};
pub use crate::interface::{EndedJob, Health, RequestCounts, TopOfNode};
