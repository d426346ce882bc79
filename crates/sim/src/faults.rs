//! Faults: what goes wrong in a run, when, and for how long.

use crate::bad_sectors;
use crate::clients::Rush;
use crate::cluster::{Cluster, MemberStage, Wiring};
use crate::oracle::{Oracle, Violation, storage_keys};
use crate::random::Random;
use crate::records::{is_cold, records};
use crate::starting;
use crate::world::{HostId, OUTSIDE, World};
use ombak_runtime::{Runtime, RuntimeExt};
use ombak_storage::fs::sim::{FaultyFs, Loss};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long faults last, in milliseconds.
const LASTS_MS: std::ops::Range<u64> = 400..3_000;
/// The pause between two faults in milliseconds, at most.
const PAUSE_MS_MAX: u64 = 2_000;
/// How many faults begin at once at the beginning.
const AT_ONCE: usize = 3;
/// How far a clock jumps, in microseconds.
pub(crate) const JUMP_US: i64 = 7_200_000_000;

/// The pause between two extra faults in milliseconds.
const EXTRA_PAUSE_MS: std::ops::Range<u64> = 500..4_000;
/// How many there are at most. A node fills after each of them, and a run has to get on.
const EXTRA_MAX: u32 = 8;
/// Distinguishes the random numbers of extra faults from all others of a seed.
const EXTRA_STREAM: u64 = 0x6578_7472_6120_6661;

/// How many of 1,000 messages straggle also without a fault.
const STRAGGLING_ALWAYS: u64 = 10;
/// How many reads clients do when a node has started that lacks something.
const RUSH_READS: u64 = 24;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FaultKind {
    Kill,
    PowerLoss,
    LostDisk,
    Pause,
    Partition,
    OneWay,
    CloggedLink,
    LossyLinks,
    DoubledMessages,
    ClockJump,
    UnreadableRecord,
    FullDisk,
    Stragglers,
    FalseSuspicion,
    BadSector,
    Remount,
    Rot,
    ReturnedVersion,
    VanishedRecord,
    SetBackStore,
}

impl FaultKind {
    /// The kinds of which each strike picks one. Kinds that came later have random numbers of their
    /// own (`bad_sectors`, `run_extra`, `decay`), so that earlier seeds stay what they are.
    const AT_RANDOM: [Self; 14] = [
        Self::Kill,
        Self::PowerLoss,
        Self::LostDisk,
        Self::Pause,
        Self::Partition,
        Self::OneWay,
        Self::CloggedLink,
        Self::LossyLinks,
        Self::DoubledMessages,
        Self::ClockJump,
        Self::UnreadableRecord,
        Self::FullDisk,
        Self::Stragglers,
        Self::FalseSuspicion,
    ];

    /// The kinds that some seeds have besides, and those that nobody is told of.
    const EXTRA: [Self; 6] =
        [Self::BadSector, Self::Remount, Self::Rot, Self::ReturnedVersion, Self::VanishedRecord, Self::SetBackStore];

    /// Whether a seed has remounts.
    pub(crate) const fn are_extra_in(seed: u64) -> bool {
        seed % 8 == 4
    }

    /// All kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::AT_RANDOM.into_iter().chain(Self::EXTRA)
    }
}

/// A fault that lasts.
#[derive(Clone, Debug)]
pub(crate) enum Lasting {
    Down(HostId),
    /// Its process ended, and its file systems lost what was not synced while the machine ran on.
    Remounted(HostId),
    Paused(HostId),
    /// Nothing passes from the first hosts to the second ones.
    Cut(Vec<HostId>, Vec<HostId>),
    Clogged(HostId, HostId, Duration),
    Lossy(u64),
    Doubled,
    Stragglers(u64),
    /// The first host believes that the second one is down.
    Suspects(HostId, HostId),
    Full(HostId),
    /// The fault is over as soon as it has happened.
    Nothing,
}

/// Makes faults.
#[derive(Clone)]
pub struct Nemesis {
    /// The world.
    pub world: World,
    /// The nodes.
    pub cluster: Arc<Mutex<Cluster>>,
    /// The oracle, which is told what is destroyed.
    pub oracle: Arc<Mutex<Oracle>>,
    /// How many reads clients shall do at once.
    pub rush: Arc<Mutex<Rush>>,
    /// What it does.
    kinds: &'static [FaultKind],
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    counts: BTreeMap<FaultKind, u64>,
    lasting: BTreeMap<u64, Lasting>,
    next: u64,
    /// Hosts that a fault has in its hands.
    busy: BTreeSet<HostId>,
    has_lost_disk: bool,
    has_healed: bool,
    overlapping_max: usize,
    /// Nodes that did not start again with their damaged stores.
    refused_starts: u64,
    /// Rounds of scrubbing that were begun.
    scrubs: u64,
}

