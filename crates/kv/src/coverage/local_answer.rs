//! Answers parts of listings and queries from the stores of this node.
//!
//! What is asked is the business of the question's [`LocalPart`]. This file decides whether the
//! node may answer at all, and runs the steps.

use super::local_part::{Here, LocalPart, Step};
use super::registry;
use crate::engine::Engine;
use crate::replica::{CoverageItem, CoverageRequest, CoverageStream};
use ombak_runtime::{Asker, BoxFuture, Pool, Waited};
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use std::collections::VecDeque;
use std::sync::Arc;

/// The answer of this node to one request.
pub(crate) struct LocalAnswer {
    engine: Arc<Engine>,
    request: CoverageRequest,
    /// `None` if the answer is complete, has failed, or its next step is being made.
    part: Option<Box<dyn LocalPart>>,
    /// Items that were made and not taken yet.
    ready: VecDeque<CoverageItem>,
    /// The threads that read the stores, as this answer has its share of them.
    pool: Pool,
}

impl LocalAnswer {
    /// Begins an answer. Fails if this node may not answer.
    pub(crate) fn open(engine: Arc<Engine>, request: CoverageRequest) -> Result<Self, Error> {
        if !engine.is_open() {
            return Err(Error::Stopping);
        }
        check(&engine, &request)?;
        let here = Here { engine: engine.clone(), homes: request.homes.clone(), begun: request.begun };
        let part = registry::open(&request.question, here)?;
        // The address of the client is known to the node that asks. Each answer is a tenant here.
        let pool = engine.work_pools.of(part.work_class(), engine.listing_tenant(0));
        Ok(Self { engine, request, part: Some(part), ready: VecDeque::new(), pool })
    }

    async fn advance(&mut self) -> Result<Option<CoverageItem>, Error> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            let Some(mut part) = self.part.take() else { return Ok(None) };
            let step = move |waited: &Waited<'_>| {
                let step = part.step(waited);
                (part, step)
            };
            let asker = Asker::until(self.request.deadline);
            let (part, step) = self.pool.run_for(asker, step).await?;
            let Step { items, is_over } = step?;
            // The step reads snapshots. What was full when a snapshot was taken is complete.
            check(&self.engine, &self.request)?;
            self.ready.extend(items);
            self.part = (!is_over).then_some(part);
        }
    }
}

impl CoverageStream for LocalAnswer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<CoverageItem, Error>>> {
        Box::pin(async move { self.advance().await.transpose() })
    }
}

/// Whether this node may answer for all home partitions of the request: they are as they were
/// for the plan, this node is in the set in force of the classes, and it is full for them.
fn check(engine: &Engine, request: &CoverageRequest) -> Result<(), Error> {
    let placement = engine.placement();
    let here = engine.identity.node_id;
    for part in &request.homes {
        if part.home >= placement.size().get() {
            return Err(refused("the listing names a partition that the ring does not have"));
        }
        if !engine.agrees_on_home(&placement, part.home, request.ring) {
            return Err(other_version());
        }
        let home = placement.home(part.home);
        for n in &part.classes {
            if !home.replica_set(*n).contains(&here) {
                return Err(refused("this node is no replica of what the listing asks for"));
            }
            if !engine.is_full(part.home, *n) {
                return Err(refused("this node does not hold everything that the listing asks for"));
            }
        }
    }
    Ok(())
}

/// The home has changed, or will have when this node has heard of it. Then this node may be able to
/// answer, too.
fn other_version() -> Error {
    let why = "this node knows another version of a home partition than the one that the listing was planned with";
    StoreFailure::new(StoreFailureKind::Busy, why).into()
}

/// Another replica may be able to answer.
fn refused(why: &str) -> Error {
    StoreFailure::new(StoreFailureKind::Closed, why).into()
}
