//! What exchanges have done since the start.

use super::machine::Tally;
use ombak_kv::ClassId;
use ombak_stats::{Feature, Figure, Number, Spiral};
use ombak_types::NodeId;
use ombak_types::time::UnixMicros;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What exchanges of one class with one other primary have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassExchanges {
    /// When the other primary was last found to hold everything; none: not since the start.
    pub included_at: Option<UnixMicros>,
    /// Exchanges that have ended in full.
    pub exchanges: u64,
    /// Exchanges that have failed. They are tried again. A refusal of a busy node is no failure.
    pub failures: u64,
    /// Versions that the other primary lacked and has now.
    pub repaired: u64,
    /// Versions that the last exchange repaired.
    pub repaired_last: u64,
    /// The most versions that one exchange has repaired.
    pub repaired_max: u64,
    /// Exchanges that have compared everything or a part.
    pub comparisons: u64,
    /// Versions of this node that had been removed everywhere else, and were removed here.
    pub dropped: u64,
    /// Versions that the last exchange left alone, because nobody can tell whether they were
    /// removed or lost.
    pub withheld: u64,
    /// Bytes of sums and lists, about, in both directions.
    pub bytes: u64,
}

/// What the exchanges of a node have done since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeFigures {
    /// When every exchange of the node had last ended in full; none: not since the start.
    pub round_ended_at: Option<UnixMicros>,
    /// Versions that were repaired in that round.
    pub round_repaired: u64,
    /// By class and other primary. Those that have not ended once are missing.
    pub classes: BTreeMap<(ClassId, NodeId), ClassExchanges>,
}

/// Counts for statistics, which only rise.
#[derive(Debug, Default)]
struct Totals {
    exchanges: AtomicU64,
    repaired: AtomicU64,
    dropped: AtomicU64,
    withheld: AtomicU64,
    bytes: AtomicU64,
}

/// What Riak counts of its exchanges, under its names.
#[derive(Debug, Default)]
struct Spirals {
    /// Exchanges that have compared.
    exchange: Spiral,
    /// Those that found nothing to repair.
    root_compare: Spiral,
    /// Those that compared keys with their clocks.
    clock_compare: Spiral,
    /// Those that have failed.
    error: Spiral,
}

#[derive(Debug, Default)]
struct State {
    figures: ExchangeFigures,
    repaired_in_round: u64,
}

/// Counts what exchanges do.
#[derive(Debug, Default)]
pub(super) struct ExchangeCounts {
    totals: Totals,
    spirals: Spirals,
    state: Mutex<State>,
}

impl ExchangeCounts {
    /// Notes what an exchange has done, whether or not it has ended in full.
    pub(super) fn did(&self, pair: (ClassId, NodeId), tally: Tally, bytes: u64) {
        let Totals { repaired, dropped, withheld, bytes: all_bytes, .. } = &self.totals;
        for (total, more) in
            [(repaired, tally.repaired), (dropped, tally.dropped), (withheld, tally.withheld), (all_bytes, bytes)]
        {
            total.fetch_add(more, Relaxed);
        }
        let found_nothing = tally == Tally::default();
        let Spirals { exchange, root_compare, clock_compare, .. } = &self.spirals;
        exchange.add(1);
        if found_nothing { root_compare } else { clock_compare }.add(1);
        let mut state = self.state.lock();
        state.repaired_in_round += tally.repaired + tally.dropped;
        let class = state.figures.classes.entry(pair).or_default();
        class.repaired += tally.repaired;
        class.repaired_last = tally.repaired;
        class.repaired_max = class.repaired_max.max(tally.repaired);
        class.comparisons += 1;
        class.dropped += tally.dropped;
        class.withheld = tally.withheld;
        class.bytes += bytes;
    }

    /// Notes that the other primary holds everything.
    pub(super) fn included(&self, pair: (ClassId, NodeId), now: UnixMicros) {
        self.totals.exchanges.fetch_add(1, Relaxed);
        let mut state = self.state.lock();
        let class = state.figures.classes.entry(pair).or_default();
        class.included_at = Some(now);
        class.exchanges += 1;
    }

    /// Notes that an exchange has failed.
    pub(super) fn failed(&self, pair: (ClassId, NodeId)) {
        self.spirals.error.add(1);
        self.state.lock().figures.classes.entry(pair).or_default().failures += 1;
    }

    /// Notes that every exchange has ended in full since the last call.
    pub(super) fn round_ended(&self, now: UnixMicros) {
        let mut state = self.state.lock();
        state.figures.round_ended_at = Some(now);
        state.figures.round_repaired = std::mem::take(&mut state.repaired_in_round);
    }

    /// Forgets pairs that are none any more.
    pub(super) fn retain(&self, is_pair: impl Fn((ClassId, NodeId)) -> bool) {
        self.state.lock().figures.classes.retain(|pair, _| is_pair(*pair));
    }

    pub(super) fn figures(&self) -> ExchangeFigures {
        self.state.lock().figures.clone()
    }
}

impl Feature for ExchangeCounts {
    fn figures(&self) -> Vec<Figure<'_>> {
        let Totals { exchanges, repaired, dropped, withheld, bytes } = &self.totals;
        let total = |name: &str, metric, help, total: &AtomicU64| Figure {
            name: format!("ombak_{name}"),
            metric,
            label: None,
            help,
            number: Number::Total(total.load(Relaxed)),
        };
        let spiral = |name: &str, metric, help, spiral| {
            let number = Number::Spiral(spiral);
            Figure { name: format!("tictacaae_{name}"), metric, label: None, help, number }
        };
        let Spirals { exchange, root_compare, clock_compare, error } = &self.spirals;
        vec![
            spiral("exchange", "exchanges_compared_total", "Exchanges that have compared a class.", exchange),
            spiral("root_compare", "exchanges_equal_total", "Exchanges that found nothing to repair.", root_compare),
            spiral("clock_compare", "exchanges_differing_total", "Exchanges that compared keys.", clock_compare),
            spiral("error", "exchanges_failed_total", "Exchanges that have failed.", error),
            total(
                "anti_entropy_exchanges",
                "anti_entropy_exchanges_total",
                "Exchanges after which another primary held everything of a class.",
                exchanges,
            ),
            total(
                "anti_entropy_repaired",
                "anti_entropy_repaired_total",
                "Versions that exchanges brought to other primaries.",
                repaired,
            ),
            total(
                "anti_entropy_dropped",
                "anti_entropy_dropped_total",
                "Versions that exchanges removed here because they had been removed everywhere else.",
                dropped,
            ),
            total(
                "anti_entropy_withheld",
                "anti_entropy_withheld_total",
                "Versions that exchanges left alone because nobody could tell whether they were removed.",
                withheld,
            ),
            total("anti_entropy_bytes", "anti_entropy_bytes_total", "Bytes of sums and lists of exchanges.", bytes),
        ]
    }
}