impl Nemesis {
    /// A nemesis that has done nothing yet.
    pub fn new(world: &World, cluster: &Arc<Mutex<Cluster>>, oracle: &Arc<Mutex<Oracle>>) -> Self {
        Self {
            world: world.clone(),
            cluster: cluster.clone(),
            oracle: oracle.clone(),
            rush: Arc::default(),
            kinds: &FaultKind::AT_RANDOM,
            state: Arc::default(),
        }
    }

    /// The nemesis, with these faults alone.
    pub(crate) fn limited_to(self, kinds: &'static [FaultKind]) -> Self {
        Self { kinds, ..self }
    }

    /// How often each fault has happened.
    pub fn counts(&self) -> BTreeMap<FaultKind, u64> {
        self.state.lock().counts.clone()
    }

    /// How many faults lasted at the same time, at most.
    pub fn overlapping_max(&self) -> usize {
        self.state.lock().overlapping_max
    }

    /// Makes faults until `is_over`.
    pub async fn run(self, is_over: impl Fn() -> bool + Send) {
        let runtime = self.world.runtime(OUTSIDE);
        let mut random = self.world.fork_random();
        while self.state.lock().lasting.len() < AT_ONCE {
            self.strike_any(&mut random);
        }
        while !is_over() {
            let pause_ms = random.within(0..PAUSE_MS_MAX);
            runtime.sleep(Duration::from_millis(pause_ms)).await;
            self.strike_any(&mut random);
        }
    }

    /// Makes the extra faults of a seed, unless faults come and go no more.
    pub(crate) async fn run_extra(self, seed: u64) {
        let mut random = Random::new(seed ^ EXTRA_STREAM);
        let runtime = self.world.runtime(OUTSIDE);
        for _ in 0..EXTRA_MAX {
            runtime.sleep(Duration::from_millis(random.within(EXTRA_PAUSE_MS))).await;
            if self.has_healed() {
                return;
            }
            self.strike(FaultKind::Remount, &mut random);
        }
    }

    fn strike_any(&self, random: &mut Random) {
        let kind = *random.pick(self.kinds);
        self.strike(kind, random);
    }

    /// Lets one fault begin, and schedules its end.
    fn strike(&self, kind: FaultKind, random: &mut Random) {
        if let Some(lasting) = self.begin(kind, random) {
            self.lasts(kind, lasting, random);
        }
    }

    /// Counts a fault that has begun, and schedules its end.
    pub(crate) fn lasts(&self, kind: FaultKind, lasting: Lasting, random: &mut Random) {
        let number = self.count(kind);
        {
            let mut state = self.state.lock();
            state.lasting.insert(number, lasting);
            self.oracle.lock().witness.note_faults(state.lasting.len());
            state.overlapping_max = state.overlapping_max.max(state.lasting.len());
        }
        self.note_begin(kind, number);
        self.apply_links();
        let (this, lasts_ms) = (self.clone(), random.within(LASTS_MS));
        let runtime = self.world.runtime(OUTSIDE);
        let ends = runtime.sleep(Duration::from_millis(lasts_ms));
        runtime.spawn(Box::pin(async move {
            ends.await;
            this.end(number).await;
        }));
    }

    /// Counts a fault, and returns its number.
    pub(crate) fn count(&self, kind: FaultKind) -> u64 {
        let mut state = self.state.lock();
        *state.counts.entry(kind).or_default() += 1;
        state.next += 1;
        state.next
    }

    /// Counts a round of scrubbing that was begun.
    pub(crate) fn count_scrub(&self) {
        self.state.lock().scrubs += 1;
    }

    /// How many rounds of scrubbing were begun.
    pub fn scrubs(&self) -> u64 {
        self.state.lock().scrubs
    }

    /// Notes that a fault has begun.
    pub(crate) fn note_begin(&self, kind: FaultKind, number: u64) {
        self.world.inner().note([11, kind as u64, number]);
        let text = format!("{:?} fault {number}: {kind:?}", self.world.elapsed());
        self.oracle.lock().note_all(&text);
    }

