//! Asks another node for parts of a listing or query.

use super::messages::{CoverageMessage, decode_coverage_item, decode_coverage_message, encode_coverage_request};
use super::service::COVERAGE;
use super::{WHOLE_ITEM_BYTES_MAX, WINDOW_BYTES};
use crate::replica::Caller;
use crate::replica::failure::{error_of, undecodable};
use crate::wire::Malformed;
use bytes::Bytes;
use ombak_kv::replica::{CoverageClient, CoverageItem, CoverageQuestion, CoverageRequest, CoverageStream};
use ombak_peer::frame::Priority;
use ombak_peer::{ItemStream, Lane, Outgoing, RingVersion, StreamPart};
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::sync::Arc;
use std::time::Duration;

/// The deadline of a listing that has none of its own.
const WITHOUT_DEADLINE: Duration = Duration::from_secs(24 * 3600);

/// The part of another node in listings and queries.
pub(crate) struct RemoteCoverage {
    node: NodeId,
    caller: Arc<Caller>,
}

impl RemoteCoverage {
    pub(crate) fn new(node: NodeId, caller: Arc<Caller>) -> Self {
        Self { node, caller }
    }

    /// Whether the node may be asked. One that is not connected says nothing of itself; the call
    /// connects it.
    fn knows(&self, question: &CoverageQuestion) -> bool {
        let transport = &self.caller.transport;
        transport.live_session(self.node).is_none() || transport.shares(self.node, question.capability())
    }
}

impl CoverageClient for RemoteCoverage {
    fn open(&self, request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>> {
        let (node, caller) = (self.node, Arc::clone(&self.caller));
        if !self.knows(&request.question) {
            return Box::pin(std::future::ready(Err(not_known(node, &request.question))));
        }
        Box::pin(async move {
            let outgoing = Outgoing {
                lane: Lane::Bulk,
                service: COVERAGE.number,
                // Clients wait for listings, and for nothing else on this connection.
                priority: Priority::Request,
                ring: RingVersion { lineage: request.ring.lineage, number: request.ring.number },
                age: Duration::ZERO,
                deadline: request.deadline.unwrap_or_else(|| caller.runtime.now() + WITHOUT_DEADLINE),
                body: encode_coverage_request(&request),
            };
            caller.counters.listing_sent();
            let opened = caller.transport.call_streamed(node, outgoing, WINDOW_BYTES).await;
            let items = opened.map_err(|failure| busy_if_crowded(error_of(node, failure)))?;
            Ok(Box::new(RemoteStream { node, items, parts: Vec::new() }) as Box<dyn CoverageStream>)
        })
    }
}

/// Another replica may know the question.
fn not_known(node: NodeId, question: &CoverageQuestion) -> Error {
    let why = format!("an earlier version of ombak runs on node {node}, which cannot be asked for {}", question.name());
    StoreFailure::new(StoreFailureKind::Unreachable, why).into()
}

/// There is no room for another answer at this moment, here or at the other node. The listing waits
/// for a moment and asks again, because answers whose clients do not read soon make room.
fn busy_if_crowded(error: Error) -> Error {
    match error {
        Error::Overload => StoreFailure::new(StoreFailureKind::Busy, "too many listings are under way").into(),
        other => other,
    }
}

struct RemoteStream {
    node: NodeId,
    items: ItemStream,
    /// The parts of a long item that have come so far.
    parts: Vec<u8>,
}

impl RemoteStream {
    async fn advance(&mut self) -> Result<Option<CoverageItem>, Error> {
        loop {
            match self.items.next().await.map_err(|failure| busy_if_crowded(error_of(self.node, failure)))? {
                StreamPart::End(_) => return Ok(None),
                StreamPart::Item(message) => {
                    let item = self.take(&message).map_err(|why| undecodable(self.node, &why))?;
                    if item.is_some() {
                        return Ok(item);
                    }
                }
            }
        }
    }

    /// Takes a message. Returns the item that is whole with it.
    fn take(&mut self, message: &Bytes) -> Result<Option<CoverageItem>, String> {
        let text = |why: Malformed| why.to_string();
        let (bytes, is_last) = match decode_coverage_message(message).map_err(text)? {
            CoverageMessage::Item(item) => return Ok(Some(item)),
            CoverageMessage::Part { bytes, is_last } => (bytes, is_last),
        };
        if self.parts.len() + bytes.len() > WHOLE_ITEM_BYTES_MAX {
            return Err("an item is too long".into());
        }
        self.parts.extend_from_slice(&bytes);
        if !is_last {
            return Ok(None);
        }
        let whole = std::mem::take(&mut self.parts).into();
        decode_coverage_item(&whole).map(Some).map_err(text)
    }
}

impl CoverageStream for RemoteStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<CoverageItem, Error>>> {
        Box::pin(async move { self.advance().await.transpose() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The planner gives the part to another replica after such an error.
    #[test]
    fn a_node_that_does_not_know_a_question_counts_as_one_that_cannot_be_reached() {
        let error = not_known(NodeId::new(7), &CoverageQuestion::buckets(Bytes::from_static(b"t")));
        let Error::Storage(failure) = error else { panic!("another kind") };
        assert_eq!(failure.kind, StoreFailureKind::Unreachable);
        assert!(failure.text.contains("cannot be asked for buckets"), "{}", failure.text);
    }
}
