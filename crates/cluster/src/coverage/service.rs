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
use ombak_runtime::Runtime;
use ombak_types::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tracing::warn;

/// How many answers may be under way. Each holds a snapshot of a store.
const ANSWERS_MAX: usize = 512;

/// The service of a node for the listings and queries of other nodes.
pub(crate) struct CoverageService {
    kv: Kv,
    runtime: Arc<dyn Runtime>,
    counters: Arc<ReplicaCounters>,
    under_way: AtomicUsize,
    is_draining: AtomicBool,
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
        let (under_way, is_draining) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { kv, runtime, counters, under_way, is_draining })
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
        if before >= ANSWERS_MAX {
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
        while let Some(piece) = stream.next().await {
            let items = encode_coverage_item(&piece?, ITEM_BYTES_MAX).into_iter();
            for item in items.flat_map(|item| split_coverage_item(item, 2 * ITEM_BYTES_MAX)) {
                if self.0.is_draining.load(Ordering::SeqCst) {
                    return Err(Error::Stopping);
                }
                // The caller is gone.
                if answer.send_item(item).await.is_err() {
                    return Err(Error::Timeout);
                }
            }
        }
        Ok(())
    }
}