    /// Whether faults come and go no more.
    pub(crate) fn has_healed(&self) -> bool {
        self.state.lock().has_healed
    }

    /// Takes a host out of the hands of all faults to come. Returns whether none has it now.
    pub(crate) fn take(&self, host: HostId) -> bool {
        self.state.lock().busy.insert(host)
    }

    fn free_host(&self, random: &mut Random) -> Option<HostId> {
        let hosts = self.cluster.lock().hosts();
        let state = self.state.lock();
        let free: Vec<HostId> = hosts.into_iter().filter(|host| !state.busy.contains(host)).collect();
        if free.is_empty() { None } else { Some(*random.pick(&free)) }
    }

    fn take_host(&self, random: &mut Random) -> Option<HostId> {
        let host = self.free_host(random)?;
        self.state.lock().busy.insert(host);
        Some(host)
    }

    pub(crate) fn begin(&self, kind: FaultKind, random: &mut Random) -> Option<Lasting> {
        let hosts = self.cluster.lock().hosts();
        Some(match kind {
            FaultKind::Kill => {
                let host = self.take_host(random)?;
                self.stop(host, Loss::Nothing, false);
                Lasting::Down(host)
            }
            FaultKind::PowerLoss => {
                let host = self.take_host(random)?;
                self.stop(host, if random.chance(50) { Loss::Some } else { Loss::Everything }, false);
                Lasting::Down(host)
            }
            FaultKind::Remount => {
                let host = self.take_host(random)?;
                self.stop(host, if random.chance(50) { Loss::PartialRemount } else { Loss::Remount }, false);
                Lasting::Remounted(host)
            }
            FaultKind::LostDisk => {
                if std::mem::replace(&mut self.state.lock().has_lost_disk, true) {
                    return None;
                }
                let host = self.take_host(random)?;
                self.stop(host, Loss::Everything, true);
                Lasting::Down(host)
            }
            FaultKind::Pause => {
                let host = self.take_host(random)?;
                self.world.pause(host);
                Lasting::Paused(host)
            }
            FaultKind::Partition => {
                let (one, other): (Vec<HostId>, Vec<HostId>) = hosts.iter().partition(|_| random.chance(40));
                if one.is_empty() || other.is_empty() {
                    return None;
                }
                Lasting::Cut(one, other)
            }
            FaultKind::OneWay => {
                let from = *random.pick(&hosts);
                let to: Vec<HostId> = hosts.iter().copied().filter(|host| *host != from && random.chance(60)).collect();
                if random.chance(50) { Lasting::Cut(vec![from], to) } else { Lasting::Cut(to, vec![from]) }
            }
            FaultKind::CloggedLink => {
                let (from, to) = (*random.pick(&hosts), *random.pick(&hosts));
                Lasting::Clogged(from, to, Duration::from_millis(random.within(100..3_000)))
            }
            FaultKind::LossyLinks => Lasting::Lossy(random.within(20..300)),
            FaultKind::Stragglers => Lasting::Stragglers(random.within(50..300)),
            FaultKind::FalseSuspicion => {
                let (who, whom) = (*random.pick(&hosts), *random.pick(&hosts));
                let cluster = self.cluster.lock();
                // Members have a failure detection of their own.
                if who == whom || cluster.wiring == Wiring::Streams {
                    return None;
                }
                cluster.wires.believe(who, whom, true);
                Lasting::Suspects(who, whom)
            }
            FaultKind::DoubledMessages => Lasting::Doubled,
            FaultKind::ClockJump => {
                let ahead_us = random.within(0..JUMP_US as u64 * 2) as i64 - JUMP_US;
                self.world.set_clock_ahead_us(*random.pick(&hosts), ahead_us);
                Lasting::Nothing
            }
            FaultKind::UnreadableRecord => {
                self.damage(kind, self.free_host(random)?, random, FaultyFs::flip_bit)?;
                Lasting::Nothing
            }
            FaultKind::BadSector => {
                self.damage(kind, self.free_host(random)?, random, bad_sectors::spoil)?;
                Lasting::Nothing
            }
            // These begin elsewhere (`decay`).
            FaultKind::Rot | FaultKind::ReturnedVersion | FaultKind::VanishedRecord | FaultKind::SetBackStore => {
                return None;
            }
            FaultKind::FullDisk => {
                let host = self.take_host(random)?;
                self.cluster.lock().node(host).disks.stores.set_free_bytes(Some(random.within(0..5_000)));
                Lasting::Full(host)
            }
        })
    }

