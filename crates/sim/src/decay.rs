//! Faults that nobody is told of: rot, records that vanish, and a store that is set back.
//!
//! * *Rot*: bytes of a record that has been on the disk for a while change.
//! * *A version that returns*: the latest records of a key that was removed are lost, that of the
//!   removal among them, so the next start finds an older version. Half of the time the store sees
//!   that they are damaged, and half of the time it sees nothing.
//! * *A vanished record*: one store loses the record of one key, behind the back of its node. Where
//!   only two nodes keep the key, the node stops and starts at once: its sums have to show what it
//!   lacks, because no third primary can.
//! * *A store that was set back*: the stores of a killed node are those of some seconds before.
//!   Only seeds with connections have that: what a store has told is said when a connection begins.
//!   The copy is of the process that is killed. Told seqs do not show an older copy
//!   (docs/design/anti-entropy.md, "Limits"), for example that of a disk that was replaced
//!   meanwhile: its stores have other ids.
//!
//! Every seed has them, and begins rounds of scrubbing besides. They draw from a stream of random
//! numbers of their own. All of them strike one node of a run, as far as they can: what two nodes
//! lose in one interval is a limit of the design (docs/design/anti-entropy.md, "Limits").

use crate::cluster::{BackendKind, Cluster};
use crate::faults::{FaultKind, Lasting, Nemesis};
use crate::oracle::{Key, storage_key_of, storage_keys};
use crate::random::Random;
use crate::records::{FoundRecord, bit_of_key, bits_of_checksum, is_cold, records};
use crate::world::{HostId, OUTSIDE};
use ombak_runtime::RuntimeExt;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What tells the random numbers of these faults from others of the same seed.
const STREAM: u64 = 0x6465_6361_7900_0001;
/// The pause between two of them in milliseconds.
const PAUSE_MS: std::ops::Range<u64> = 1_000..5_000;
/// How many there are at most.
const DECAYS_MAX: u32 = 8;
/// How far a store is set back, in milliseconds.
const SET_BACK_MS: std::ops::Range<u64> = 2_000..15_000;
/// How often a record is looked for in another partition.
const TRIES: u32 = 3;
/// How many records of a removed key are lost at most: the removal, the tombstone without its time,
/// and the tombstone before that.
const LOST_RECORDS_MAX: usize = 3;

/// Whether a seed sets a store back. Its node fills afterwards, which hides other faults, so others
/// do not.
const fn sets_back(seed: u64) -> bool {
    !seed.is_multiple_of(3) && seed % 4 != 1
}

/// What decays in a run.
pub(crate) struct Decay {
    pub(crate) nemesis: Nemesis,
    pub(crate) random: Random,
    /// The node that these faults strike.
    pub(crate) victim: Option<HostId>,
    /// A copy of the disk of the victim's stores, until its stores are set back to it, and how many
    /// processes had ended on the disk then.
    copy: Option<(Arc<FaultyFs>, u32)>,
    is_to_set_back: bool,
}

/// A record of a file of a simulated disk.
#[derive(Clone)]
struct Target {
    path: PathBuf,
    record: FoundRecord,
}

/// What is known of a record.
#[derive(Clone)]
struct Found {
    target: Target,
    /// Whether a later record says that it was on the disk.
    is_cold: bool,
}

impl Nemesis {
    /// Makes these faults until faults come and go no more, or until `is_over`.
    pub(crate) async fn decay(self, seed: u64, is_over: impl Fn() -> bool + Send) {
        let mut decay = Decay::new(self, seed ^ STREAM);
        decay.is_to_set_back = sets_back(seed);
        let runtime = decay.nemesis.world.runtime(OUTSIDE);
        let mut copied_for_ms = 0;
        let set_back_after_ms = decay.random.within(SET_BACK_MS);
        for _ in 0..DECAYS_MAX {
            let pause_ms = decay.random.within(PAUSE_MS);
            runtime.sleep(Duration::from_millis(pause_ms)).await;
            if is_over() || decay.nemesis.has_healed() {
                return;
            }
            decay.scrub();
            decay.choose_victim();
            decay.forget_older_copy();
            copied_for_ms = if decay.copy.is_some() { copied_for_ms + pause_ms } else { 0 };
            match decay.random.within(0..10) {
                _ if decay.is_to_set_back && decay.copy.is_none() => decay.take_copy(),
                _ if decay.is_to_set_back && copied_for_ms >= set_back_after_ms => decay.set_back(),
                0..6 => drop(decay.rot()),
                _ => drop(decay.vanish(|_, _| true)),
            }
        }
    }
}

