//! The places of handshakes that are under way, and how addresses share them.

use crate::memory::address_group;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::oneshot::{self, Receiver, Sender};

/// The places of handshakes that are under way.
///
/// As long as there are free ones, an address may have any number. When all are taken, an address
/// with fewer places than another one gets one of those that the other has: its oldest handshake
/// ends. So whoever holds all places keeps nobody out. Addresses of version 6 with the same first
/// half count as one.
#[derive(Debug)]
pub(super) struct Places {
    places_max: usize,
    line: Mutex<Line>,
}

/// Who has a place, and who waits for one.
#[derive(Debug, Default)]
struct Line {
    taken: usize,
    /// Handshakes are numbered in the order in which they have come.
    next_number: u64,
    addresses: BTreeMap<u64, OfAddress>,
}

/// The handshakes of an address, by their numbers.
#[derive(Debug, Default)]
struct OfAddress {
    /// Those that have a place. Each is told when it loses its place.
    under_way: BTreeMap<u64, Sender<()>>,
    /// Those that wait. Each is told when it has a place, and later as above.
    waiting: BTreeMap<u64, (Sender<()>, Sender<()>)>,
}

/// A place, which is free again when this is dropped. Whoever still waits for it gives up.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    address: u64,
    number: u64,
    lost: Receiver<()>,
}

impl Places {
    /// So many places; at least one.
    pub(super) fn new(places_max: usize) -> Self {
        Self { places_max: places_max.max(1), line: Mutex::default() }
    }

    /// Waits for a place for a handshake with this address.
    pub(super) async fn take(self: &Arc<Self>, address: IpAddr) -> Place {
        let (place, has_place) = self.enter(address_group(address));
        if let Some(has_place) = has_place {
            // The sender is dropped only after it has told, or with the place.
            let _ = has_place.await;
        }
        place
    }

    /// Stands in line. Returns what tells that there is a place, unless there is one at once.
    fn enter(self: &Arc<Self>, address: u64) -> (Place, Option<Receiver<()>>) {
        let (lose, lost) = oneshot::channel();
        let mut line = self.line.lock();
        let number = line.next_number;
        line.next_number += 1;
        let has_place = match line.taken < self.places_max {
            true => {
                line.taken += 1;
                true
            }
            false => line.displace_for(address),
        };
        let of_address = line.addresses.entry(address).or_default();
        let waits = match has_place {
            true => {
                of_address.under_way.insert(number, lose);
                None
            }
            false => {
                let (tell, told) = oneshot::channel();
                of_address.waiting.insert(number, (tell, lose));
                Some(told)
            }
        };
        drop(line);
        (Place { places: Arc::clone(self), address, number, lost }, waits)
    }
}

impl Line {
    /// Takes a place away from the address that has most of them, unless the other address would
    /// have as many then. Returns whether it did.
    fn displace_for(&mut self, address: u64) -> bool {
        let own = self.addresses.get(&address).map_or(0, |own| own.under_way.len());
        let most = self.addresses.values_mut().max_by_key(|of_address| of_address.under_way.len());
        let Some(most) = most.filter(|most| most.under_way.len() > own + 1) else { return false };
        let Some((_, oldest)) = most.under_way.pop_first() else { return false };
        // Its handshake may have ended at this moment.
        let _ = oldest.send(());
        true
    }

    /// Forgets a handshake, and gives its place to one that waits: of the address that has fewest,
    /// the one that came first.
    fn leave(&mut self, address: u64, number: u64) {
        let Some(own) = self.addresses.get_mut(&address) else { return };
        let had_place = own.under_way.remove(&number).is_some();
        own.waiting.remove(&number);
        if own.under_way.is_empty() && own.waiting.is_empty() {
            self.addresses.remove(&address);
        }
        if !had_place {
            return;
        }
        let key = |of_address: &OfAddress| {
            of_address.waiting.keys().next().map(|number| (of_address.under_way.len(), *number))
        };
        let next = self
            .addresses
            .values_mut()
            .filter(|of_address| !of_address.waiting.is_empty())
            .min_by_key(|next| key(next));
        let Some((next, (number, (tell, lose)))) = next.and_then(|next| {
            let first = next.waiting.pop_first()?;
            Some((next, first))
        }) else {
            self.taken -= 1;
            return;
        };
        next.under_way.insert(number, lose);
        // Whoever has given up meanwhile leaves the line, too, and passes the place on.
        let _ = tell.send(());
    }
}

