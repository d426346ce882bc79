//! Which connection holds how many bytes of the budget: the decisions, without locks, clock or wake-ups.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// A time that never comes: nobody waits.
const NOT_WAITING: u64 = u64::MAX;

/// What the budget knows of the peer of a connection. The connection writes it without a lock.
#[derive(Debug)]
pub(super) struct Peer {
    /// Since when the node has waited for the peer without progress, in milliseconds of the budget's clock.
    stalled_since_ms: AtomicU64,
    /// Since when the connection has waited for memory, likewise.
    asks_since_ms: AtomicU64,
    /// The budget has told the connection to end.
    ousted: AtomicBool,
    wake: Notify,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            stalled_since_ms: AtomicU64::new(NOT_WAITING),
            asks_since_ms: AtomicU64::new(NOT_WAITING),
            ousted: AtomicBool::new(false),
            wake: Notify::new(),
        }
    }
}

impl Peer {
    /// The node waits for the peer, which last made progress now.
    pub(super) fn stalls_since(&self, now_ms: u64) {
        self.stalled_since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// The node works on a request: the peer cannot make progress.
    pub(super) fn is_served(&self) {
        self.stalled_since_ms.store(NOT_WAITING, Ordering::Relaxed);
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.stalled_since_ms.load(Ordering::Relaxed) != NOT_WAITING
    }

    /// The connection waits for memory.
    pub(super) fn asks_since(&self, since_ms: u64) {
        self.asks_since_ms.store(since_ms, Ordering::Relaxed);
    }

    /// The connection has got its memory, or was refused.
    pub(super) fn asks_no_more(&self) {
        self.asks_since_ms.store(NOT_WAITING, Ordering::Relaxed);
    }

    /// Tells the connection to give back what it holds.
    fn oust(&self) {
        self.ousted.store(true, Ordering::Release);
        // Several parts of the connection may wait, and not all of them may be polled.
        self.wake.notify_waiters();
    }

    /// Completes once the connection has been told to give back what it holds.
    pub(super) async fn ousted(&self) {
        loop {
            let mut told = pin!(self.wake.notified());
            // Before the look: what is said after it must not be missed.
            told.as_mut().enable();
            if self.ousted.load(Ordering::Acquire) {
                return;
            }
            told.await;
        }
    }
}

/// A connection that holds bytes of the budget.
struct Holder {
    bytes: u64,
    peer: Arc<Peer>,
    ousted: bool,
}

/// What was done so that memory becomes free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ousting {
    /// Connections that were told to give back what they hold.
    pub(super) told: usize,
    /// The one that asks holds most of all who wait for memory: it has to give up.
    pub(super) asker_gives_up: bool,
}

/// Connections that may wait for memory at once; more are refused.
const ASKERS_MAX: usize = 1_000;

/// A connection that waits for memory.
struct Asker {
    /// Of how many parts of the connection wait.
    asks: usize,
    /// The most that one of them asks for.
    bytes: u64,
}

/// The holders of the budget.
pub(super) struct Holders {
    bytes_max: u64,
    bytes_used: u64,
    /// By the number of the account. An account that holds nothing is not in it.
    by_account: BTreeMap<u64, Holder>,
    /// By the number of the account.
    askers: BTreeMap<u64, Asker>,
    /// The same, by how much each holds.
    askers_by_bytes: BTreeSet<(u64, u64)>,
}

