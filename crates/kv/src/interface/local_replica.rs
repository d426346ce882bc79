//! What this node answers when another node asks for its replicas.
//!
//! The answers come from several rooms: `engine` reads and writes, `coverage` lists, and [`Kv`]
//! coordinates puts. Copies are compared, taken and reaped by the [`RepairAnswers`] that the engine
//! was given. Until it was, such a question is refused, and the other node asks again.

use super::reap_orders;
use crate::coverage::LocalAnswer;
use crate::engine::{Engine, Kv, LocalReplica, RepairAnswers};
use crate::replica::{
    AskRequest, Compare, Compared, CoverageClient, CoverageRequest, CoverageStream, ForwardedPut, Give, Giving,
    Ordered, Push, Pushed, PutFailure, ReadReply, ReapOrder, ReapReply, ReapingClient, RemoveRequest, ReplicaClient,
    ReplicaRead, ReplicaStore, StoreReply, Summarize, Summary, TransferClient, Vote, VoteRequest,
};
use crate::requests::PutReply;
use ombak_runtime::{Asker, BoxFuture, Waited};
use ombak_types::Error;

impl LocalReplica {
    /// [`TransferClient::compare`] for another node, which may give up.
    pub fn compare_for(&self, asker: Asker, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        self.on_transfer_thread(asker, move |engine, answers| answers.compare(engine, &compare))
    }

    /// [`TransferClient::push`] for another node, which may give up.
    pub fn push_for(&self, asker: Asker, push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        self.on_transfer_thread(asker, move |engine, answers| answers.push(engine, &push))
    }

    /// [`TransferClient::summarize`] for another node, which may give up.
    pub fn summarize_for(&self, asker: Asker, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move {
            let transfers = engine.transfers.clone();
            let sums = move |waited: &Waited<'_>| engine.repair_answers.get()?.summarize(&*engine, &summarize, waited);
            transfers.walk(asker, sums).await
        })
    }

    /// [`ReapingClient::vote`] for another node, which may give up.
    pub fn vote_for(&self, asker: Asker, request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>> {
        self.on_disk_thread(asker, move |engine, answers| answers.vote(engine, &request))
    }

    /// [`ReapingClient::ask`] for another node, which may give up.
    pub fn ask_for(&self, asker: Asker, request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.on_disk_thread(asker, move |engine, answers| answers.ask(engine, &request))
    }

    /// [`ReapingClient::remove`] for another node, which may give up.
    pub fn remove_for(
        &self,
        asker: Asker,
        request: RemoveRequest,
    ) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.on_disk_thread(asker, move |engine, answers| answers.remove(engine, &request))
    }

    /// [`ReapingClient::order`] for another node, which may give up.
    pub fn order_for(&self, asker: Asker, order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move {
            let pool = engine.disk_pool.clone();
            pool.run_for(asker, move |_| reap_orders::take(&engine, &order)).await?
        })
    }

    /// Answers a question of a round on a thread that waits for the disk.
    fn on_disk_thread<T: Send + 'static>(
        &self,
        asker: Asker,
        answer: impl FnOnce(&Engine, &dyn RepairAnswers) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move {
            let pool = engine.disk_pool.clone();
            pool.run_for(asker, move |_| answer(&engine, engine.repair_answers.get()?)).await?
        })
    }

    /// Answers on a thread that may wait.
    fn on_transfer_thread<T: Send + 'static>(
        &self,
        asker: Asker,
        answer: impl FnOnce(&Engine, &dyn RepairAnswers) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move {
            let transfers = engine.transfers.clone();
            transfers.answer(asker, move || answer(&engine, engine.repair_answers.get()?)).await
        })
    }
}

impl ReplicaClient for LocalReplica {
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<ReadReply, Error>> {
        let here = self.clone();
        Box::pin(async move { here.begin_read(read).finish().await })
    }

    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>> {
        let here = self.clone();
        Box::pin(async move { here.begin_store(store).finish().await })
    }

    fn coordinate(&self, put: ForwardedPut) -> BoxFuture<'static, Result<PutReply, PutFailure>> {
        let kv = Kv { engine: self.engine.clone() };
        Box::pin(async move { kv.coordinate_here(put).await })
    }
}

impl ReapingClient for LocalReplica {
    fn vote(&self, request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>> {
        self.vote_for(Asker::default(), request)
    }

    fn ask(&self, request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.ask_for(Asker::default(), request)
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.remove_for(Asker::default(), request)
    }

    fn order(&self, order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>> {
        self.order_for(Asker::default(), order)
    }
}

impl CoverageClient for LocalReplica {
    fn open(&self, request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move {
            if engine.waking.is_on(engine.config.runtime.now()) {
                engine.awake(request.deadline).await;
            }
            let answer = LocalAnswer::open(engine, request)?;
            Ok(Box::new(answer) as Box<dyn CoverageStream>)
        })
    }
}

impl TransferClient for LocalReplica {
    fn compare(&self, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        self.compare_for(Asker::default(), compare)
    }

    fn push(&self, push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        self.push_for(Asker::default(), push)
    }

    fn summarize(&self, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        self.summarize_for(Asker::default(), summarize)
    }

    fn give(&self, give: Give) -> BoxFuture<'static, Result<Giving, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move { engine.repair_answers.get()?.give(&*engine, &give) })
    }
}
