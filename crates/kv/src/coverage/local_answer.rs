//! Answers parts of listings and queries from the stores of this node.

use crate::engine::Engine;
use crate::listing::{ENTRIES_MAX, ListWalk};
use crate::partition::Partition;
use crate::query::{QueryWalk, SharedWalk};
use crate::replica::{CoverageHome, CoverageItem, CoverageQuestion, CoverageRequest, CoverageStream};
use bytes::Bytes;
use ombak_runtime::{BoxFuture, Pool};
use ombak_storage::StorageError;
use ombak_types::{Bucket, Error, StoreFailure, StoreFailureKind};
use std::collections::VecDeque;
use std::sync::Arc;

/// Over how many home partitions one step goes at most, if they have no names.
const HOMES_MAX: usize = 16;

/// The answer of this node to one request.
pub(crate) struct LocalAnswer {
    engine: Arc<Engine>,
    request: CoverageRequest,
    work: Work,
    /// Items that were made and not taken yet.
    ready: VecDeque<CoverageItem>,
    /// The threads that read the stores, as this answer has its share of them.
    pool: Pool,
}

/// What one step over home partitions has found.
struct Step {
    /// The home partitions that are complete.
    done: Vec<u32>,
    /// Names of the home partition that follows them.
    names: Vec<Bytes>,
    /// The walk over that home partition, if it is not complete.
    walk: Option<Box<ListWalk>>,
}

enum Work {
    /// Home partitions whose names are still to be sent, and the walk over the first of them.
    Names {
        homes: VecDeque<CoverageHome>,
        walk: Option<Box<ListWalk>>,
    },
    Entries(Box<SharedWalk>),
    /// The answer is complete, has failed, or its piece is being made.
    Over,
}

impl LocalAnswer {
    /// Begins an answer. Fails if this node may not answer.
    pub(crate) fn open(engine: Arc<Engine>, request: CoverageRequest) -> Result<Self, Error> {
        if !engine.is_open() {
            return Err(Error::Stopping);
        }
        // The address of the client is known to the node that asks. Each answer is a tenant here.
        let pool = engine.fold_pool.of(engine.listing_tenant(0));
        let mut this = Self { engine, request, work: Work::Over, ready: VecDeque::new(), pool };
        this.check()?;
        this.work = match &this.request.question {
            CoverageQuestion::Keys(_) | CoverageQuestion::Buckets(_) => {
                Work::Names { homes: this.request.homes.iter().cloned().collect(), walk: None }
            }
            CoverageQuestion::Entries(query) => {
                let mut query = query.clone();
                query.shows_tombstones &= this.engine.config.queries.shows_tombstones;
                let partitions: Result<Vec<_>, Error> =
                    this.request.homes.iter().map(|home| this.partition(home.home)).collect();
                let walk = QueryWalk::new(partitions?.into_iter(), query, this.request.begun);
                let holders = this.engine.partitions().snapshot_holders().clone();
                Work::Entries(Box::new(SharedWalk::new(walk, holders)))
            }
        };
        Ok(this)
    }

    /// Whether this node may answer for all home partitions of the request: they are as they were
    /// for the plan, this node is in the set in force of the classes, and it is full for them.
    fn check(&self) -> Result<(), Error> {
        let placement = self.engine.placement();
        let here = self.engine.identity.node_id;
        for part in &self.request.homes {
            if part.home >= placement.size().get() {
                return Err(refused("the listing names a partition that the ring does not have"));
            }
            if !self.engine.agrees_on_home(&placement, part.home, self.request.ring) {
                return Err(other_version());
            }
            let home = placement.home(part.home);
            for n in &part.classes {
                if !home.replica_set(*n).contains(&here) {
                    return Err(refused("this node is no replica of what the listing asks for"));
                }
                if !self.engine.is_full(part.home, *n) {
                    return Err(refused("this node does not hold everything that the listing asks for"));
                }
            }
        }
        Ok(())
    }

    fn partition(&self, home: u32) -> Result<Arc<Partition>, Error> {
        Ok(self.engine.partitions().find(home)?)
    }