impl Holders {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            bytes_used: 0,
            by_account: BTreeMap::new(),
            askers: BTreeMap::new(),
            askers_by_bytes: BTreeSet::new(),
        }
    }

    pub(super) fn bytes_used(&self) -> u64 {
        self.bytes_used
    }

    /// Adds to what an account holds; false, without any change, when that is more than the budget has left. What a
    /// connection asks for that holds less is not left either.
    pub(super) fn take(&mut self, account: u64, peer: &Arc<Peer>, bytes: u64) -> bool {
        let mut left = self.bytes_max - self.bytes_used;
        if !self.askers.is_empty() {
            left = left.saturating_sub(self.asked_by_smaller(account));
        }
        if bytes > left {
            return false;
        }
        self.bytes_used += bytes;
        let new = || Holder { bytes: 0, peer: peer.clone(), ousted: false };
        let holder = self.by_account.entry(account).or_insert_with(new);
        let before = holder.bytes;
        holder.bytes += bytes;
        self.reorder_asker(account, before, before + bytes);
        true
    }

    /// What the account asks for that holds least of all who wait, if it is another one and holds less than this one.
    fn asked_by_smaller(&self, account: u64) -> u64 {
        let held = self.held(account);
        let least = self.askers_by_bytes.iter().find(|(_, asker)| *asker != account);
        let smaller = least.filter(|(bytes, _)| *bytes < held);
        smaller.and_then(|(_, asker)| self.askers.get(asker)).map_or(0, |asker| asker.bytes)
    }

    fn reorder_asker(&mut self, account: u64, before: u64, after: u64) {
        if self.askers_by_bytes.remove(&(before, account)) {
            self.askers_by_bytes.insert((after, account));
        }
    }

    /// A part of a connection waits for so many bytes; false when too many wait.
    pub(super) fn ask(&mut self, account: u64, bytes: u64) -> bool {
        if self.askers.len() >= ASKERS_MAX && !self.askers.contains_key(&account) {
            return false;
        }
        let held = self.held(account);
        let asker = self.askers.entry(account).or_insert(Asker { asks: 0, bytes: 0 });
        asker.asks += 1;
        asker.bytes = asker.bytes.max(bytes);
        self.askers_by_bytes.insert((held, account));
        true
    }

    /// A part of a connection waits no longer.
    pub(super) fn ask_no_more(&mut self, account: u64) {
        let Some(asker) = self.askers.get_mut(&account) else { return };
        asker.asks -= 1;
        if asker.asks == 0 {
            self.askers.remove(&account);
            let held = self.held(account);
            self.askers_by_bytes.remove(&(held, account));
        }
    }

    /// Gives back some of what an account holds.
    pub(super) fn give(&mut self, account: u64, bytes: u64) {
        let Some(holder) = self.by_account.get_mut(&account) else { return };
        let before = holder.bytes;
        let bytes = bytes.min(before);
        holder.bytes -= bytes;
        self.bytes_used -= bytes;
        let is_empty = holder.bytes == 0;
        if is_empty {
            // It has done what it was told to.
            holder.peer.ousted.store(false, Ordering::Release);
            self.by_account.remove(&account);
        }
        self.reorder_asker(account, before, before - bytes);
    }

    /// How much an account holds.
    pub(super) fn held(&self, account: u64) -> u64 {
        self.by_account.get(&account).map_or(0, |holder| holder.bytes)
    }

    /// Makes sure that `bytes` become free for an account, as far as that can be had: tells connections to give back what
    /// they hold, no more of them than needed. First come those whose peers have stalled for `stalled_ms`, the one that has
    /// stalled longest in front. Then come those that have waited for memory as long, the one that holds most in front:
    /// without that, all could wait for each other. What a connection holds that was told before counts as free.
    pub(super) fn oust(&mut self, asker: u64, bytes: u64, now_ms: u64, stalled_ms: u64) -> Ousting {
        let leaving: u64 = self.by_account.values().filter(|holder| holder.ousted).map(|holder| holder.bytes).sum();
        let (mut free, mut ousting) = (self.bytes_max - self.bytes_used + leaving, Ousting::default());
        if free >= bytes {
            return ousting;
        }
        for account in self.candidates(asker, now_ms.saturating_sub(stalled_ms)) {
            if free >= bytes {
                break;
            }
            if account == asker {
                ousting.asker_gives_up = true;
                break;
            }
            let Some(holder) = self.by_account.get_mut(&account) else { continue };
            holder.ousted = true;
            holder.peer.oust();
            free += holder.bytes;
            ousting.told += 1;
        }
        ousting
    }

    /// The accounts that may lose what they hold because they have waited since `before_ms` or longer, in their order.
    fn candidates(&self, asker: u64, before_ms: u64) -> Vec<u64> {
        let (mut stalled, mut asking) = (Vec::new(), Vec::new());
        for (&account, holder) in self.by_account.iter().filter(|(_, holder)| !holder.ousted) {
            let stalled_since_ms = holder.peer.stalled_since_ms.load(Ordering::Relaxed);
            if stalled_since_ms <= before_ms && account != asker {
                stalled.push((stalled_since_ms, account));
            } else if holder.peer.asks_since_ms.load(Ordering::Relaxed) <= before_ms {
                asking.push((Reverse(holder.bytes), Reverse(account)));
            }
        }
        stalled.sort_unstable();
        asking.sort_unstable();
        let stalled = stalled.into_iter().map(|(_, account)| account);
        stalled.chain(asking.into_iter().map(|(_, Reverse(account))| account)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::collections::hash_map::Entry;

    const BYTES_MAX: u64 = 1_000;
    const STALLED_MS: u64 = 10;

    #[derive(Clone, Debug)]
    enum Step {
        Take(u64, u64),
        Give(u64, u64),
        /// The node waits for the peer from now on.
        Wait(u64),
        Serve(u64),
        /// The connection waits for memory from now on.
        Ask(u64, u64),
        AskNoMore(u64),
        Oust(u64, u64),
        Pass(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let account = 0u64..6;
        prop_oneof![
            3 => (account.clone(), 1u64..400).prop_map(|(account, bytes)| Step::Take(account, bytes)),
            2 => (account.clone(), 1u64..400).prop_map(|(account, bytes)| Step::Give(account, bytes)),
            2 => account.clone().prop_map(Step::Wait),
            1 => account.clone().prop_map(Step::Serve),
            2 => (account.clone(), 1u64..400).prop_map(|(account, bytes)| Step::Ask(account, bytes)),
            1 => account.clone().prop_map(Step::AskNoMore),
            2 => (account, 1u64..1_200).prop_map(|(account, bytes)| Step::Oust(account, bytes)),
            2 => (0u64..20).prop_map(Step::Pass),
        ]
    }

    #[derive(Default)]
    struct Model {
        held: HashMap<u64, u64>,
        since_ms: HashMap<u64, u64>,
        asks_ms: HashMap<u64, u64>,
        asked: HashMap<u64, u64>,
        ousted: Vec<u64>,
    }

    impl Model {
        fn used(&self) -> u64 {
            self.held.values().sum()
        }

        /// What is left for an account: without what the asker has asked for that holds least, if that is less.
        fn left(&self, account: u64) -> u64 {
            let held = |account: &u64| self.held.get(account).copied().unwrap_or(0);
            let least = self.asked.keys().filter(|asker| **asker != account).min_by_key(|asker| (held(asker), **asker));
            let kept = least.filter(|asker| held(asker) < held(&account)).map_or(0, |asker| self.asked[asker]);
            (BYTES_MAX - self.used()).saturating_sub(kept)
        }

        /// Whether an account holds something and has waited since the time that `waits` says, long enough.
        fn may_lose(&self, waits: &HashMap<u64, u64>, account: u64, now_ms: u64) -> bool {
            let holds = self.held.get(&account).is_some_and(|&held| held > 0);
            holds && !self.ousted.contains(&account) && waits.get(&account).is_some_and(|ms| ms + STALLED_MS <= now_ms)
        }

        /// The same rule in other words: one after the other, each time the one that comes first.
        fn oust(&mut self, asker: u64, bytes: u64, now_ms: u64) -> (Vec<u64>, bool) {
            let mut told = Vec::new();
            loop {
                let leaving: u64 = self.ousted.iter().filter_map(|account| self.held.get(account)).sum();
                if BYTES_MAX - self.used() + leaving >= bytes {
                    return (told, false);
                }
                let stalled = (0..6)
                    .filter(|&account| account != asker && self.may_lose(&self.since_ms, account, now_ms))
                    .min_by_key(|account| (self.since_ms[account], *account));
                let asking = (0..6)
                    .filter(|&account| self.may_lose(&self.asks_ms, account, now_ms))
                    .max_by_key(|account| (self.held[account], *account));
                match stalled.or(asking) {
                    None => return (told, false),
                    Some(account) if account == asker => return (told, true),
                    Some(account) => {
                        self.ousted.push(account);
                        told.push(account);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn it_does_what_the_model_does(steps in prop::collection::vec(step(), 0..80)) {
            let peers: Vec<Arc<Peer>> = (0..6).map(|_| Arc::default()).collect();
            let peer = |account: u64| &peers[account as usize];
            let (mut holders, mut model, mut now_ms) = (Holders::new(BYTES_MAX), Model::default(), 0);
            for step in steps {
                match step {
                    Step::Take(account, bytes) => {
                        let fits = bytes <= model.left(account);
                        prop_assert_eq!(holders.take(account, peer(account), bytes), fits);
                        *model.held.entry(account).or_default() += if fits { bytes } else { 0 };
                    }
                    Step::Give(account, bytes) => {
                        holders.give(account, bytes);
                        let held = model.held.entry(account).or_default();
                        *held = held.saturating_sub(bytes);
                        if *held == 0 {
                            // An account that holds nothing is forgotten; here it lives on as a new one would.
                            model.ousted.retain(|ousted| *ousted != account);
                        }
                    }
                    Step::Wait(account) => {
                        peer(account).stalls_since(now_ms);
                        model.since_ms.insert(account, now_ms);
                    }
                    Step::Serve(account) => {
                        peer(account).is_served();
                        model.since_ms.remove(&account);
                    }
                    Step::Ask(account, bytes) => {
                        peer(account).asks_since(now_ms);
                        model.asks_ms.insert(account, now_ms);
                        if let Entry::Vacant(unasked) = model.asked.entry(account) {
                            prop_assert!(holders.ask(account, bytes));
                            unasked.insert(bytes);
                        }
                    }
                    Step::AskNoMore(account) => {
                        peer(account).asks_no_more();
                        model.asks_ms.remove(&account);
                        holders.ask_no_more(account);
                        model.asked.remove(&account);
                    }
                    Step::Oust(account, bytes) if now_ms >= STALLED_MS => {
                        let (told, asker_gives_up) = model.oust(account, bytes, now_ms);
                        let expected = Ousting { told: told.len(), asker_gives_up };
                        prop_assert_eq!(holders.oust(account, bytes, now_ms, STALLED_MS), expected);
                        prop_assert!(told.iter().all(|&account| peer(account).ousted.load(Ordering::Relaxed)));
                    }
                    Step::Oust(..) => {}
                    Step::Pass(ms) => now_ms += ms,
                }
                prop_assert_eq!(holders.bytes_used(), model.used());
                prop_assert!(holders.bytes_used() <= BYTES_MAX);
                let ousted = holders.by_account.iter().filter(|(_, holder)| holder.ousted).map(|(account, _)| *account);
                model.ousted.sort_unstable();
                prop_assert_eq!(ousted.collect::<Vec<_>>(), model.ousted.clone());
            }
            for account in 0..6 {
                holders.ask_no_more(account);
                holders.give(account, BYTES_MAX);
            }
            prop_assert_eq!((holders.bytes_used(), holders.by_account.len()), (0, 0));
            prop_assert_eq!((holders.askers.len(), holders.askers_by_bytes.len()), (0, 0));
        }
    }
}
