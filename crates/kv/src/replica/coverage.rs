//! The questions of listings and index queries to the nodes that answer for some home partitions
//! (docs/design/replication.md §16).

use super::peers::UnreachableNode;
use super::piece::CoveragePiece;
use super::question::CoverageQuestion;
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_types::Error;
use ombak_types::time::UnixMicros;
use smallvec::SmallVec;
use std::future::ready;
use std::time::Instant;

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

/// An item of the answer to a [`CoverageRequest`].
#[derive(Debug)]
pub enum CoverageItem {
    /// A piece of what was asked for. Whether it is of one home partition, and in which order
    /// pieces come, is a matter of the question.
    Piece(CoveragePiece),
    /// Everything of a home partition was sent, and the node was full for its classes all the time.
    /// Answers in order over all home partitions of the request do without it.
    HomeDone(u32),
}

/// The answer to a [`CoverageRequest`]. Each item is made when it is asked for. Dropping the
/// stream ends the work.
pub trait CoverageStream: Send {
    /// The next item; `None` at the end of a complete answer. After an error the stream has ended,
    /// and what it gave before is right nevertheless.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<CoverageItem, Error>>>;
}

/// A node that answers parts of listings and queries: the same questions for this node and for
/// others.
pub trait CoverageClient: Send + Sync {
    /// Begins an answer. It may fail here or with its first item.
    fn open(&self, request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>>;
}

impl CoverageClient for UnreachableNode {
    fn open(&self, _request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>> {
        Box::pin(ready(Err(self.error())))
    }
}