impl Decay {
    pub(crate) fn new(nemesis: Nemesis, stream: u64) -> Self {
        Self { nemesis, random: Random::new(stream), victim: None, copy: None, is_to_set_back: false }
    }

    /// Lets a node begin a round of scrubbing.
    fn scrub(&mut self) {
        let cluster = self.nemesis.cluster.lock();
        let hosts = cluster.hosts();
        let engine = hosts.get(self.random.index(hosts.len().max(1))).and_then(|host| cluster.node(*host).kv.clone());
        if engine.is_some_and(|kv| kv.start_scrub().is_ok()) {
            drop(cluster);
            self.nemesis.count_scrub();
        }
    }

    /// Takes a node with stores on a disk, if there is one and the present victim has gone.
    pub(crate) fn choose_victim(&mut self) {
        let cluster = self.nemesis.cluster.lock();
        let hosts = cluster.member_hosts();
        if self.victim.is_some_and(|victim| hosts.contains(&victim)) {
            return;
        }
        let on_disk = |host: &HostId| cluster.node(*host).backend != BackendKind::Memory;
        let on_disks: Vec<HostId> = hosts.iter().copied().filter(on_disk).collect();
        let choice = if on_disks.is_empty() { &hosts } else { &on_disks };
        self.victim = (!choice.is_empty()).then(|| *self.random.pick(choice));
        self.copy = None;
    }

    /// Copies the disk of the victim's stores, as a backup of all files at one moment does.
    fn take_copy(&mut self) {
        let Some(victim) = self.victim else { return };
        let cluster = self.nemesis.cluster.lock();
        let node = cluster.node(victim);
        let has_disk = node.backend != BackendKind::Memory;
        let copy = || (node.disks.stores.snapshot(), node.disks.ended_processes);
        self.copy = (has_disk && node.kv.is_some()).then(copy);
        self.is_to_set_back = has_disk;
    }

    /// Gives the copy up, if the process has ended of which it was taken.
    fn forget_older_copy(&mut self) {
        let Some(victim) = self.victim else { return };
        let ended_processes = self.nemesis.cluster.lock().node(victim).disks.ended_processes;
        self.copy.take_if(|(_, ended)| *ended != ended_processes);
    }

    /// Kills the victim, and sets its stores back to the copy.
    fn set_back(&mut self) {
        let Some((victim, (copy, ended))) = self.victim.zip(self.copy.take()) else { return };
        if self.nemesis.cluster.lock().node(victim).kv.is_none() || !self.nemesis.take(victim) {
            self.copy = Some((copy, ended));
            return;
        }
        self.is_to_set_back = false;
        // Nothing is expected any more of what only these stores have.
        self.nemesis.cluster.lock().node_mut(victim).is_damaged = true;
        // What the memory of the machine knows of the stores goes back, too.
        self.nemesis.stop(victim, Loss::Everything, false);
        let mut cluster = self.nemesis.cluster.lock();
        cluster.set_stores_back(victim, copy);
        self.nemesis.oracle.lock().note_set_back(&cluster, victim);
        drop(cluster);
        self.nemesis.lasts(FaultKind::SetBackStore, Lasting::Down(victim), &mut self.random);
    }

