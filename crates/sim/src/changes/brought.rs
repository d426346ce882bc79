//! Nodes that have taken writes while they were alone, and join with them
//! (docs/design/replication.md §15).

use super::commands;
use super::operator::Operator;
use super::wanted::{ChangeKind, Wanted};
use crate::bucket_kinds::BucketKind;
use crate::clients::{KEYS_PER_KIND, sibling_of};
use crate::cluster::{Backends, NoStart, Wiring};
use crate::oracle::Key;
use crate::random::Random;
use crate::starting;
use crate::world::{HostId, OUTSIDE};
use ombak_kv::{PutOptions, PutRequest};
use ombak_runtime::{Runtime, RuntimeExt};
use ombak_types::{Object, VectorClock};
use std::time::Duration;

/// How many writes a node takes while it is alone.
const WRITES: std::ops::Range<u64> = 4..20;
/// How long a node waits for its commit before its join is taken back, in milliseconds.
const JOINING_MS: std::ops::Range<u64> = 500..4_000;
/// How long an operator tries to take a join back, and waits until the node is alone again.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(500);

impl Operator {
    /// Starts a node that is to join. Half of those over streams have taken writes before.
    pub(super) async fn start_joiner(&self, host: HostId, random: &mut Random) -> Result<(), NoStart> {
        let cluster = &self.nemesis.cluster;
        let brings = cluster.lock().wiring == Wiring::Streams && random.chance(50);
        if brings {
            starting::create_types(cluster, host)?;
        }
        starting::start(cluster, host).await?;
        if brings {
            self.write_alone(host, random).await;
            self.count(ChangeKind::Bring);
        }
        Ok(())
    }

    async fn write_alone(&self, host: HostId, random: &mut Random) {
        for _ in 0..random.within(WRITES) {
            let key = Key { kind: *random.pick(&BucketKind::ALL), number: random.within(0..KEYS_PER_KIND) };
            let (kv, is_indexed) = {
                let cluster = self.nemesis.cluster.lock();
                (cluster.node(host).kv.clone(), cluster.backends == Backends::OnlyMemory)
            };
            // A fault has ended the process.
            let Some(kv) = kv else { return };
            let token = self.nemesis.oracle.lock().write_begins(key, [].into(), false);
            let siblings = vec![sibling_of(key, token, false, is_indexed)];
            let object = Object { clock: VectorClock::new(), siblings };
            let (bucket, options) = (key.kind.bucket(), PutOptions::default());
            let request = PutRequest { bucket, key: Some(key.bytes()), object, options };
            let put = starting::on_host(&self.nemesis.cluster, host, async move { kv.put(request).await });
            let is_acknowledged = matches!(put.await, Ok(Ok(_)));
            let (cluster, mut oracle) = (self.nemesis.cluster.lock(), self.nemesis.oracle.lock());
            let elapsed = self.nemesis.world.elapsed();
            oracle.note(key, format!("{elapsed:?} write {token} of host {} alone: {is_acknowledged}", host.0));
            oracle.write_ends(&cluster, key, token, is_acknowledged, None);
            self.state.lock().brought.entry(host).or_default().push((key, token));
        }
    }

    /// Lets a node join that has taken writes, and takes that back. Meanwhile nothing of what it
    /// has leaves it, and afterwards it has everything.
    pub(super) async fn join_and_take_back(&self, wanted: Wanted, random: &mut Random) {
        let runtime = self.nemesis.world.runtime(OUTSIDE);
        let brought = wanted.joins.and_then(|host| Some((host, self.state.lock().brought.get(&host).cloned()?)));
        let Some((host, brought)) = brought.filter(|_| random.chance(40)) else { return };
        let cluster = &self.nemesis.cluster;
        let Some(through) = self.someone(random) else { return };
        self.set_uncommitted(host, true);
        let joined = commands::join(cluster, through, host).await;
        self.note(&format!("host {} joins with objects through host {}: {joined:?}", host.0, through.0));
        runtime.sleep(Duration::from_millis(random.within(JOINING_MS))).await;
        let has_joined = !commands::is_alone(&cluster.lock(), host);
        let until = runtime.now() + PATIENCE;
        while runtime.now() < until && !commands::is_alone(&cluster.lock(), host) {
            if let Some(through) = self.someone(random) {
                let cleared = commands::clear(cluster, through).await;
                self.note(&format!("its join is taken back: {cleared:?}"));
            }
            runtime.sleep(LOOK).await;
        }
        if has_joined && commands::is_alone(&cluster.lock(), host) {
            self.count(ChangeKind::TakeBack);
            let (cluster, mut oracle) = (cluster.lock(), self.nemesis.oracle.lock());
            oracle.check_has_all(&cluster, host, &brought);
        }
        self.set_uncommitted(host, false);
    }

    fn set_uncommitted(&self, host: HostId, is_uncommitted: bool) {
        self.nemesis.oracle.lock().witness.set_uncommitted(host, is_uncommitted);
    }
}
