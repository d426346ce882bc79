//! What the handle of the work on copies has for exchanges.

use super::client::{ExchangeAnswer, ExchangePart, ExchangePeers, ExchangeQuestion};
use super::config::ExchangeConfig;
use super::dropped::{DroppedCopies, DroppedCopy};
use super::exchanges::Exchanges;
use super::figures::ExchangeFigures;
use super::other_ways::KeepsDropped;
use super::runner::Runner;
use super::walker::Walker;
use crate::Repair;
use bytes::Bytes;
use ombak_kv::{ClassId, Kv};
use ombak_node_files::NodeFileError;
use ombak_runtime::Asker;
use ombak_types::{Error, NodeId};
use std::io;
use std::sync::Arc;

impl Repair {
    /// Starts exchanges, once. Call it before [`Self::start`], and where `Runtime::spawn` works.
    /// Without it a node neither begins exchanges nor answers those of others.
    pub fn start_exchanges(
        &self,
        kv: &Kv,
        peers: Arc<dyn ExchangePeers>,
        config: ExchangeConfig,
    ) -> Result<(), NodeFileError> {
        let dropped = Arc::new(DroppedCopies::new(kv.file_system().clone(), kv.data_dir().to_owned()));
        let exchanges = Arc::new(Exchanges::new(&*self.host, peers, config, dropped));
        if self.work.exchanges.set(exchanges.clone()).is_ok() {
            kv.stats().attach(exchanges.counts.clone());
            let walker = Walker::new(exchanges.clone(), &*self.host);
            let (ways, runtime) = (&self.host.transfers().other_ways, self.host.runtime().clone());
            ways.keep_dropped_in(Box::new(KeepsDropped { file: exchanges.dropped.clone(), runtime }));
            ways.set_on(true);
            let runner = Runner::new(exchanges, self.work.clone(), self.host.transfers().clone());
            self.host.runtime().spawn(Box::pin(walker.run(Arc::downgrade(&self.host))));
            self.host.runtime().spawn(Box::pin(runner.run(Arc::downgrade(&self.host))));
        }
        Ok(())
    }

    /// Answers a question of another node's exchange. It is not answered if that node has given up
    /// by then. A node without exchanges refuses.
    pub async fn answer_exchange(
        &self,
        asker: Asker,
        from: NodeId,
        question: ExchangeQuestion,
    ) -> Result<ExchangeAnswer, Error> {
        let Some(exchanges) = self.work.exchanges.get().cloned() else {
            return Err(Error::Unsupported("this node has no exchanges".into()));
        };
        let (host, transfers) = (self.host.clone(), self.host.transfers());
        let pool = match question.part {
            ExchangePart::List(_) => &transfers.fold_pool,
            _ => &transfers.pool,
        };
        pool.run_for(asker, move |waited| exchanges.answer(&*host, from, &question, waited)).await?
    }

    /// Makes all exchanges due at once: a round begins.
    pub fn start_exchange_round(&self) {
        if let Some(exchanges) = self.work.exchanges.get() {
            exchanges.set_all_due();
        }
    }

    /// Compares the sums of all classes with what their stores hold, at the pace of such checks. A
    /// store that has lost or gained something without a write is noticed then.
    pub fn check_sums(&self) {
        if let Some(exchanges) = self.work.exchanges.get() {
            exchanges.sums_schedule.lock().all_due(self.work.runtime.now());
        }
    }

    /// Asks for an exchange of one key with all other primaries, soon. Returns whether there was
    /// room for it. A node without exchanges has none.
    pub fn exchange_key(&self, class: ClassId, storage_key: &Bytes) -> bool {
        self.host.transfers().other_ways.exchange_key(class, storage_key)
    }

    /// What exchanges have dropped, the oldest first, as far as the file of dropped copies has it.
    /// Blocks.
    pub fn dropped_copies(&self) -> io::Result<Vec<DroppedCopy>> {
        self.work.exchanges.get().map_or_else(|| Ok(Vec::new()), |exchanges| exchanges.dropped.list())
    }

    /// What exchanges have done since the start; none if the node has none.
    pub fn exchange_figures(&self) -> Option<ExchangeFigures> {
        self.work.exchanges.get().map(|exchanges| exchanges.counts.figures())
    }
}
