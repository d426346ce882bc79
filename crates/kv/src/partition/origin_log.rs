//! Where the last changes of a partition came from. It is in memory only: after a restart, and for
//! a consumer that lags further behind, the origin of a change is unknown.

use ombak_storage::Origin;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many changes are remembered; a power of two.
const CHANGES: usize = 1 << 14;
/// The low bits of a slot have the number of the origin.
const ORIGIN_BITS: u32 = 4;

/// The origins of the last changes, by their place in the append order.
pub(super) struct OriginLog(Box<[AtomicU64]>);

impl Default for OriginLog {
    fn default() -> Self {
        Self((0..CHANGES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl OriginLog {
    /// Notes the origin of the change at a place. Takes no lock.
    pub(super) fn note(&self, seq: u64, origin: Origin) {
        self.slot(seq).store(seq << ORIGIN_BITS | u64::from(origin.number()), Ordering::Release);
    }

    /// The origin of the change at a place; unknown if it is forgotten.
    pub(super) fn of(&self, seq: u64) -> Origin {
        let slot = self.slot(seq).load(Ordering::Acquire);
        let number = (slot & ((1 << ORIGIN_BITS) - 1)) as u8;
        if slot >> ORIGIN_BITS == seq { Origin::of_number(number) } else { Origin::Unknown }
    }

    fn slot(&self, seq: u64) -> &AtomicU64 {
        &self.0[seq as usize % CHANGES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_origins_are_remembered() {
        let log = OriginLog::default();
        assert_eq!(log.of(5), Origin::Unknown);
        log.note(5, Origin::Reap);
        log.note(6, Origin::Coordinated);
        assert_eq!((log.of(5), log.of(6)), (Origin::Reap, Origin::Coordinated));
        log.note(5 + CHANGES as u64, Origin::Handoff);
        assert_eq!((log.of(5), log.of(5 + CHANGES as u64)), (Origin::Unknown, Origin::Handoff));
    }
}
