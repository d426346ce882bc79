//! The threads on which passwords are compared with stored hashes.
//!
//! A stored hash is slow on purpose, so it is computed neither on a network thread nor beside many
//! others. A check that finds no place is refused at once, so what waits is bounded, and one
//! address has only a part of the places.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock, mpsc};
use tokio::sync::oneshot;

/// How many checks wait or run.
const CHECKS_MAX: usize = 256;
/// How many of them may come from one address.
const CHECKS_OF_ADDRESS_MAX: usize = 64;
/// How many threads there are at most.
const THREADS_MAX: usize = 4;
/// The stack of a thread, in bytes. The memory of a hash is on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// Work whose answer somebody waits for.
type Check = Box<dyn FnOnce() + Send>;

/// The threads on which passwords are compared with stored hashes. They start with the first check.
#[derive(Debug, Default)]
pub(super) struct PasswordChecks {
    queue: OnceLock<mpsc::SyncSender<Check>>,
    #[cfg(test)]
    begun: std::sync::atomic::AtomicUsize,
    places: Arc<Mutex<Places>>,
}

/// Who has how many checks that wait or run.
#[derive(Debug, Default)]
struct Places {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A place of an address, which is free again when this is dropped.
struct Place {
    address: IpAddr,
    places: Arc<Mutex<Places>>,
}

/// A check found no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoPlace;

impl PasswordChecks {
    /// Runs a check on one of the threads.
    pub(super) async fn run(
        &self,
        address: IpAddr,
        check: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<bool, NoPlace> {
        let place = self.take_place(address).ok_or(NoPlace)?;
        #[cfg(test)]
        self.begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        let job = Box::new(move || {
            // Nobody waits any more if the client has gone.
            if !tell.is_closed() {
                // It may have gone meanwhile.
                let _ = tell.send(check());
            }
            drop(place);
        });
        self.queue().try_send(job).map_err(|_| NoPlace)?;
        told.await.map_err(|_| NoPlace)
    }

    /// How many checks have begun.
    #[cfg(test)]
    pub(super) fn begun(&self) -> usize {
        self.begun.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn take_place(&self, address: IpAddr) -> Option<Place> {
        let mut places = self.places.lock();
        let of_address = places.by_address.get(&address).copied().unwrap_or(0);
        if places.all >= CHECKS_MAX || of_address >= CHECKS_OF_ADDRESS_MAX {
            return None;
        }
        places.all += 1;
        places.by_address.insert(address, of_address + 1);
        Some(Place { address, places: Arc::clone(&self.places) })
    }

    fn queue(&self) -> &mpsc::SyncSender<Check> {
        self.queue.get_or_init(|| {
            let (give, take) = mpsc::sync_channel::<Check>(CHECKS_MAX);
            let take = Arc::new(Mutex::new(take));
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            for number in 0..processors.div_ceil(2).min(THREADS_MAX) {
                let take = Arc::clone(&take);
                let thread = std::thread::Builder::new().name(format!("ombak-login-{number}")).stack_size(STACK_BYTES);
                let started = thread.spawn(move || {
                    loop {
                        // The lock is held while this thread waits, and free while it works.
                        let check = take.lock().recv();
                        let Ok(check) = check else { return };
                        check();
                    }
                });
                if let Err(error) = started {
                    tracing::error!(%error, "a thread that compares passwords cannot be created");
                }
            }
            give
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        places.all -= 1;
        let left = places.by_address.get(&self.address).map_or(0, |checks| checks - 1);
        if left == 0 {
            places.by_address.remove(&self.address);
        } else {
            places.by_address.insert(self.address, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    #[tokio::test]
    async fn one_address_does_not_take_all_places_and_places_come_back() {
        let checks = Arc::new(PasswordChecks::default());
        // Checks wait until the other end of the channel is dropped.
        let (closed, gate) = mpsc::sync_channel::<()>(0);
        let gate = Arc::new(Mutex::new(gate));
        let begin = |last: u8| {
            let (checks, gate) = (checks.clone(), gate.clone());
            tokio::spawn(async move {
                checks
                    .run(address(last), move || {
                        let _ = gate.lock().recv();
                        true
                    })
                    .await
            })
        };
        let of_one: Vec<_> = (0..CHECKS_OF_ADDRESS_MAX + 1).map(|_| begin(1)).collect();
        while checks.places.lock().all < CHECKS_OF_ADDRESS_MAX {
            tokio::task::yield_now().await;
        }
        let of_another = begin(2);
        while checks.places.lock().all < CHECKS_OF_ADDRESS_MAX + 1 {
            tokio::task::yield_now().await;
        }
        drop(closed);
        let mut answers = Vec::new();
        for check in of_one {
            answers.push(check.await.unwrap());
        }
        assert_eq!(answers.iter().filter(|answer| **answer == Err(NoPlace)).count(), 1);
        assert_eq!(of_another.await.unwrap(), Ok(true));
        assert!(checks.run(address(1), || false).await == Ok(false));
        while checks.places.lock().all > 0 {
            tokio::task::yield_now().await;
        }
        assert!(checks.places.lock().by_address.is_empty());
    }
}