    /// Lets a record of the victim rot, or a version return there.
    fn rot(&mut self) -> Option<()> {
        let (wants_removal, is_noticed) = (self.random.chance(50), self.random.chance(50));
        if wants_removal && self.return_version(is_noticed).is_some() {
            return Some(());
        }
        let victim = self.victim?;
        let nemesis = self.nemesis.clone();
        let mut cluster = nemesis.cluster.lock();
        cluster.node(victim).kv.as_ref()?;
        let Target { path, record } = (0..TRIES).find_map(|_| self.target(&cluster, victim))?;
        let length = cluster.node(victim).disks.stores.length(&path).ok()?;
        // The head or the body may rot as well.
        let end = (record.key_end + 16).min(length as usize);
        let byte = self.random.within(record.key_at as u64..end as u64);
        let before = nemesis.oracle.lock().all_copies(&cluster);
        cluster.node(victim).disks.stores.flip_bit(&path, byte * 8 + self.random.within(0..8)).ok()?;
        cluster.node_mut(victim).is_damaged = true;
        nemesis.oracle.lock().node_damaged(&cluster, victim, before);
        drop(cluster);
        let number = nemesis.count(FaultKind::Rot);
        nemesis.note_begin(FaultKind::Rot, number);
        Some(())
    }

    /// Lets an older version of a removed key return at the victim, whose process ends at once:
    /// only a start reads these records. Returns the key.
    pub(crate) fn return_version(&mut self, is_noticed: bool) -> Option<Key> {
        let victim = self.victim?;
        let nemesis = self.nemesis.clone();
        let mut cluster = nemesis.cluster.lock();
        cluster.node(victim).kv.as_ref()?;
        let lost = self.removed(&cluster, victim)?;
        let key = lost.first()?.target.record.key;
        if !nemesis.take(victim) {
            return None;
        }
        self.returns(&mut cluster, victim, &lost, is_noticed);
        drop(cluster);
        nemesis.stop(victim, Loss::Nothing, false);
        nemesis.lasts(FaultKind::ReturnedVersion, Lasting::Down(victim), &mut self.random);
        Some(key)
    }

    /// Turns the latest records of a removed key into records of another key. Where the store shall
    /// notice it, their checksums stay as they are. A start takes that for a write that was
    /// interrupted if no later record says that they were on the disk. What a hint file lists would
    /// be known to the next start nevertheless, so that file goes.
    fn returns(&self, cluster: &mut Cluster, victim: HostId, lost: &[Found], is_noticed: bool) {
        let before = self.nemesis.oracle.lock().all_copies(cluster);
        let disk = cluster.node(victim).disks.stores.clone();
        for Target { path, record } in lost.iter().map(|found| &found.target) {
            let of_checksum = bits_of_checksum(record).filter(|_| !is_noticed);
            for bit in std::iter::once(bit_of_key(record)).chain(of_checksum) {
                // The bits are in the file.
                drop(disk.flip_bit(path, bit));
            }
            // A file that is not closed has none.
            drop(disk.remove_file(&path.with_extension("hint")));
        }
        let may_hide = !is_noticed || lost.iter().any(|found| !found.is_cold);
        let node = cluster.node_mut(victim);
        (node.is_damaged, node.may_hide_damage) = (true, node.may_hide_damage | may_hide);
        self.nemesis.oracle.lock().node_damaged(cluster, victim, before);
    }

    /// A cold record of some partition with the newest version of its key there.
    fn target(&mut self, cluster: &Cluster, victim: HostId) -> Option<Target> {
        let files = cluster.node(victim).disks.data_files().ok()?;
        let partitions: Vec<&Vec<PathBuf>> = files.values().collect();
        if partitions.is_empty() {
            return None;
        }
        let partition = *self.random.pick(&partitions);
        let newest = self.records_of(cluster, victim, partition)?.into_values().filter_map(|mut of_key| of_key.pop());
        let targets = newest.filter(|found| found.is_cold && !found.target.record.is_removal);
        let targets: Vec<Target> = targets.map(|found| found.target).collect();
        (!targets.is_empty()).then(|| self.random.pick(&targets).clone())
    }