    /// Stops a node. A node in memory forgets everything with its process.
    pub(crate) fn stop(&self, host: HostId, loss: Loss, loses_disk: bool) {
        self.stop_after(host, loss, loses_disk, || ());
    }

    /// The same, after something that the process does last.
    pub(crate) fn stop_after(&self, host: HostId, loss: Loss, loses_disk: bool, last: impl FnOnce()) {
        let (mut cluster, mut oracle) = (self.cluster.lock(), self.oracle.lock());
        let node = cluster.node(host);
        // What a start makes of damaged files is not known beforehand, so nothing is expected of
        // them.
        let is_in_memory = node.backend == crate::cluster::BackendKind::Memory;
        let forgets_all = loses_disk || is_in_memory || node.is_damaged;
        oracle.node_stops(&cluster, host, loss, forgets_all);
        last();
        cluster.stop(host, loss);
        if loses_disk {
            cluster.lose_stores(host);
        }
        drop(oracle);
        drop(cluster);
    }

    /// Starts a host that was taken and stopped, and gives it back.
    pub(crate) async fn start_again(&self, host: HostId) {
        self.start(host).await;
        self.state.lock().busy.remove(&host);
    }

    async fn start(&self, host: HostId) {
        // A member that is none any more ends for ever.
        if self.cluster.lock().node(host).stage == MemberStage::Gone {
            return;
        }
        let mut started = starting::start(&self.cluster, host).await;
        if started.is_err() && self.cluster.lock().node(host).is_damaged {
            self.state.lock().refused_starts += 1;
            {
                let mut cluster = self.cluster.lock();
                cluster.stop(host, Loss::Nothing);
                cluster.lose_stores(host);
            }
            started = starting::start(&self.cluster, host).await;
        }
        let cluster = self.cluster.lock();
        let mut oracle = self.oracle.lock();
        match started {
            Ok(()) => {
                oracle.node_runs(&cluster, host);
                // A member that lacks something is asked before it has got it.
                let node = cluster.node(host);
                let lacks_something = node.kv.as_ref().is_some_and(|kv| !kv.filling_classes().is_empty());
                if lacks_something && node.stage == MemberStage::Member {
                    *self.rush.lock() = Rush { left: RUSH_READS, host };
                }
                oracle.check_all(&cluster);
            }
            Err(error) => oracle.broken(Violation::NoStart(error.to_string())),
        }
    }

    /// Damages a data file at some bit.
    fn damage(
        &self,
        kind: FaultKind,
        host: HostId,
        random: &mut Random,
        damage: impl FnOnce(&FaultyFs, &Path, u64) -> io::Result<()>,
    ) -> Option<()> {
        let mut cluster = self.cluster.lock();
        let node = cluster.node(host);
        node.kv.as_ref()?;
        let files = node.disks.store_files().ok()?;
        let is_data = |path: &Path| path.extension().is_some_and(|ext| ext == "data" || ext == "fresh");
        let files: Vec<_> = files.into_iter().filter(|(path, length)| is_data(path) && *length > 0).collect();
        if files.is_empty() {
            return None;
        }
        let (path, length) = random.pick(&files);
        let before = self.oracle.lock().all_copies(&cluster);
        let bit = random.within(0..*length * 8);
        let found = records(&node.disks.stores.content(path).ok()?, storage_keys());
        // A sector that cannot be read is never taken for a write that was interrupted.
        let may_hide = kind == FaultKind::UnreadableRecord && !is_cold(&found, (bit / 8) as usize);
        damage(&node.disks.stores, path, bit).ok()?;
        let node = cluster.node_mut(host);
        (node.is_damaged, node.may_hide_damage) = (true, node.may_hide_damage | may_hide);
        self.oracle.lock().node_damaged(&cluster, host, before);
        Some(())
    }

