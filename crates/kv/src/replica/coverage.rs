//! The questions of listings and index queries to the nodes that answer for some home partitions
//! (docs/design/replication.md §16).

use super::peers::UnreachableNode;
use crate::query::{IndexMatch, IndexQuery};
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error};
use smallvec::SmallVec;
use std::future::ready;
use std::time::Instant;

/// What a part answers with.
#[derive(Clone, Debug)]
pub enum CoverageQuestion {
    /// The keys of a bucket.
    Keys(Bucket),
    /// The buckets of a type.
    Buckets(Bytes),
    /// Index entries or keys of a bucket, in order. The pattern has been applied to what comes
    /// back, and the maximum number of results counts for each node.
    Entries(IndexQuery),
}

/// The classes of one home partition (docs/design/replication.md §1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageHome {
    /// The home partition.
    pub home: u32,
    /// The n of each class, ascending.
    pub classes: SmallVec<[u32; 4]>,
}

/// A part of a listing or query: what one node answers.
#[derive(Clone, Debug)]
pub struct CoverageRequest {
    /// What is asked.
    pub question: CoverageQuestion,
    /// The home partitions that the node answers for, in the order in which it answers.
    pub homes: Vec<CoverageHome>,
    /// The version of a placement of which all these homes are as the asking node planned with: the
    /// latest of their home versions. The answer ends when one of them changes.
    pub ring: RingVersion,
    /// When the listing began, for the whole of it: what had expired by then is left out.
    pub begun: UnixMicros,
    /// When nobody needs the answer any more; `None` means never.
    pub deadline: Option<Instant>,
}

/// A piece of the answer to a [`CoverageRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum CoverageItem {
    /// Keys or buckets of a home partition, in no order.
    Names {
        /// The home partition.
        home: u32,
        /// The names, each once.
        names: Vec<Bytes>,
    },
    /// All names of a home partition were sent, and the node was full for its classes all the time.
    HomeDone(u32),
    /// Entries of all home partitions of the request, merged in order. None that comes later is
    /// smaller.
    Entries(Vec<IndexMatch>),
}

/// The answer to a [`CoverageRequest`]. Each piece is made when it is asked for. Dropping the
/// stream ends the work.
pub trait CoverageStream: Send {
    /// The next piece; `None` at the end of a complete answer. After an error the stream has ended,
    /// and what it gave before is right nevertheless.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<CoverageItem, Error>>>;
}

/// A node that answers parts of listings and queries: the same questions for this node and for
/// others.
pub trait CoverageClient: Send + Sync {
    /// Begins an answer. It may fail here or with its first piece.
    fn open(&self, request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>>;
}

impl CoverageClient for UnreachableNode {
    fn open(&self, _request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>> {
        Box::pin(ready(Err(self.error())))
    }
}
