//! Which processes have known for long that their node leaves.

use crate::cluster::Cluster;
use crate::oracle::Witness;
use crate::world::{HostId, HostKey};
use ombak_metadata::state::MemberStatus;
use ombak_ring::staging::MemberStatus as Staged;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// No put takes so long.
const PUT_MAX: Duration = Duration::from_secs(6);

/// Since when the processes of members have known that they leave.
#[derive(Default)]
pub(super) struct Leavers(BTreeMap<HostId, (HostKey, Instant)>);

impl Leavers {
    /// Looks at a member that an operator has asked to leave. When its process has known that for
    /// longer than any put takes, the witness hears of it.
    pub(super) fn look(&mut self, cluster: &Cluster, host: HostId, now: Instant, witness: &Witness) {
        if !knows_that_it_leaves(cluster, host) {
            return;
        }
        let process = cluster.world.inner().process_of(host);
        let known = self.0.entry(host).or_insert((process, now));
        if known.0 != process {
            *known = (process, now);
        }
        if known.1 + PUT_MAX < now {
            witness.note_leaver(host);
        }
    }
}

fn knows_that_it_leaves(cluster: &Cluster, host: HostId) -> bool {
    let node = cluster.node(host);
    let Some(id) = node.id.filter(|_| node.kv.is_some()) else { return false };
    match &node.member {
        Some(member) => {
            let status = member.metadata().members().get(&id).map(|member| member.status);
            matches!(status, Some(MemberStatus::Leaving | MemberStatus::Exiting))
        }
        None => {
            let followed = cluster.decided.followed_by(host);
            let status = followed.and_then(|followed| followed.members.get(&id).copied());
            matches!(status, Some(Staged::Leaving | Staged::Exiting))
        }
    }
}
