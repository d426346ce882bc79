//! Answers parts of listings and queries of other nodes.

use super::ITEM_BYTES_MAX;
use super::messages::{
    decode_coverage_item, decode_coverage_message, decode_coverage_request, encode_coverage_item,
    encode_coverage_request, split_coverage_item,
};
use crate::replica::ReplicaCounters;
use crate::replica::failure::{MALFORMED, REPLICA_ERROR};
use crate::services::{Gate, MessageKind, NodeContext, NodeService, Opened, Server, Since, UnderWay, again};
use crate::wire::encode_error;
use bytes::Bytes;
use ombak_kv::Kv;
use ombak_kv::replica::{CoverageClient, CoverageItem, CoverageRequest};
use ombak_peer::mux::Body;
use ombak_peer::{Incoming, RefusalCode, Responder};
use ombak_ring::RingVersion;
use ombak_runtime::{Runtime, within};
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tracing::warn;

/// How many answers may be worked on. One that waits until the asking node takes more of it does
/// not count, so listings whose clients do not read leave the others their places.
const WORKED_ON_MAX: usize = 1_024;
/// How many answers may be under way, with those that wait. Each has a snapshot of a store and a
/// piece of its answer.
const ANSWERS_MAX: usize = 4_096;
/// Beyond this number of answers under way, those end whose asking node takes nothing. The asking
/// node has room for a bounded number of windows of answers from one other node. It goes on with a
/// new answer when the client of the listing reads again.
const CROWD: usize = 64;
/// How long an answer waits before it looks whether it has to end.
const STALL: Duration = Duration::from_millis(500);

/// Parts of listings, index queries and other coverage questions.
pub(crate) const COVERAGE: NodeService = NodeService {
    number: 8,
    title: "parts of listings and queries",
    capability: "coverage.1",
    since: Since::Version1,
    server: Server::OfNode(open),
    messages: &[
        MessageKind {
            name: "coverage_request",
            check: |bytes| {
                again(bytes, |bytes| decode_coverage_request(bytes, RingVersion::first(1)), encode_coverage_request);
            },
        },
        MessageKind { name: "coverage_item", check: |bytes| again(bytes, decode_coverage_item, one_item) },
        // A part of an item stands for nothing by itself.
        MessageKind { name: "coverage_message", check: |bytes| drop(decode_coverage_message(bytes)) },
    ],
};

fn open(context: &NodeContext) -> Opened {
    let (kv, runtime, counters) = (context.kv.clone(), context.runtime.clone(), context.counters.clone());
    let gate = Gate::new(ANSWERS_MAX);
    let service = CoverageService { kv, runtime, counters, gate: gate.clone(), worked_on: AtomicUsize::new(0) };
    let service = Arc::new(service);
    Opened::behind(&gate, move |request, answer| service.serve(&request, answer))
}

fn one_item(item: &CoverageItem) -> Body {
    let mut whole = encode_coverage_item(item, usize::MAX);
    assert_eq!(whole.len(), 1, "{item:?}");
    whole.remove(0)
}

/// The server of a node for the listings and queries of other nodes.
struct CoverageService {
    kv: Kv,
    runtime: Arc<dyn Runtime>,
    counters: Arc<ReplicaCounters>,
    gate: Arc<Gate>,
    /// How many of the answers under way do not wait for the asking node.
    worked_on: AtomicUsize,
}

/// A place among the answers that are worked on, until this is dropped.
struct Place<'a>(&'a CoverageService);

impl<'a> Place<'a> {
    fn take(service: &'a CoverageService) -> Self {
        service.worked_on.fetch_add(1, Ordering::SeqCst);
        Self(service)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.worked_on.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CoverageService {
    fn serve(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.gate.enter(answer, &self.counters) else { return };
        if self.worked_on.load(Ordering::SeqCst) >= WORKED_ON_MAX {
            self.counters.refused_for_overload();
            return answer.overload();
        }
        let ring = RingVersion { lineage: request.ring().lineage, number: request.ring().number };
        let question = match decode_coverage_request(request.body(), ring) {
            Ok(question) if request.wants_items() => CoverageRequest { deadline: Some(request.deadline()), ..question },
            other => {
                let why = other.err().map_or_else(|| "it wants no items".to_owned(), |why| why.to_string());
                warn!(peer = %request.peer().identity.node, why, "a peer sent a listing that does not decode");
                self.counters.refused_as_malformed();
                return answer.refuse(MALFORMED, Bytes::new());
            }
        };
        self.counters.listing_served();
        self.runtime.spawn(Box::pin(Arc::clone(self).answer(under_way, question, answer)));
    }

    async fn answer(self: Arc<Self>, under_way: UnderWay, question: CoverageRequest, mut answer: Responder) {
        match self.send_items(question, &mut answer).await {
            Ok(()) => answer.answer(Body::new()),
            Err(Error::Stopping) => answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new()),
            Err(error) => answer.refuse(REPLICA_ERROR, encode_error(&error)),
        }
        drop(under_way);
    }

    async fn send_items(&self, question: CoverageRequest, answer: &mut Responder) -> Result<(), Error> {
        let mut stream = self.kv.local_replica().open(question).await?;
        loop {
            // The place is free again when the item is made.
            let item = {
                let _place = Place::take(self);
                stream.next().await
            };
            let Some(item) = item else { return Ok(()) };
            let items = encode_coverage_item(&item?, ITEM_BYTES_MAX).into_iter();
            for item in items.flat_map(|item| split_coverage_item(item, 2 * ITEM_BYTES_MAX)) {
                if self.gate.is_draining() {
                    return Err(Error::Stopping);
                }
                self.send(item, answer).await?;
            }
        }
    }

    /// Sends an item as soon as the asking node takes it. Fails if the node is gone, or if it takes
    /// nothing while many answers are under way.
    async fn send(&self, item: Body, answer: &mut Responder) -> Result<(), Error> {
        let runtime = &*self.runtime;
        let mut sending = pin!(answer.send_item(item));
        loop {
            match within(runtime, Some(runtime.now() + STALL), sending.as_mut()).await {
                Ok(sent) => return sent.map_err(|_| Error::Timeout),
                Err(_) if self.gate.under_way() > CROWD => return Err(gives_way()),
                Err(_) => {}
            }
        }
    }
}

/// The asking node may ask again at once: nothing is wrong with this one.
fn gives_way() -> Error {
    let why = "this answer waited for its reader while many others were under way";
    StoreFailure::new(StoreFailureKind::Busy, why).into()
}
