//! What an operator sees of exchanges, and wants of them.
//!
//! What it is: the switch that suspends exchanges, and the round that an operator has begun.
//!
//! What it is not: it knows no exchange. A node that is suspended begins none but those of single
//! keys that reads have left to exchanges, and answers those of others. What is under way ends.

use super::figures::ExchangeFigures;
use super::waiting::WaitingExchange;
use crate::Repair;
use ombak_runtime::RuntimeExt;
use ombak_types::Error;
use ombak_types::time::UnixMicros;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A round that an operator has begun, so that this node is compared with all other primaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRepair {
    /// Why, in the operator's words.
    pub reason: String,
    /// When it was begun.
    pub began_at: UnixMicros,
}

/// The exchanges of a node, as an operator sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeStatus {
    /// Whether none begins.
    pub is_suspended: bool,
    /// In this time each class is exchanged once with each other primary.
    pub interval: Duration,
    /// Maximum number of exchanges that work at the same time.
    pub concurrency: usize,
    /// Maximum of the bytes of sums and lists in a second; 0: no limit.
    pub bytes_per_second: u64,
    /// How many exchanges a round has.
    pub exchanges_in_round: usize,
    /// How many of them have not ended in full since the round began.
    pub left_of_round: usize,
    /// The round that an operator has begun, as long as it has not ended.
    pub node_repair: Option<NodeRepair>,
    /// The exchanges that wait for something, and for what.
    pub waiting: Vec<WaitingExchange>,
    /// What was done since the start.
    pub figures: ExchangeFigures,
}

/// What an operator has decided about exchanges since the start.
#[derive(Debug)]
pub(super) struct Control {
    is_suspended: AtomicBool,
    node_repair: Mutex<Option<NodeRepair>>,
}

impl Control {
    pub(super) fn new(begins: bool) -> Self {
        Self { is_suspended: AtomicBool::new(!begins), node_repair: Mutex::new(None) }
    }

    /// Whether no exchange begins.
    pub(super) fn is_suspended(&self) -> bool {
        self.is_suspended.load(Ordering::SeqCst)
    }

    /// The repair of the node that has not ended: every exchange has to end in full after it began.
    fn node_repair(&self, round_ended_at: Option<UnixMicros>) -> Option<NodeRepair> {
        self.unended(round_ended_at).clone()
    }

    /// Begins a repair of the node. False: one has not ended.
    fn begin_node_repair(&self, repair: NodeRepair, round_ended_at: Option<UnixMicros>) -> bool {
        let mut unended = self.unended(round_ended_at);
        let is_first = unended.is_none();
        if is_first {
            *unended = Some(repair);
        }
        is_first
    }

    fn unended(&self, round_ended_at: Option<UnixMicros>) -> MutexGuard<'_, Option<NodeRepair>> {
        let mut repair = self.node_repair.lock();
        if repair.as_ref().is_some_and(|repair| round_ended_at.is_some_and(|ended| ended > repair.began_at)) {
            *repair = None;
        }
        repair
    }
}

impl Repair {
    /// The exchanges of this node; none if it has none.
    pub fn exchange_status(&self) -> Option<ExchangeStatus> {
        let exchanges = self.work.exchanges.get()?;
        let figures = exchanges.counts.figures();
        let (interval, exchanges_in_round, left_of_round) = {
            let schedule = exchanges.schedule.lock();
            (schedule.interval(), schedule.pairs_count(), schedule.left_of_round())
        };
        Some(ExchangeStatus {
            is_suspended: exchanges.control.is_suspended(),
            interval,
            concurrency: exchanges.config.concurrency,
            bytes_per_second: exchanges.config.bytes_per_second,
            exchanges_in_round,
            left_of_round,
            node_repair: exchanges.control.node_repair(figures.round_ended_at),
            waiting: exchanges.waiting(&*self.host, self.host.runtime().now()),
            figures,
        })
    }

    /// Suspends exchanges until the node stops, or lets them go on. What is under way ends. Fails
    /// if the node has none.
    pub fn set_exchanges_suspended(&self, is_suspended: bool) -> Result<(), Error> {
        let exchanges = self.work.exchanges.get().ok_or_else(no_exchanges)?;
        exchanges.control.is_suspended.store(is_suspended, Ordering::SeqCst);
        tracing::info!(is_suspended, "an operator has suspended exchanges, or lets them go on");
        Ok(())
    }

    /// Sets, until the node stops, in which time each class is exchanged once with each other
    /// primary. Fails if the node has no exchanges.
    pub fn set_exchange_interval(&self, interval: Duration) -> Result<(), Error> {
        let exchanges = self.work.exchanges.get().ok_or_else(no_exchanges)?;
        exchanges.schedule.lock().set_interval(interval, self.host.runtime().now());
        tracing::info!(?interval, "an operator has set the interval of exchanges");
        Ok(())
    }

    /// Begins the repair of this node: all of its exchanges are due at once. An exchange brings
    /// what either side lacks, so this also brings what this node lacks. Classes stay full
    /// meanwhile, and nothing else waits. Returns false if a repair of the node is under way. Fails
    /// if the node has no exchanges, or they are suspended.
    pub fn start_node_repair(&self, reason: String) -> Result<bool, Error> {
        let exchanges = self.work.exchanges.get().ok_or_else(no_exchanges)?;
        if exchanges.control.is_suspended() {
            let text = "exchanges are suspended: 'ombak admin tictacaae resume' lets them go on";
            return Err(Error::Unsupported(text.into()));
        }
        let repair = NodeRepair { reason: reason.clone(), began_at: self.host.now() };
        if !exchanges.control.begin_node_repair(repair, exchanges.counts.figures().round_ended_at) {
            return Ok(false);
        }
        tracing::info!(reason, "an operator has begun a repair of this node");
        exchanges.set_all_due();
        Ok(true)
    }

    /// Ends the repair of this node: exchanges that have not begun wait for their turn again. What
    /// is under way ends. Returns whether there was one.
    pub fn stop_node_repair(&self) -> bool {
        let Some(exchanges) = self.work.exchanges.get() else { return false };
        if exchanges.control.node_repair(exchanges.counts.figures().round_ended_at).is_none() {
            return false;
        }
        *exchanges.control.node_repair.lock() = None;
        let runtime = self.host.runtime();
        exchanges.takes_all_due();
        // Without randomness the phases are equal, and nothing else is wrong.
        exchanges.schedule.lock().spread(runtime.now(), || runtime.random_u64().unwrap_or_default());
        tracing::info!("an operator has ended the repair of this node");
        true
    }
}

fn no_exchanges() -> Error {
    Error::Unsupported("this node has no exchanges: it does not listen for other nodes, or anti_entropy is off".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_of_a_node_ends_with_the_round_that_began_with_it() {
        let control = Control::new(true);
        let began_at = UnixMicros(50);
        let repair = NodeRepair { reason: "disk".into(), began_at };
        assert!(control.begin_node_repair(repair.clone(), None) && !control.begin_node_repair(repair, None));
        assert!(control.node_repair(None).is_some() && control.node_repair(Some(began_at)).is_some());
        assert!(control.node_repair(Some(UnixMicros(51))).is_none());
        assert!(control.node_repair(None).is_none(), "it is over for good");
    }

    #[test]
    fn a_passive_node_begins_nothing() {
        assert!(Control::new(false).is_suspended() && !Control::new(true).is_suspended());
    }
}
