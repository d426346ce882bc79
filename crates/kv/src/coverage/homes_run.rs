//! A question over several nodes that is answered home partition by home partition, in no order. It
//! gives the home partitions of a node that fails to other replicas.
//!
//! What the answers mean is the business of a [`HomesMerge`], the merging part of the question.

use super::node_answer::{NextItem, NodeAnswer};
use super::planner::{PlannedPart, Planner};
use super::questions::Names;
use crate::replica::{CoverageHome, CoverageItem, CoverageQuestion, PieceContent};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Error, NodeId, StoreFailure};

/// The home partitions that a node has still to answer.
type Left = Vec<CoverageHome>;

/// A listing of keys or buckets.
pub(crate) type NamesRun = HomesRun<Names, Vec<Bytes>>;

/// Merges the pieces of all nodes.
pub(crate) trait HomesMerge: Send {
    /// What a piece of an answer holds.
    type Piece: PieceContent;
    /// What the caller gets.
    type Batch;

    /// Whether the run fails if a home partition has no replica that can answer. Otherwise it is
    /// left out.
    fn needs_every_home(&self) -> bool;

    /// Takes a piece. Returns what is new, or `None` if nothing of it is.
    fn take(&mut self, piece: Self::Piece) -> Result<Option<Self::Batch>, Error>;

    /// A home partition is done. No piece of it follows.
    fn home_done(&mut self, _home: u32) {}

    /// A home partition is answered once more, from its beginning, because the first answer broke
    /// off. Returns false if the merging part cannot tell any more what came before; then the run
    /// fails.
    fn is_asked_again(&mut self, _home: u32) -> bool {
        true
    }
}

/// Gathers pieces from all nodes, in no order.
pub(crate) struct HomesRun<P, B> {
    planner: Planner,
    question: CoverageQuestion,
    answers: FuturesUnordered<BoxFuture<'static, NextItem<Left>>>,
    merge: Box<dyn HomesMerge<Piece = P, Batch = B>>,
}

impl<P: PieceContent, B> HomesRun<P, B> {
    /// Asks a question of replicas of these classes.
    pub(super) fn new(
        planner: Planner,
        question: CoverageQuestion,
        classes: &[u32],
        merge: Box<dyn HomesMerge<Piece = P, Batch = B>>,
    ) -> Result<Self, Error> {
        let homes: Vec<u32> = (0..planner.homes()).collect();
        Self::of_homes(planner, question, (classes, &homes), merge)
    }

    /// Asks a question of replicas of these classes, for these home partitions.
    pub(super) fn of_homes(
        planner: Planner,
        question: CoverageQuestion,
        (classes, homes): (&[u32], &[u32]),
        merge: Box<dyn HomesMerge<Piece = P, Batch = B>>,
    ) -> Result<Self, Error> {
        let (parts, is_complete) = planner.plan(classes, homes);
        if !is_complete && merge.needs_every_home() {
            return Err(Error::InsufficientVnodesAvailable);
        }
        let mut this = Self { planner, question, answers: FuturesUnordered::new(), merge };
        this.ask(parts);
        Ok(this)
    }

    /// Returns what comes next; `None` at the end.
    pub(crate) async fn next_batch(&mut self) -> Result<Option<B>, Error> {
        loop {
            let runtime = self.planner.engine.config.runtime.clone();
            let item = within(&*runtime, self.planner.deadline, self.answers.next()).await;
            let Some((mut left, answer, item)) = item.map_err(|_| Error::Timeout)? else { return Ok(None) };
            match item {
                Some(Ok(CoverageItem::Piece(piece))) => match piece.into_content::<P>() {
                    Some(piece) => {
                        self.answers.push(answer.item(left));
                        if let Some(batch) = self.merge.take(piece)? {
                            return Ok(Some(batch));
                        }
                    }
                    None => {
                        let error = StoreFailure::internal("a piece answers another question").into();
                        self.failed(answer.node, left, error).await?;
                    }
                },
                Some(Ok(CoverageItem::HomeDone(home))) => {
                    left.retain(|part| part.home != home);
                    self.merge.home_done(home);
                    self.answers.push(answer.item(left));
                }
                Some(Err(error)) => self.failed(answer.node, left, error).await?,
                None if left.is_empty() => {}
                None => self.failed(answer.node, left, StoreFailure::internal("an answer is too short").into()).await?,
            }
        }
    }

    fn ask(&mut self, parts: Vec<PlannedPart>) {
        for PlannedPart { node, mut homes } in parts {
            // Listings begin with different stores, because each store has a bounded number of
            // snapshots.
            let turn = self.planner.seed % (homes.len().max(1) as u64);
            homes.rotate_left(turn as usize);
            let request = self.planner.request(self.question.clone(), homes.clone());
            self.answers.push(NodeAnswer::new(&self.planner, node, request).item(homes));
        }
    }

    /// Gives the home partitions that a node did not answer to others.
    async fn failed(&mut self, node: NodeId, left: Left, error: Error) -> Result<(), Error> {
        tracing::info!(peer = %node, homes = left.len(), %error, "a listing goes on at other replicas");
        let (parts, is_complete) = self.planner.plan_again(node, &left, &error).await;
        if !is_complete && self.merge.needs_every_home() {
            return Err(Error::InsufficientVnodesAvailable);
        }
        if !left.iter().all(|part| self.merge.is_asked_again(part.home)) {
            return Err(error);
        }
        self.ask(parts);
        Ok(())
    }
}
