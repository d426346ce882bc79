//! Faults that nobody is told of, after everything has come to rest.
//!
//! While clients work, a key is seldom removed for long, and other faults excuse most of what
//! exchanges do wrong. So after a complete round of exchanges, when marks cover everything, one
//! store at a time loses something. Then the keys are read, and exchanges go on.
//!
//! These faults, too, draw from a stream of random numbers of their own.

use crate::clients::Clients;
use crate::cluster::{BackendKind, Cluster};
use crate::decay::Decay;
use crate::exchanging;
use crate::faults::Nemesis;
use crate::oracle::Key;
use crate::world::{HostId, OUTSIDE};
use ombak_kv::GetOptions;
use ombak_runtime::RuntimeExt;
use ombak_storage::fs::sim::Loss;
use ombak_types::Quorum;
use std::time::Duration;

/// What tells the random numbers of these faults from others of the same seed.
const STREAM: u64 = 0x636f_6c64_0000_0001;
/// How long a node is down at most that such a fault stops.
const DOWN_MAX: Duration = Duration::from_secs(4);
/// How long exchanges without a primary go on. They look twice, two seconds apart.
const WITHOUT_ONE: Duration = Duration::from_secs(8);

/// What one store loses.
#[derive(Clone, Copy)]
enum Loses {
    /// A removal, and it does not notice that.
    RemovalUnnoticed,
    /// A removal, and it notices that.
    Removal,
    /// A record that one other primary has.
    RecordOfTwo,
    /// A record that several other primaries have.
    Record,
    /// The same, and one of these primaries is down for a while.
    RecordWhileOneIsDown,
}

const ALL: [Loses; 6] = [
    Loses::RemovalUnnoticed,
    Loses::RemovalUnnoticed,
    Loses::Removal,
    Loses::RecordOfTwo,
    Loses::Record,
    Loses::RecordWhileOneIsDown,
];

/// Lets stores decay at rest.
pub(crate) struct ColdDecay(Decay);

impl ColdDecay {
    pub(crate) fn new(nemesis: &Nemesis, seed: u64) -> Self {
        Self(Decay::new(nemesis.clone(), seed ^ STREAM))
    }

    /// Lets one store lose something, and reads the key.
    pub(crate) async fn strike(&mut self, clients: &Clients) {
        let runtime = clients.world.runtime(OUTSIDE);
        self.0.victim = None;
        self.0.choose_victim();
        let loses = *self.0.random.pick(&ALL);
        let returned = match loses {
            Loses::RemovalUnnoticed => self.0.return_version(false),
            Loses::Removal => self.0.return_version(true),
            Loses::RecordOfTwo => self.vanish(2..=2),
            Loses::Record | Loses::RecordWhileOneIsDown => None,
        };
        let Some(key) = returned.or_else(|| self.vanish(3..=u32::MAX)) else { return };
        if matches!(loses, Loses::RecordWhileOneIsDown) {
            self.exchange_without_one(clients, key).await;
        }
        runtime.sleep(DOWN_MAX).await;
        let hosts = clients.cluster.lock().member_hosts();
        for r in [None, Some(Quorum::All)] {
            for host in &hosts {
                // The answer does not matter; what it spreads does.
                drop(clients.get(*host, key, GetOptions { r, ..GetOptions::default() }).await);
            }
        }
    }

    /// Lets the record of a key of so many primaries vanish, if possible of one of which no other
    /// primary is in doubt: a primary in doubt may drop what it has.
    fn vanish(&mut self, n: std::ops::RangeInclusive<u32>) -> Option<Key> {
        let victim = self.0.victim?;
        let witness = self.0.nemesis.oracle.lock().witness.clone();
        let is_certain = |cluster: &Cluster, key: &Key| {
            cluster.owners_of(key).iter().all(|owner| *owner == victim || !witness.is_doubtful(*owner))
        };
        let certain = self.0.vanish(|cluster, key| n.contains(&key.kind.n) && is_certain(cluster, key));
        certain.or_else(|| self.0.vanish(|_, key| n.contains(&key.kind.n)))
    }

    /// Lets nodes exchange while another primary of a key is down.
    async fn exchange_without_one(&mut self, clients: &Clients, key: Key) {
        let nemesis = self.0.nemesis.clone();
        let others: Vec<HostId> = {
            let cluster = nemesis.cluster.lock();
            let is_whole = |host: &HostId| {
                let node = cluster.node(*host);
                node.backend != BackendKind::Memory && !node.is_damaged && node.kv.is_some()
            };
            let owners = cluster.owners_of(&key).into_iter();
            owners.filter(|host| Some(*host) != self.0.victim && is_whole(host)).collect()
        };
        if others.is_empty() {
            return;
        }
        let other = *self.0.random.pick(&others);
        if !nemesis.take(other) {
            return;
        }
        nemesis.stop(other, Loss::Nothing, false);
        exchanging::begin_round(&clients.cluster.lock());
        clients.world.runtime(OUTSIDE).sleep(WITHOUT_ONE).await;
        nemesis.start_again(other).await;
    }
}