impl Place {
    /// Does the work of the handshake while it has its place.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionAborted`]: it has lost its place to another address.
    pub(super) async fn keep<T>(mut self, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let lost = async {
            if (&mut self.lost).await.is_err() {
                // The sender lives as long as the place.
                pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = lost => {
                let why = "too many handshakes are under way, and its address has most of them";
                Err(io::Error::new(io::ErrorKind::ConnectionAborted, why))
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.line.lock().leave(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const A: u64 = 1;
    const B: u64 = 2;
    const C: u64 = 3;

    fn has_lost(place: &mut Place) -> bool {
        place.lost.try_recv().is_ok()
    }

    fn has_place(entered: &mut (Place, Option<Receiver<()>>)) -> bool {
        entered.1.as_mut().is_none_or(|told| told.try_recv().is_ok())
    }

    #[test]
    fn an_address_may_have_all_places_until_another_one_comes() {
        let places = Arc::new(Places::new(4));
        let mut of_a: Vec<_> = (0..6).map(|_| places.enter(A)).collect();
        assert_eq!(of_a.iter_mut().map(has_place).collect::<Vec<_>>(), [true, true, true, true, false, false]);
        let mut of_b: Vec<_> = (0..3).map(|_| places.enter(B)).collect();
        assert_eq!(of_b.iter_mut().map(has_place).collect::<Vec<_>>(), [true, true, false], "each has half");
        let lost: Vec<bool> = of_a.iter_mut().map(|entered| has_lost(&mut entered.0)).collect();
        assert_eq!(lost, [true, true, false, false, false, false], "the oldest are gone");
        // The handshakes that have lost their places end, which frees nothing.
        of_a.drain(..2);
        assert!(!has_place(&mut of_a[2]) && !has_place(&mut of_b[2]));
        let mut of_c = [places.enter(C), places.enter(C)];
        assert_eq!(of_c.each_mut().map(has_place), [true, false], "nobody has two more than it now");
        // Each of them has one then, so the place that is free goes to the one that came first.
        of_a.remove(0);
        assert!(has_place(&mut of_a[1]) && !has_place(&mut of_b[2]) && !has_place(&mut of_c[1]));
        assert_eq!(places.line.lock().taken, 4);
    }

    #[test]
    fn what_is_dropped_leaves_nothing_behind() {
        let places = Arc::new(Places::new(1));
        let (first, mut second, third) = (places.enter(A), places.enter(A), places.enter(A));
        drop(third);
        drop(first);
        assert!(has_place(&mut second));
        // A place that was given to one that gives up at this moment is passed on.
        let (gives_up, mut last) = (places.enter(A), places.enter(A));
        drop(second);
        drop(gives_up);
        assert!(has_place(&mut last));
        drop(last);
        let line = places.line.lock();
        assert_eq!((line.taken, line.addresses.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_handshake_ends_when_it_has_lost_its_place() {
        let places = Arc::new(Places::new(2));
        let near = |last: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last));
        let (first, second) = (places.take(near(1)).await, places.take(near(2)).await);
        let other = places.take(IpAddr::V4(Ipv4Addr::LOCALHOST)).await;
        let lost = first.keep(pending::<io::Result<()>>()).await.unwrap_err();
        assert_eq!(lost.kind(), io::ErrorKind::ConnectionAborted);
        second.keep(async { Ok(()) }).await.unwrap();
        other.keep(async { Ok(()) }).await.unwrap();
    }
}
