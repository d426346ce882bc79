//! The placement in force, and the earlier ones that requests still use.
//!
//! What it is not: it does not make roles durable, and it does not decide which placement follows.
//!
//! Hot path: each request takes the placement once. Nothing else is counted for it: an earlier
//! placement is in use as long as a request refers to it.
//!
//! Invariants: versions of one lineage rise. A version is confirmed only when no request refers to
//! a lower one.

use arc_swap::ArcSwap;
use ombak_ring::RingVersion;
use ombak_ring::placement::Placement;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// A placement for requests. A request that coordinates refers to it until its end, also after its
/// client was answered. Whoever else needs the placement takes what is in it.
#[derive(Debug)]
pub struct UsedPlacement(Arc<Placement>);

/// The placement of one request.
pub type RequestPlacement = Arc<UsedPlacement>;

/// The placements of a node.
#[derive(Debug)]
pub(super) struct Placements {
    present: ArcSwap<UsedPlacement>,
    /// The oldest comes first.
    former: Mutex<Vec<(RingVersion, Weak<UsedPlacement>)>>,
    changed: Notify,
}

impl Deref for UsedPlacement {
    type Target = Placement;

    fn deref(&self) -> &Placement {
        &self.0
    }
}

impl Placements {
    pub(super) fn new(first: Placement) -> Self {
        let present = ArcSwap::from_pointee(UsedPlacement(Arc::new(first)));
        Self { present, former: Mutex::default(), changed: Notify::new() }
    }

    /// The placement for a request that begins now.
    pub(super) fn for_request(&self) -> RequestPlacement {
        self.present.load_full()
    }

    /// The placement in force, for what is no request.
    pub(super) fn present(&self) -> Arc<Placement> {
        self.present.load().0.clone()
    }

    /// Reads from the placement in force, without keeping it.
    pub(super) fn look<T>(&self, at: impl FnOnce(&Placement) -> T) -> T {
        at(&self.present.load())
    }

    /// Puts a placement in force.
    pub(super) fn set(&self, next: Placement) {
        let mut former = self.former.lock();
        let before = self.present.swap(Arc::new(UsedPlacement(Arc::new(next))));
        forget_unused(&mut former);
        former.push((before.version(), Arc::downgrade(&before)));
        drop(before);
        drop(former);
        self.changed.notify_waiters();
    }

    /// The highest version below which no request is under way.
    pub(super) fn confirmed(&self) -> RingVersion {
        let mut former = self.former.lock();
        forget_unused(&mut former);
        former.first().map_or_else(|| self.look(Placement::version), |(oldest, _)| *oldest)
    }

    /// Waits until no older version of the same lineage is in force.
    pub(super) async fn wait_for(&self, at_least: RingVersion) {
        loop {
            let changed = self.changed.notified();
            if !self.look(|placement| placement.version() < at_least) {
                return;
            }
            changed.await;
        }
    }
}

fn forget_unused(former: &mut Vec<(RingVersion, Weak<UsedPlacement>)>) {
    former.retain(|(_, used)| used.strong_count() > 0);
    // What the requests did before they ended is seen by whoever hears that they have ended.
    fence(Ordering::Acquire);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_ring::Ring;
    use ombak_types::NodeId;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn placement(number: u64) -> Placement {
        let ring = Ring::from_owners(&[NodeId::new(1); 8], RingVersion { lineage: 1, number }).unwrap();
        Placement::of_ring(Arc::new(ring))
    }

    fn numbers(placements: &Placements) -> (u64, u64) {
        (placements.present().version().number, placements.confirmed().number)
    }

    #[test]
    fn a_version_is_confirmed_when_the_requests_of_all_lower_ones_have_ended() {
        let placements = Placements::new(placement(1));
        let (first, again) = (placements.for_request(), placements.for_request());
        assert_eq!(numbers(&placements), (1, 1));
        placements.set(placement(2));
        let second = placements.for_request();
        placements.set(placement(5));
        let _other_use = placements.present();
        placements.set(placement(6));
        assert_eq!(numbers(&placements), (6, 1));
        drop(first);
        assert_eq!(numbers(&placements), (6, 1), "there is another request");
        drop(again);
        assert_eq!(numbers(&placements), (6, 2));
        drop(second);
        assert_eq!(numbers(&placements), (6, 6), "what is no request does not count");
    }

    #[test]
    fn whoever_waits_for_a_version_is_woken_when_it_is_in_force() {
        let placements = Placements::new(placement(1));
        let mut waits = pin!(placements.wait_for(RingVersion { lineage: 1, number: 3 }));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(waits.as_mut().poll(&mut cx), Poll::Pending);
        placements.set(placement(2));
        assert_eq!(waits.as_mut().poll(&mut cx), Poll::Pending);
        placements.set(placement(4));
        assert_eq!(waits.as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
