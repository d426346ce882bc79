//! Repairs what the stores of this node cannot read (docs/design/replication.md §13).
//!
//! A primary reads the key from all primaries, and takes what they have in the place of its own
//! version. It also takes the same version from a node that brings it (`compare`). A node that is
//! no primary is not repaired: its copy goes when every primary has proved that it holds a version
//! with the same digest (`hand_back`).

use crate::Host;
use crate::work::Work;
use ombak_kv::repair_host::{Access, KeyPlace, class_of_key};
use tracing::{debug, info};

/// How many keys one piece of work repairs.
const KEYS_AT_ONCE: usize = 100;

impl Work {
    /// Repairs keys whose time has come.
    pub(crate) async fn repair_unreadable(&self, host: &Host) {
        let keys = host.partitions().unreadable_keys().clone();
        for place in keys.due(self.runtime.now(), KEYS_AT_ONCE) {
            if self.repair_one(host, &place).await {
                keys.repaired(&place);
            } else {
                keys.failed(&place, self.runtime.now());
            }
        }
    }

    /// Returns whether the key can be read now, or is gone.
    async fn repair_one(&self, host: &Host, place: &KeyPlace) -> bool {
        if is_readable(host, place).await {
            return true;
        }
        let (number, key) = place;
        let n = class_of_key(&host.buckets().snapshot(), key);
        let placement = host.placement();
        if !n.is_some_and(|n| placement.home(*number).is_primary(host.node_id(), n)) {
            return false;
        }
        if let Err(why) = host.clone().repair_key(key.clone()).await {
            debug!(partition = number, %why, "a key was not repaired");
        }
        let is_repaired = is_readable(host, place).await;
        if is_repaired {
            info!(partition = number, "a version was repaired from other replicas");
        }
        is_repaired
    }
}

/// Whether this node can read what it has of a key; true if it has nothing.
async fn is_readable(host: &Host, (number, key): &KeyPlace) -> bool {
    let Ok(partition) = host.partitions().find(*number) else { return false };
    let key = key.clone();
    let look = move || {
        let found = partition.read(&key, Access::Blocking)?;
        found.map(|found| partition.decode(&key, &found)).transpose()
    };
    matches!(host.transfers().pool.run(look).await, Ok(Ok(_)))
}