    async fn advance(&mut self) -> Result<Option<CoverageItem>, Error> {
        if let Some(item) = self.ready.pop_front() {
            return Ok(Some(item));
        }
        match std::mem::replace(&mut self.work, Work::Over) {
            Work::Over => Ok(None),
            Work::Names { homes, walk } => self.names(homes, walk).await,
            Work::Entries(walk) => self.entries(walk).await,
        }
    }

    /// Makes the next items. One step goes over several home partitions, because each step waits
    /// for its turn at the threads.
    async fn names(
        &mut self,
        mut homes: VecDeque<CoverageHome>,
        mut walk: Option<Box<ListWalk>>,
    ) -> Result<Option<CoverageItem>, Error> {
        loop {
            if homes.is_empty() {
                return Ok(None);
            }
            let first = walk.take();
            let others = homes.iter().skip(usize::from(first.is_some())).take(HOMES_MAX);
            let others = others.map(|home| self.walk_over(home.home));
            let walks = first.map(|walk| Ok(*walk)).into_iter().chain(others).collect::<Result<Vec<_>, Error>>()?;
            let numbers: Vec<u32> = homes.iter().take(walks.len()).map(|home| home.home).collect();
            let step = self.pool.run_until(self.request.deadline, move || walk_on(walks, &numbers)).await??;
            // The walks read snapshots. What was full when a snapshot was taken is complete.
            self.check()?;
            let Step { done, mut names, walk: present } = step;
            for home in done {
                homes.pop_front();
                self.ready.push_back(CoverageItem::HomeDone(home));
            }
            if let (CoverageQuestion::Buckets(bucket_type), Some(part)) = (&self.request.question, homes.front()) {
                names.retain(|name| self.is_of_classes(bucket_type, name, &part.classes));
            }
            if let Some(part) = homes.front().filter(|_| !names.is_empty()) {
                self.ready.push_back(CoverageItem::Names { home: part.home, names });
            }
            walk = present;
            if let Some(item) = self.ready.pop_front() {
                self.work = Work::Names { homes, walk };
                return Ok(Some(item));
            }
        }
    }

    fn walk_over(&self, home: u32) -> Result<ListWalk, Error> {
        let partitions = vec![self.partition(home)?];
        match &self.request.question {
            CoverageQuestion::Keys(bucket) => Ok(ListWalk::over_keys(partitions, bucket, self.request.begun)),
            CoverageQuestion::Buckets(bucket_type) => {
                Ok(ListWalk::over_buckets(partitions, bucket_type, self.request.begun))
            }
            CoverageQuestion::Entries(_) => Err(StoreFailure::internal("a query is no listing of names").into()),
        }
    }

    /// Whether the n of a bucket is among these. A bucket of an unknown type belongs to no class.
    fn is_of_classes(&self, bucket_type: &Bytes, name: &Bytes, classes: &[u32]) -> bool {
        let bucket = Bucket { bucket_type: bucket_type.clone(), name: name.clone() };
        self.engine.buckets.props(&bucket).is_ok_and(|props| classes.contains(&props.n_val))
    }

    async fn entries(&mut self, mut walk: Box<SharedWalk>) -> Result<Option<CoverageItem>, Error> {
        loop {
            let step = move || {
                let batch = walk.next_batch();
                (walk, batch)
            };
            let (present, batch) = self.pool.run_until(self.request.deadline, step).await?;
            let batch = batch?;
            self.check()?;
            match batch {
                None => return Ok(None),
                Some(entries) if entries.is_empty() => walk = present,
                Some(entries) => {
                    self.work = Work::Entries(present);
                    return Ok(Some(CoverageItem::Entries(entries)));
                }
            }
        }
    }
}

/// Goes over home partitions until there are names, or enough work was done for one step.
fn walk_on(walks: Vec<ListWalk>, homes: &[u32]) -> Result<Step, StorageError> {
    let (mut done, mut budget) = (Vec::new(), ENTRIES_MAX);
    for (mut walk, home) in walks.into_iter().zip(homes) {
        match walk.next_batch(&mut budget)? {
            Some(names) => return Ok(Step { done, names, walk: Some(Box::new(walk)) }),
            None => done.push(*home),
        }
    }
    Ok(Step { done, names: Vec::new(), walk: None })
}

impl CoverageStream for LocalAnswer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<CoverageItem, Error>>> {
        Box::pin(async move { self.advance().await.transpose() })
    }
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
