//! The exchanges of a node, as it tells them to the others, and what may be changed about them.

use ombak_repair::{ClassExchanges, ExchangeStatus, Repair, WaitingExchange};
use ombak_types::{Error, NodeId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum of the exchanges that a member tells one by one.
const LISTED_MAX: usize = 10_000;
/// The shortest interval that an operator can set.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The exchanges of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberExchanges {
    /// `active`, `suspended`, or `off` if the node has none.
    pub state: String,
    /// In this time each class is exchanged once with each other primary, in milliseconds.
    pub interval_ms: u64,
    /// Maximum number of exchanges that work at the same time.
    pub concurrency: u64,
    /// Maximum of the bytes of sums and lists in a second; 0: no limit.
    pub bytes_per_second: u64,
    /// How many exchanges a round has.
    pub exchanges_in_round: u64,
    /// How many of them have not ended in full since the round began.
    pub left_of_round: u64,
    /// When the last full round ended, in Unix seconds; none: not since the start.
    pub round_ended_secs: Option<u64>,
    /// Keys that were repaired in that round.
    pub round_repaired: u64,
    /// Why an operator has begun a repair of the node, as long as it has not ended.
    pub node_repair: Option<String>,
    /// Whether the change that came with the question began or ended something.
    #[serde(default)]
    pub has_changed: bool,
    /// Some of the exchanges.
    pub exchanges: Vec<ExchangeOfClass>,
    /// Some of the exchanges that wait for something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<ExchangeThatWaits>,
}

/// An exchange that waits for something, or all exchanges of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeThatWaits {
    /// The partition.
    pub partition: u32,
    /// The n_val of the buckets.
    pub n_val: u32,
    /// The other primary; none: the class is exchanged with nobody.
    pub node: Option<NodeId>,
    /// The name of the other primary, if the member knows it.
    pub name: Option<String>,
    /// Why it waits, in words.
    pub why: String,
}

/// What the exchanges of one class with one other primary have done since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeOfClass {
    /// The partition.
    pub partition: u32,
    /// The n_val of the buckets.
    pub n_val: u32,
    /// The other primary.
    pub node: NodeId,
    /// When it was last found to hold everything, in Unix seconds; none: not since the start.
    pub included_secs: Option<u64>,
    /// Exchanges that have ended in full.
    pub ended: u64,
    /// Exchanges that have compared everything or a part.
    pub comparisons: u64,
    /// Exchanges that have failed. They are tried again.
    pub failures: u64,
    /// Keys that were repaired.
    pub repaired: u64,
    /// Keys that the last exchange repaired.
    pub repaired_last: u64,
    /// The most keys that one exchange has repaired.
    pub repaired_max: u64,
    /// Copies that were dropped here, because the key was removed everywhere else.
    pub dropped: u64,
    /// Keys that the last exchange left alone.
    pub withheld: u64,
    /// Bytes of sums and lists, about.
    pub bytes: u64,
}

/// What an operator changes about exchanges. Nothing leaves everything as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ExchangeChange {
    /// Nothing: only tell.
    #[default]
    Nothing,
    /// No exchange begins until the member stops.
    Suspend,
    /// Exchanges begin again.
    Resume,
    /// The interval, in milliseconds, until the member stops.
    Interval(u64),
    /// Every exchange of the member is due at once.
    StartNodeRepair {
        /// Why, in the operator's words.
        reason: String,
    },
    /// What has not begun waits for its turn again.
    StopNodeRepair,
}

impl MemberExchanges {
    /// The exchanges of a node, which may be a node without a cluster. It locks their state for a
    /// moment, so it is not for network threads.
    pub fn of(repair: &Repair) -> Self {
        repair
            .exchange_status()
            .map_or_else(|| Self { state: "off".into(), ..Self::default() }, |status| Self::of_status(&status))
    }

    fn of_status(status: &ExchangeStatus) -> Self {
        let classes = status.figures.classes.iter().take(LISTED_MAX);
        let exchanges = classes.map(|((class, node), of)| of_class((class.partition, class.n, *node), of));
        Self {
            state: if status.is_suspended { "suspended" } else { "active" }.into(),
            interval_ms: u64::try_from(status.interval.as_millis()).unwrap_or(u64::MAX),
            concurrency: status.concurrency as u64,
            bytes_per_second: status.bytes_per_second,
            exchanges_in_round: status.exchanges_in_round as u64,
            left_of_round: status.left_of_round as u64,
            round_ended_secs: status.figures.round_ended_at.map(|at| at.secs()),
            round_repaired: status.figures.round_repaired,
            node_repair: status.node_repair.as_ref().map(|repair| repair.reason.clone()),
            has_changed: false,
            exchanges: exchanges.collect(),
            waiting: status.waiting.iter().take(LISTED_MAX).map(that_waits).collect(),
        }
    }
}

fn of_class((partition, n_val, node): (u32, u32, NodeId), of: &ClassExchanges) -> ExchangeOfClass {
    ExchangeOfClass {
        partition,
        n_val,
        node,
        included_secs: of.included_at.map(|at| at.secs()),
        ended: of.exchanges,
        comparisons: of.comparisons,
        failures: of.failures,
        repaired: of.repaired,
        repaired_last: of.repaired_last,
        repaired_max: of.repaired_max,
        dropped: of.dropped,
        withheld: of.withheld,
        bytes: of.bytes,
    }
}

fn that_waits(of: &WaitingExchange) -> ExchangeThatWaits {
    let WaitingExchange { class, node, name, why } = of.clone();
    ExchangeThatWaits { partition: class.partition, n_val: class.n, node, name, why }
}

impl ExchangeChange {
    /// Changes the exchanges of a node. Returns whether something began or ended.
    pub fn apply_to(&self, repair: &Repair) -> Result<bool, Error> {
        match self {
            Self::Nothing => Ok(false),
            Self::Suspend => repair.set_exchanges_suspended(true).map(|()| true),
            Self::Resume => repair.set_exchanges_suspended(false).map(|()| true),
            Self::Interval(ms) => {
                let interval = Duration::from_millis(*ms).max(INTERVAL_MIN);
                repair.set_exchange_interval(interval).map(|()| true)
            }
            Self::StartNodeRepair { reason } => repair.start_node_repair(reason.clone()),
            Self::StopNodeRepair => Ok(repair.stop_node_repair()),
        }
    }
}
