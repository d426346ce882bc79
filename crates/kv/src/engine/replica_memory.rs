//! The memory of large versions that travel between nodes.
//!
//! What it is: a bound in bytes for all of them together: versions that this node has read for
//! other nodes or for its own requests over several nodes, and versions that others have sent. The
//! bytes carry their share with them: it is given back when the last reference to them goes away,
//! wherever that is. What does not fit is refused with `overload`.
//!
//! What it is not: small versions are not counted, because the number of requests bounds them. The
//! requests and answers of clients have a budget of their own.

use crate::requests::MemoryReservation;
use bytes::Bytes;
use ombak_types::Error;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Versions up to this many bytes are not counted.
pub(crate) const UNCOUNTED_BYTES_MAX: u64 = 256 << 10;

/// The bound, and what is held of it. Cloning is cheap, and clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaMemory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bytes_max: u64,
    used: AtomicU64,
    most: AtomicU64,
    refused: AtomicU64,
}

/// The state of the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaMemoryStatus {
    /// The bytes that are held.
    pub bytes_used: u64,
    /// The most bytes that were held at a time.
    pub bytes_used_most: u64,
    /// How often something was refused.
    pub refused_total: u64,
}

/// A share of the bound, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: ReplicaMemory,
    bytes: u64,
}

impl ReplicaMemory {
    pub(super) fn new(bytes_max: u64) -> Self {
        let (used, most, refused) = Default::default();
        Self(Arc::new(Shared { bytes_max, used, most, refused }))
    }

    /// Takes a share, or refuses. A single version always fits.
    pub(crate) fn take(&self, bytes: u64) -> Result<Lease, Error> {
        let Shared { bytes_max, used, most, refused } = &*self.0;
        let grown = |held: u64| Some(held.saturating_add(bytes)).filter(|&all| held == 0 || all <= *bytes_max);
        match used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, grown) {
            Ok(before) => {
                most.fetch_max(before.saturating_add(bytes), Ordering::SeqCst);
                Ok(Lease { memory: self.clone(), bytes })
            }
            Err(_) => {
                refused.fetch_add(1, Ordering::SeqCst);
                Err(Error::Overload)
            }
        }
    }

    /// Counts bytes that have arrived, if they are many.
    pub(crate) fn hold(&self, bytes: Bytes) -> Result<Bytes, Error> {
        let length = bytes.len() as u64;
        if length <= UNCOUNTED_BYTES_MAX { Ok(bytes) } else { Ok(self.take(length)?.hold(bytes)) }
    }

    pub(crate) fn status(&self) -> ReplicaMemoryStatus {
        ReplicaMemoryStatus {
            bytes_used: self.0.used.load(Ordering::SeqCst),
            bytes_used_most: self.0.most.load(Ordering::SeqCst),
            refused_total: self.0.refused.load(Ordering::SeqCst),
        }
    }
}

impl Lease {
    /// Bytes that keep this share as long as they live.
    pub(crate) fn hold(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Held { bytes, _lease: self })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.memory.0.used.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

struct Held {
    bytes: Bytes,
    _lease: Lease,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The memory in which a put that another node has forwarded keeps the version that it replaces.
#[derive(Debug)]
pub(crate) struct LeasedMemory {
    memory: ReplicaMemory,
    lease: Option<Lease>,
}

impl LeasedMemory {
    pub(crate) const fn new(memory: ReplicaMemory) -> Self {
        Self { memory, lease: None }
    }
}

impl MemoryReservation for LeasedMemory {
    fn reserve(&mut self, bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        self.lease = None;
        let taken = self.memory.take(bytes).map(|lease| self.lease = Some(lease));
        Box::pin(ready(taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_give_their_share_back_when_the_last_reference_goes() {
        let memory = ReplicaMemory::new(1 << 20);
        let large = memory.hold(Bytes::from(vec![1; 700 << 10])).unwrap();
        let part = large.slice(5..9);
        assert_eq!(memory.hold(Bytes::from(vec![1; 400 << 10])), Err(Error::Overload));
        assert!(memory.hold(Bytes::from(vec![1; 256 << 10])).is_ok(), "it is not counted");
        drop(large);
        assert_eq!(memory.status().bytes_used, 700 << 10);
        assert_eq!(part[..], [1; 4]);
        drop(part);
        let status = ReplicaMemoryStatus { bytes_used: 0, bytes_used_most: 700 << 10, refused_total: 1 };
        assert_eq!(memory.status(), status);
        assert!(memory.hold(Bytes::from(vec![1; 3 << 20])).is_ok(), "a single version always fits");
    }
}
