//! Work on a thread for jobs, and what the task that waits for it does in the meantime.

use super::Inner;
use crate::part::PartError;
use futures_util::future::{Either, select};
use ombak_kv::replica::{CoverageClient, CoverageItem, CoverageRequest};
use ombak_kv::{GetReply, GetRequest, Kv};
use ombak_types::{Error, StoreFailure};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// How many items of a listing wait for the worker.
const ITEMS_MAX: usize = 2;

/// A node as the threads for jobs see it. They use only what takes no lock for long that threads of
/// connections take: a thread that gives way may lose the processor while it owns a lock. For all
/// else they ask the task that waits for them.
pub(super) struct Worker {
    node: Arc<Inner>,
    ask: mpsc::Sender<Ask>,
}

/// What a worker asks for.
pub(super) enum Ask {
    /// An object of any replica.
    Get(GetRequest, oneshot::Sender<Result<GetReply, Error>>),
    /// A listing of this node.
    Listing(CoverageRequest, mpsc::Sender<Result<CoverageItem, Error>>),
}

impl Worker {
    pub(super) const fn new(node: Arc<Inner>, ask: mpsc::Sender<Ask>) -> Self {
        Self { node, ask }
    }

    pub(super) fn node(&self) -> &Inner {
        &self.node
    }

    /// Whether nobody waits for the work any more, or its time is over.
    pub(super) fn is_over(&self, deadline: Instant) -> bool {
        self.ask.is_closed() || self.node.runtime.now() >= deadline
    }

    /// Reads an object as a client would.
    pub(super) async fn get(&self, request: GetRequest) -> Result<GetReply, Error> {
        let (give, take) = oneshot::channel();
        self.ask(Ask::Get(request, give)).await?;
        take.await.map_err(|_| Error::Stopping)?
    }

    /// Lists what this node has. The listing ends with an error or when its items end.
    pub(super) async fn list(
        &self,
        request: CoverageRequest,
    ) -> Result<mpsc::Receiver<Result<CoverageItem, Error>>, Error> {
        let (give, take) = mpsc::channel(ITEMS_MAX);
        self.ask(Ask::Listing(request, give)).await?;
        Ok(take)
    }

    async fn ask(&self, ask: Ask) -> Result<(), Error> {
        self.ask.send(ask).await.map_err(|_| Error::Stopping)
    }
}

/// Waits for a worker, and does what it asks for.
pub(super) async fn serve<T>(
    kv: &Kv,
    mut asked: mpsc::Receiver<Ask>,
    mut done: oneshot::Receiver<Result<T, PartError>>,
) -> Result<T, PartError> {
    loop {
        let ask = match select(&mut done, pin!(asked.recv())).await {
            Either::Left((done, _)) => return done.unwrap_or_else(|_| Err(broken())),
            Either::Right((None, _)) => return done.await.unwrap_or_else(|_| Err(broken())),
            Either::Right((Some(ask), _)) => ask,
        };
        match ask {
            // Sending fails when the work has ended.
            Ask::Get(request, answer) => drop(answer.send(kv.get(request).await)),
            Ask::Listing(request, items) => list(kv, request, &items).await,
        }
    }
}

async fn list(kv: &Kv, request: CoverageRequest, items: &mpsc::Sender<Result<CoverageItem, Error>>) {
    let mut stream = match kv.local_replica().open(request).await {
        Ok(stream) => stream,
        Err(error) => return drop(items.send(Err(error)).await),
    };
    while let Some(item) = stream.next().await {
        if items.send(item).await.is_err() {
            break;
        }
    }
}

/// The work panicked, or its threads have stopped.
fn broken() -> PartError {
    PartError::Lost(StoreFailure::internal("the work on a part of a job broke down; the log says where").into())
}
