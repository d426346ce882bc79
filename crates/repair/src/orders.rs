//! What other nodes have ordered from this one, and how far classes that are being filled were
//! compared (`fill`).

use crate::ranges::Ranges;
use ombak_kv::ClassId;
use ombak_kv::replica::{Give, GivePass, Giving};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Orders of other nodes that this node works on, or has done. There is one for each class and node
/// at most.
#[derive(Default)]
pub(crate) struct Orders(Mutex<BTreeMap<(ClassId, NodeId), Order>>);

/// The comparisons of a class that is being filled.
#[derive(Clone)]
pub(crate) struct Comparisons {
    /// The number of losses that they cover.
    pub(crate) losses: u64,
    /// The primaries, each with a seq of this node's store. What this node has stored after the seq
    /// is not owed to the primary yet.
    pub(crate) with: BTreeMap<NodeId, u64>,
    /// Those of them that have brought what they had left out at first.
    pub(crate) at_last: BTreeSet<NodeId>,
    /// Since when a primary has not answered; none: all have.
    pub(crate) waits_since: Option<Instant>,
    /// Those that have brought the same before that, because a primary has not answered for long.
    pub(crate) early: BTreeSet<NodeId>,
}

impl Comparisons {
    /// Nothing was compared yet.
    pub(crate) const fn new(losses: u64) -> Self {
        Self { losses, with: BTreeMap::new(), at_last: BTreeSet::new(), waits_since: None, early: BTreeSet::new() }
    }
}

#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) number: u64,
    pub(crate) ranges: Ranges,
    pub(crate) pass: GivePass,
    state: Giving,
}

impl Orders {
    /// Takes an order, unless it is known already. Returns how far it is.
    pub(crate) fn take(&self, give: &Give) -> Giving {
        let mut orders = self.0.lock();
        match orders.get(&(give.class, give.to)) {
            Some(order) if order.number == give.order => order.state,
            _ => {
                let ranges = Ranges::of(give.ranges, &give.wanted);
                let (number, pass) = (give.order, give.pass);
                orders.insert((give.class, give.to), Order { number, ranges, pass, state: Giving::Working });
                Giving::Working
            }
        }
    }

    /// The orders that are not done.
    pub(crate) fn open(&self) -> Vec<(ClassId, NodeId)> {
        let orders = self.0.lock();
        orders.iter().filter(|(_, order)| order.state == Giving::Working).map(|(place, _)| *place).collect()
    }

    pub(crate) fn get(&self, class: ClassId, to: NodeId) -> Option<Order> {
        self.0.lock().get(&(class, to)).cloned()
    }

    /// Forgets the orders of nodes that need nothing any more.
    pub(crate) fn forget(&self, is_needless: impl Fn(ClassId, NodeId) -> bool) {
        self.0.lock().retain(|(class, to), _| !is_needless(*class, *to));
    }

    /// Notes that an order is done, unless another one has taken its place.
    pub(crate) fn done(&self, class: ClassId, to: NodeId, number: u64) {
        if let Some(order) = self.0.lock().get_mut(&(class, to)).filter(|order| order.number == number) {
            order.state = Giving::Done;
        }
    }
}
