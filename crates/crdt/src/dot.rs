//! The name of one event on a value.

use ombak_types::Actor;

/// One event of one actor. Riak stores it as `{Actor, Count}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dot {
    /// The actor of the event.
    pub actor: Actor,
    /// The number of the event among the actor's events on this value, from 1.
    pub count: u64,
}

impl Dot {
    /// The largest count from outside. No actor reaches it, and counting on cannot overflow.
    pub(crate) const COUNT_MAX: u64 = 1 << 62;

    /// Creates a dot.
    pub fn new(actor: Actor, count: u64) -> Self {
        Self { actor, count }
    }
}
