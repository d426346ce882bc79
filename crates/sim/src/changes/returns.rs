//! Nodes that were removed by force and start again, with what they had on their disks.

use super::operator::Operator;
use super::wanted::ChangeKind;
use crate::oracle::Violation;
use crate::starting;
use crate::world::{HostId, OUTSIDE};
use ombak_repair::Repair;
use ombak_runtime::RuntimeExt;
use std::time::Duration;

/// When a node returns after the last change has ended, in milliseconds.
const RETURNS_MS: std::ops::Range<u64> = 500..6_000;
/// How long a node has to do damage after it has started again.
const DAMAGE: Duration = Duration::from_secs(4);

impl Operator {
    /// Starts a node that was removed.
    pub(super) async fn let_return(&self, host: HostId) {
        self.note(&format!("host {} was removed, and starts again", host.0));
        if starting::start(&self.nemesis.cluster, host).await.is_ok() {
            self.count(ChangeKind::Return);
        }
    }

    /// Lets nodes return that were removed by force, after all members know that. Meanwhile most
    /// tombstones of what they hold were removed.
    pub(super) async fn let_return_late(&self) {
        let runtime = self.nemesis.world.runtime(OUTSIDE);
        let mut random = self.nemesis.world.fork_random();
        let late = std::mem::take(&mut self.state.lock().late);
        for host in late {
            runtime.sleep(Duration::from_millis(random.within(RETURNS_MS))).await;
            self.let_return(host).await;
            runtime.sleep(DAMAGE).await;
            let (cluster, mut oracle) = (self.nemesis.cluster.lock(), self.nemesis.oracle.lock());
            oracle.check_all(&cluster);
            let Some(kv) = &cluster.node(host).kv else { continue };
            let what = match Repair::of(kv).pushed().0 {
                0 if kv.is_open() => "it was removed and has returned, and it serves clients".to_owned(),
                0 => continue,
                pushed => format!("it was removed and has returned, and it has pushed {pushed} copies to others"),
            };
            oracle.broken(Violation::Removed { host: host.0, what });
        }
    }
}
