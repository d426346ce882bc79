//! What the handle of the work on copies has for exchanges.

use super::client::{ExchangeAnswer, ExchangePart, ExchangePeers, ExchangeQuestion};
use super::config::ExchangeConfig;
use super::dropped::{DroppedCopies, DroppedCopy};
use super::exchanges::Exchanges;
use super::figures::ExchangeFigures;
use super::marks_file::SavedMarks;
use super::runner::Runner;
use crate::Repair;
use ombak_kv::Kv;
use ombak_node_files::NodeFileError;
use ombak_runtime::Asker;
use ombak_types::{Error, NodeId};
use std::io;
use std::sync::Arc;

impl Repair {
    /// Starts exchanges, once. Call it before [`Self::start`], and where `Runtime::spawn` works.
    /// Without it a node neither begins exchanges nor answers those of others. Fails if the file of
    /// the marks cannot be read.
    pub fn start_exchanges(
        &self,
        kv: &Kv,
        peers: Arc<dyn ExchangePeers>,
        config: ExchangeConfig,
    ) -> Result<(), NodeFileError> {
        let (path, fs) = (kv.data_dir().to_owned(), kv.file_system());
        let marks = SavedMarks::open(fs.clone(), &path)?;
        let dropped = DroppedCopies::new(fs.clone(), path.clone());
        let opened = Exchanges::open(&*self.host, peers, config, marks, dropped);
        let exchanges = Arc::new(opened.map_err(|source| NodeFileError::Io { op: "write", path, source })?);
        if self.work.exchanges.set(exchanges.clone()).is_ok() {
            kv.stats().attach(exchanges.counts.clone());
            let runner = Runner::new(exchanges, self.work.clone(), self.host.transfers().clone());
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
            ExchangePart::Keys(_) | ExchangePart::Mark(_) => &transfers.pool,
            _ => &transfers.fold_pool,
        };
        pool.run_for(asker, move |waited| exchanges.answer(&*host, from, &question, waited)).await?
    }

    /// Makes all exchanges due at once: a round begins.
    pub fn start_exchange_round(&self) {
        if let Some(exchanges) = self.work.exchanges.get() {
            exchanges.set_all_due();
        }
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
