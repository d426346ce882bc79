//! Asks another node for parts of a listing or query.

use super::{WHOLE_ITEM_BYTES_MAX, WINDOW_BYTES};
use crate::replica::Caller;
use crate::replica::failure::{error_of, undecodable};
use crate::service_numbers::COVERAGE;
use crate::wire::{CoverageMessage, Malformed, decode_coverage_item, decode_coverage_message, encode_coverage_request};
use bytes::Bytes;
use ombak_kv::{CoverageClient, CoverageItem, CoverageRequest, CoverageStream};
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
}

impl CoverageClient for RemoteCoverage {
    fn open(&self, request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>> {
        let (node, caller) = (self.node, Arc::clone(&self.caller));
        Box::pin(async move {
            let outgoing = Outgoing {
                lane: Lane::Bulk,
                service: COVERAGE,
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
