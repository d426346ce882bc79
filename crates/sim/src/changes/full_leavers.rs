//! Members whose disks are full while they leave.

use super::operator::Operator;
use super::wanted::Wanted;
use crate::cluster::{MemberStage, Wiring};
use crate::random::Random;
use crate::world::{HostId, OUTSIDE};
use ombak_kv::{BrokenRule, is_broken};
use ombak_runtime::{Runtime, RuntimeExt};
use std::time::Duration;

/// What sets the random numbers of this fault apart from those of the run, whose seed they share.
const STREAM: u64 = 0xF011_D15C;
/// How many of 100 leavers have full disks.
const FULL_PERCENT: u64 = 40;
/// How long after the commit the disks are full, in milliseconds.
const BEGINS_MS: std::ops::Range<u64> = 0..3_000;
/// How often it is looked whether a restart has made room.
const LOOK: Duration = Duration::from_secs(1);
/// How much room is left.
const FREE_BYTES: std::ops::Range<u64> = 0..5_000;

impl Operator {
    /// Fills the disks of the member that leaves with a change, in some runs. They stay full until
    /// it is no member any more, also when all other faults have ended.
    pub(super) fn fill_disks_of_leaver(&self, seed: u64, nth: u64, wanted: Wanted) {
        let mut random = Random::new(seed ^ STREAM.wrapping_mul(nth + 1));
        let Some(host) = wanted.goes.filter(|_| !wanted.is_forced) else { return };
        let has_files = self.nemesis.cluster.lock().wiring == Wiring::Streams;
        if !has_files || !random.chance(FULL_PERCENT) {
            return;
        }
        self.note(&format!("the disks of host {} will be full while it leaves", host.0));
        let (this, runtime) = (self.clone(), self.nemesis.world.runtime(OUTSIDE));
        let there = runtime.clone();
        runtime.spawn(Box::pin(async move {
            there.sleep(Duration::from_millis(random.within(BEGINS_MS))).await;
            while this.fill(host, &mut random) {
                there.sleep(LOOK).await;
            }
        }));
    }

    /// Fills the disks of a member that runs. Returns false when it is none any more.
    fn fill(&self, host: HostId, random: &mut Random) -> bool {
        let mut cluster = self.nemesis.cluster.lock();
        let node = cluster.node_mut(host);
        if node.stage == MemberStage::Gone {
            node.disks.node.set_free_bytes(None);
            node.disks.stores.set_free_bytes(None);
            return false;
        }
        let Some(reserve) = node.reserve.clone().filter(|_| node.kv.is_some()) else { return true };
        if !reserve.is_short() {
            // A start has allocated it, or an error shows that the disk is gone with its process.
            let _ = reserve.take_back();
            let free = random.within(FREE_BYTES);
            // Where nothing pays for notes, what is left must not pay by chance.
            let pays = !is_broken(BrokenRule::ReservesPayForNotes);
            node.disks.node.set_free_bytes(Some(if pays { free } else { 0 }));
        }
        node.disks.stores.set_free_bytes(Some(random.within(FREE_BYTES)));
        node.leaves_on_full_disks = true;
        true
    }
}
