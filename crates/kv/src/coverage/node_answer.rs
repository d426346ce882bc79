//! The answer of one node, as the run that gathers it sees it.

use super::planner::Planner;
use crate::engine::Engine;
use crate::replica::{CoverageClient, CoverageItem, CoverageRequest, CoverageStream};
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::sync::Arc;
use std::time::Duration;

/// How often a wait for a node looks whether the node is still up.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// A node that answers.
pub(super) struct NodeAnswer {
    engine: Arc<Engine>,
    pub(super) node: NodeId,
    client: Arc<dyn CoverageClient>,
    /// The request until it is sent.
    request: Option<CoverageRequest>,
    stream: Option<Box<dyn CoverageStream>>,
}

/// An item of a node's answer, with the answer that it belongs to. `None` at its end.
pub(super) type NextItem<T> = (T, NodeAnswer, Option<Result<CoverageItem, Error>>);

impl NodeAnswer {
    pub(super) fn new(planner: &Planner, node: NodeId, request: CoverageRequest) -> Self {
        let client = planner.client(node);
        Self { engine: Arc::clone(&planner.engine), node, client, request: Some(request), stream: None }
    }

    /// Waits for the next item. `of` comes back with it.
    pub(super) fn item<T: Send + 'static>(mut self, of: T) -> BoxFuture<'static, NextItem<T>> {
        Box::pin(async move {
            let item = self.next().await;
            (of, self, item)
        })
    }

    async fn next(&mut self) -> Option<Result<CoverageItem, Error>> {
        if let Some(request) = self.request.take() {
            self.engine.coverage.counts.asked();
            let opening = self.client.open(request);
            match while_up(&self.engine, self.node, opening).await.and_then(|opened| opened) {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => return Some(Err(error)),
            }
        }
        let stream = self.stream.as_mut()?;
        match while_up(&self.engine, self.node, stream.next()).await {
            Ok(item) => item,
            Err(error) => Some(Err(error)),
        }
    }
}

/// Waits for a node as long as it is up. A node that hangs is given up when the others take it for
/// down, long before the deadline of a listing.
async fn while_up<T>(engine: &Engine, node: NodeId, mut work: BoxFuture<'_, T>) -> Result<T, Error> {
    let runtime = &*engine.config.runtime;
    loop {
        let look_at = Some(runtime.now() + LOOK_INTERVAL);
        if let Ok(done) = within(runtime, look_at, work.as_mut()).await {
            return Ok(done);
        }
        if node != engine.identity.node_id && !engine.config.peers.is_up(node) {
            let text = format!("node {node} went down while it answered a listing");
            return Err(StoreFailure::new(StoreFailureKind::Unreachable, text).into());
        }
    }
}
