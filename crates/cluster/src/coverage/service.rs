//! Answers parts of listings and queries of other nodes.

use super::ITEM_BYTES_MAX;
use crate::replica::ReplicaCounters;
use crate::replica::failure::{MALFORMED, REPLICA_ERROR};
use crate::service_numbers::COVERAGE;
use crate::wire::{decode_coverage_request, encode_coverage_item, encode_error, split_coverage_item};
use bytes::Bytes;
use ombak_kv::{CoverageClient, CoverageRequest, Kv};
use ombak_peer::connection::TwoServices;
use ombak_peer::mux::Body;
use ombak_peer::{Incoming, RefusalCode, Responder, Services};
use ombak_ring::RingVersion;
use ombak_runtime::{Runtime, within};
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// The service of a node for the listings and queries of other nodes.
pub(crate) struct CoverageService {
    kv: Kv,
    runtime: Arc<dyn Runtime>,
    counters: Arc<ReplicaCounters>,
    under_way: AtomicUsize,
    /// How many of them do not wait for the asking node.
    worked_on: AtomicUsize,
    is_draining: AtomicBool,
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

/// An answer that counts as under way until this is dropped.
struct UnderWay(Arc<CoverageService>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CoverageService {
    pub(crate) fn new(kv: Kv, runtime: Arc<dyn Runtime>, counters: Arc<ReplicaCounters>) -> Arc<Self> {
        let (under_way, worked_on) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { kv, runtime, counters, under_way, worked_on, is_draining: AtomicBool::new(false) })
    }

    /// Registers the service.
    pub(crate) fn register(self: &Arc<Self>, services: &mut Services) -> Result<(), TwoServices> {
        let this = Arc::clone(self);
        let serve = move |request: Incoming, answer| this.serve(&request, answer);
        services.register(COVERAGE, "parts of listings and queries", Arc::new(serve))
    }

    /// Refuses further requests, and ends the answers that are under way: other replicas go on.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    /// The number of answers that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    fn serve(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let before = self.under_way.fetch_add(1, Ordering::SeqCst);
        let under_way = UnderWay(Arc::clone(self));
        if self.is_draining.load(Ordering::SeqCst) {
            return answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new());
        }
        if before >= ANSWERS_MAX || self.worked_on.load(Ordering::SeqCst) >= WORKED_ON_MAX {
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
        self.runtime.spawn(Box::pin(under_way.answer(question, answer)));
    }
}

impl UnderWay {
    async fn answer(self, question: CoverageRequest, mut answer: Responder) {
        match self.send_items(question, &mut answer).await {
            Ok(()) => answer.answer(Body::new()),
            Err(Error::Stopping) => answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new()),
            Err(error) => answer.refuse(REPLICA_ERROR, encode_error(&error)),
        }
    }

    async fn send_items(&self, question: CoverageRequest, answer: &mut Responder) -> Result<(), Error> {
        let mut stream = self.0.kv.local_replica().open(question).await?;
        loop {
            // The place is free again when the piece is made.
            let piece = {
                let _place = Place::take(&self.0);
                stream.next().await
            };
            let Some(piece) = piece else { return Ok(()) };
            let items = encode_coverage_item(&piece?, ITEM_BYTES_MAX).into_iter();
            for item in items.flat_map(|item| split_coverage_item(item, 2 * ITEM_BYTES_MAX)) {
                if self.0.is_draining.load(Ordering::SeqCst) {
                    return Err(Error::Stopping);
                }
                self.send(item, answer).await?;
            }
        }
    }

    /// Sends an item as soon as the asking node takes it. Fails if the node is gone, or if it takes
    /// nothing while many answers are under way.
    async fn send(&self, item: Body, answer: &mut Responder) -> Result<(), Error> {
        let runtime = &*self.0.runtime;
        let mut sending = pin!(answer.send_item(item));
        loop {
            match within(runtime, Some(runtime.now() + STALL), sending.as_mut()).await {
                Ok(sent) => return sent.map_err(|_| Error::Timeout),
                Err(_) if self.0.under_way() > CROWD => return Err(gives_way()),
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