    /// The latest records of a key that was removed, and of which an older version is there.
    fn removed(&mut self, cluster: &Cluster, victim: HostId) -> Option<Vec<Found>> {
        let files = cluster.node(victim).disks.data_files().ok()?;
        let by_key = files.values().filter_map(|partition| self.records_of(cluster, victim, partition)).flatten();
        let owned = by_key.filter(|(key, _)| cluster.owners_of(key).contains(&victim));
        let latest = owned.filter_map(|(_, mut of_key)| {
            let is_removed = of_key.last().is_some_and(|found| found.target.record.is_removal);
            let kept = of_key.len().saturating_sub(LOST_RECORDS_MAX).max(1);
            let latest = of_key.split_off(kept.min(of_key.len()));
            (is_removed && !latest.is_empty()).then_some(latest)
        });
        let latest: Vec<Vec<Found>> = latest.collect();
        (!latest.is_empty()).then(|| self.random.pick(&latest).clone())
    }

    /// The records of each key in the files of a partition, the newest last.
    fn records_of(&self, cluster: &Cluster, victim: HostId, files: &[PathBuf]) -> Option<BTreeMap<Key, Vec<Found>>> {
        let disks = &cluster.node(victim).disks;
        let mut by_key = BTreeMap::<Key, Vec<Found>>::new();
        for path in files {
            let found = records(&disks.stores.content(path).ok()?, storage_keys());
            for record in &found {
                let is_cold = is_cold(&found, record.key_end);
                let found = Found { target: Target { path: path.clone(), record: *record }, is_cold };
                by_key.entry(record.key).or_default().push(found);
            }
        }
        by_key.values_mut().for_each(|of_key| of_key.sort_by_key(|found| found.target.record.seq));
        Some(by_key)
    }

    /// Removes the record of such a key from the store of the victim, and tells nobody. Returns the
    /// key.
    pub(crate) fn vanish(&mut self, is_meant: impl Fn(&Cluster, &Key) -> bool) -> Option<Key> {
        let victim = self.victim?;
        let nemesis = self.nemesis.clone();
        let cluster = nemesis.cluster.lock();
        let kv = cluster.node(victim).kv.clone()?;
        let outlives_its_process = cluster.node(victim).backend != BackendKind::Memory;
        let is_held = |key: &Key| {
            let owners = cluster.owners_of(key);
            let enough = if outlives_its_process { owners.len() > 1 } else { owners.len() > 2 };
            enough && owners.contains(&victim) && nemesis.oracle.lock().holds_readable(&cluster, *key, victim)
        };
        let keys: Vec<Key> = nemesis.oracle.lock().keys();
        let keys: Vec<Key> = keys.into_iter().filter(|key| is_meant(&cluster, key) && is_held(key)).collect();
        if keys.is_empty() {
            return None;
        }
        let key = *self.random.pick(&keys);
        let home = cluster.home_of(&key)?;
        // Two primaries find it out only by the sums of the store, which the next start compares.
        let is_of_two = cluster.owners_of(&key).len() <= 2;
        if is_of_two && !nemesis.take(victim) {
            return None;
        }
        let before = nemesis.oracle.lock().all_copies(&cluster);
        let removed = cluster.node(victim).store(home).map(|store| store.delete(&storage_key_of(key)));
        let has_vanished = matches!(removed, Some(Ok(Some(_))));
        if has_vanished {
            let mut oracle = nemesis.oracle.lock();
            oracle.node_damaged(&cluster, victim, before);
            oracle.note_robbed(victim, home, key);
        }
        drop(cluster);
        if is_of_two {
            // An orderly close saves the sums.
            nemesis.stop_after(victim, Loss::Nothing, false, || drop(kv.close_partition(home)));
            nemesis.lasts(FaultKind::VanishedRecord, Lasting::Down(victim), &mut self.random);
        } else if has_vanished {
            let number = nemesis.count(FaultKind::VanishedRecord);
            nemesis.note_begin(FaultKind::VanishedRecord, number);
        }
        Some(key)
    }
}