    async fn end(&self, number: u64) {
        let lasting = self.state.lock().lasting.remove(&number);
        let Some(lasting) = lasting else { return };
        let faults = self.state.lock().lasting.len();
        self.oracle.lock().witness.note_faults(faults);
        self.world.inner().note([12, number, 0]);
        let text = format!("{:?} fault {number} ends: {lasting:?}", self.world.elapsed());
        self.oracle.lock().note_all(&text);
        match lasting {
            Lasting::Down(host) => self.start_again(host).await,
            Lasting::Remounted(host) => {
                self.start(host).await;
                // It is asked at once, whether or not it knows what it lacks.
                if self.cluster.lock().node(host).stage == MemberStage::Member {
                    *self.rush.lock() = Rush { left: RUSH_READS, host };
                }
                self.state.lock().busy.remove(&host);
            }
            Lasting::Paused(host) => {
                self.world.resume(host);
                self.state.lock().busy.remove(&host);
            }
            Lasting::Full(host) => {
                self.cluster.lock().node(host).disks.stores.set_free_bytes(None);
                self.state.lock().busy.remove(&host);
            }
            Lasting::Cut(..) | Lasting::Clogged(..) | Lasting::Lossy(_) | Lasting::Doubled => {}
            Lasting::Stragglers(_) | Lasting::Suspects(..) | Lasting::Nothing => {}
        }
        self.apply_links();
    }

    /// Ends all faults.
    pub async fn heal(&self) {
        self.state.lock().has_healed = true;
        let numbers: Vec<u64> = self.state.lock().lasting.keys().copied().collect();
        for number in numbers {
            self.end(number).await;
        }
        let hosts = self.cluster.lock().hosts();
        hosts.into_iter().for_each(|host| self.world.set_clock_ahead_us(host, 0));
    }

    /// Brings the links into the state that the present faults want.
    fn apply_links(&self) {
        let lasting: Vec<Lasting> = self.state.lock().lasting.values().cloned().collect();
        let cluster = self.cluster.lock();
        {
            let hosts = cluster.hosts();
            let mut links = cluster.network.links().lock();
            links.heal_all();
            let is_doubled = lasting.iter().any(|fault| matches!(fault, Lasting::Doubled));
            cluster.wires.set_doubled_per_mille(if is_doubled { 300 } else { 0 });
            let straggling = lasting.iter().map(|fault| if let Lasting::Stragglers(of) = fault { *of } else { 0 });
            cluster.wires.set_straggling_per_mille(straggling.max().unwrap_or(0).max(STRAGGLING_ALWAYS));
            for fault in &lasting {
                match fault {
                    Lasting::Cut(from, to) => {
                        for (a, b) in from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b))) {
                            links.change(a, b, |link| link.is_cut = true);
                        }
                    }
                    Lasting::Clogged(from, to, delay) => {
                        links.change(*from, *to, |link| (link.delay, link.jitter) = (*delay, *delay));
                    }
                    Lasting::Lossy(lost) => {
                        for (a, b) in hosts.iter().flat_map(|a| hosts.iter().map(move |b| (*a, *b))) {
                            links.change(a, b, |link| link.lost_per_mille = *lost);
                        }
                    }
                    Lasting::Stragglers(_)
                    | Lasting::Suspects(..)
                    | Lasting::Down(_)
                    | Lasting::Remounted(_)
                    | Lasting::Paused(_)
                    | Lasting::Doubled
                    | Lasting::Full(_)
                    | Lasting::Nothing => {}
                }
            }
        }
        cluster.network.go_on();
    }

    /// Lets each node find out, sooner or later, which others answer.
    pub async fn detect(self, interval: Duration) {
        let runtime = self.world.runtime(OUTSIDE);
        let mut random = self.world.fork_random();
        loop {
            runtime.sleep(interval).await;
            let mut cluster = self.cluster.lock();
            cluster.look_at_repairs();
            if cluster.wiring == Wiring::Streams {
                continue;
            }
            let hosts = cluster.hosts();
            for (a, b) in hosts.iter().flat_map(|a| hosts.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b) {
                if random.chance(40) {
                    continue;
                }
                let is_cut = {
                    let links = cluster.network.links().lock();
                    links.link(a, b).is_cut || links.link(b, a).is_cut
                };
                let is_suspected = {
                    let state = self.state.lock();
                    state.lasting.values().any(|fault| matches!(fault, Lasting::Suspects(x, y) if (*x, *y) == (a, b)))
                };
                let is_down = is_suspected || is_cut || cluster.node(b).kv.is_none() || self.world.is_paused(b);
                cluster.wires.believe(a, b, is_down);
            }
        }
    }
}
