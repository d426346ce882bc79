//! One run: a seed, from the first node to the last check.

use crate::bad_sectors;
use crate::changes::{ChangeKind, Driver, Operator};
use crate::clients::{self, ClientCounts, Clients};
use crate::cluster::{Backends, Cluster, Machines, RepairCounts, Wiring};
use crate::cold_decay::ColdDecay;
use crate::faults::{FaultKind, Nemesis};
use crate::folding;
use crate::made::Made;
use crate::network::LinkCounts;
use crate::oracle::{Oracle, RemovalCounts, Violation};
use crate::pauses;
use crate::queries;
use crate::settling;
use crate::starting;
use crate::times::{CALM, DETECT_INTERVAL, RUN_LIMIT};
use crate::wires::WireCounts;
use crate::world::{EndOfWorld, OUTSIDE, World};
use ombak_runtime::{Runtime, RuntimeExt};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many clients there are.
const CLIENTS: usize = 6;
/// How many operations each client does.
const OPERATIONS_PER_CLIENT: u64 = 90;
/// How many machines there are on which nodes may start later.
const SPARES: usize = 2;
/// How long faults go on until the first change of the members is decided, at most.
const FIRST_CHANGE_MAX: Duration = Duration::from_secs(300);

/// What a run has shown.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The hash of everything that happened.
    pub trace: u64,
    /// The number of events.
    pub events: u64,
    /// The virtual time that it took.
    pub took: Duration,
    /// How many nodes there were.
    pub nodes: usize,
    /// What clients did.
    pub clients: ClientCounts,
    /// How often each fault happened.
    pub faults: BTreeMap<FaultKind, u64>,
    /// How many faults lasted at the same time, at most.
    pub overlapping_max: usize,
    /// How often each change of the members was decided.
    pub changes: BTreeMap<ChangeKind, u64>,
    /// How many of them were decided while a fault lasted.
    pub changes_in_faults: u64,
    /// How many homes went back to the ring in force, where engines are connected by messages.
    pub aborted_homes: u64,
    /// What nodes have repaired.
    pub repairs: RepairCounts,
    /// What happened to messages.
    pub wires: WireCounts,
    /// What happened to segments of streams.
    pub links: LinkCounts,
    /// How many acknowledged writes the faults have destroyed.
    pub destroyed: u64,
    /// How many versions that were not synced were lost with the power.
    pub unsynced_lost: u64,
    /// What was removed.
    pub removals: RemovalCounts,
    /// How many times a key was checked.
    pub checks: u64,
    /// How many rounds of scrubbing were begun.
    pub scrubs: u64,
    /// How many sums of nodes were compared with their stores.
    pub sums_compared: u64,
    /// What the run has made and what outlives it.
    pub left_behind: Vec<String>,
    /// What clients did to the key of which a rule was broken.
    pub log: Vec<String>,
    /// The rule that was broken first.
    pub violation: Option<Violation>,
}

impl Report {
    /// What happened how often, by name.
    pub fn counts(&self) -> Vec<(String, u64)> {
        let faults = self.faults.iter().map(|(kind, count)| (format!("fault {kind:?}"), *count));
        let others = [
            ("reads", self.clients.reads),
            ("writes", self.clients.writes),
            ("deletes", self.clients.deletes),
            ("failed operations", self.clients.failed),
            ("keys pushed to where they belong", self.repairs.pushed_keys),
            ("read repairs", self.repairs.read_repairs),
            ("owed marks paid", self.repairs.owed_paid),
            ("classes filled", self.repairs.filled),
            ("puts forwarded to another coordinator by members", self.repairs.forwarded),
            ("puts forwarded to another coordinator by messages", self.wires.forwarded),
            ("messages that straggled", self.wires.straggled),
            ("conditional puts acknowledged", self.clients.conditional),
            ("conditional puts of absent keys acknowledged", self.clients.created),
            ("conditional puts refused", self.clients.refused),
            ("listings", self.clients.listings),
            ("index queries", self.clients.queries),
            ("folds that find keys", self.clients.folds),
            ("keys that folds erased", self.clients.erased_by_folds),
            ("tombstones that folds reaped", self.clients.reaped_by_folds),
            ("messages", self.wires.delivered),
            ("messages lost", self.wires.lost),
            ("messages doubled", self.wires.doubled),
            ("messages reordered", self.wires.reordered),
            ("segments held up by a cut link", self.links.held_up),
            ("segments lost and sent again", self.links.lost),
            ("acknowledged writes destroyed by faults", self.destroyed),
            ("unsynced versions lost with the power", self.unsynced_lost),
            ("tombstones reaped", self.removals.reaps),
            ("tombstones reaped while a fault lasted", self.removals.reaps_in_faults),
            ("copies for others given back", self.removals.hand_backs),
            ("copies for others given back while a fault lasted", self.removals.hand_backs_in_faults),
            ("checks of a key", self.checks),
            ("rounds of scrubbing", self.scrubs),
            ("sums compared with stores", self.sums_compared),
            ("exchanges", self.repairs.exchanges),
            ("versions that exchanges repaired", self.repairs.exchange_repaired),
            ("versions that exchanges dropped", self.repairs.exchange_dropped),
            ("changes of members decided while a fault lasted", self.changes_in_faults),
            ("homes that went back to the ring in force", self.aborted_homes),
        ];
        let changes = self.changes.iter().map(|(kind, count)| (format!("change {kind:?}"), *count));
        faults.chain(changes).chain(others.map(|(name, count)| (name.to_owned(), count))).collect()
    }
}

/// Runs a seed. When this returns, nothing of its world is left, unless the report says what.
pub fn run_seed(seed: u64) -> Report {
    let made = Made::default();
    let mut report = run_in_world(seed, &made);
    report.left_behind = made.left();
    report
}

fn run_in_world(seed: u64, made: &Made) -> Report {
    let nodes = if seed.is_multiple_of(2) { 5 } else { 7 };
    let world = World::new(seed, nodes + SPARES);
    made.note("the world".to_owned(), world.inner());
    let _end = EndOfWorld(world.clone());
    let mut report = Report { seed, nodes, ..Report::default() };
    let backends = if matches!(seed % 12, 1 | 10) { Backends::OnlyMemory } else { Backends::Mixed };
    let wiring = if seed.is_multiple_of(3) { Wiring::Messages } else { Wiring::Streams };
    let machines = Machines { nodes, spares: SPARES, wiring, backends };
    let oracle = Arc::<Mutex<Oracle>>::default();
    let witness = oracle.lock().witness.clone();
    clients::all_keys().for_each(|key| witness.know(key));
    let mut cluster = Cluster::new(&world, machines, made, witness);
    // Read modes change which thread does what, and so what comes before what.
    cluster.is_nothing_cached = seed % 8 == 7;
    let cluster = Arc::new(Mutex::new(cluster));
    let nemesis = Nemesis::new(&world, &cluster, &oracle);
    let clients = Clients {
        world: world.clone(),
        cluster: cluster.clone(),
        oracle: oracle.clone(),
        counts: Arc::default(),
        rush: nemesis.rush.clone(),
    };
    let operator = Operator::new(&nemesis);
    let all = whole_run(seed, clients.clone(), nemesis.clone(), operator.clone());
    if let Err(stuck) = world.run(RUN_LIMIT, all) {
        oracle.lock().broken(Violation::Stuck(stuck.to_string()));
    }
    report.trace = world.trace().hash();
    report.events = world.trace().events();
    report.took = world.elapsed();
    report.clients = *clients.counts.lock();
    report.faults = nemesis.counts();
    report.overlapping_max = nemesis.overlapping_max();
    (report.changes, report.changes_in_faults) = (operator.counts(), operator.in_faults());
    let (mut cluster, oracle) = (cluster.lock(), oracle.lock());
    report.wires = cluster.wires.counts();
    report.links = cluster.network.links().lock().counts;
    report.aborted_homes = cluster.aborted_homes;
    report.destroyed = oracle.destroyed;
    report.unsynced_lost = oracle.unsynced_lost;
    report.removals = oracle.witness.counts();
    (report.checks, report.sums_compared) = (oracle.checks, oracle.sums_compared);
    report.scrubs = nemesis.scrubs();
    report.log = oracle.log_of_violation();
    cluster.end();
    report.repairs = cluster.repairs();
    report.violation.clone_from(&oracle.violation);
    report
}

async fn whole_run(seed: u64, clients: Clients, nemesis: Nemesis, operator: Operator) {
    let world = &clients.world;
    let runtime = world.runtime(OUTSIDE);
    if let Err(error) = starting::form(&clients.cluster).await {
        clients.oracle.lock().broken(Violation::NoStart(error.to_string()));
        return;
    }
    let left = Arc::new(AtomicUsize::new(CLIENTS));
    runtime.spawn(Box::pin(nemesis.clone().detect(DETECT_INTERVAL)));
    for _ in 0..CLIENTS {
        let (client, left) = (clients.clone(), left.clone());
        runtime.spawn(Box::pin(async move {
            client.run_one(OPERATIONS_PER_CLIENT).await;
            left.fetch_sub(1, Ordering::SeqCst);
        }));
    }
    if clients.cluster.lock().wiring == Wiring::Messages {
        runtime.spawn(Box::pin(Driver::new(world, &clients.cluster).run()));
    }
    if FaultKind::are_extra_in(seed) {
        runtime.spawn(Box::pin(nemesis.clone().run_extra(seed)));
    }
    runtime.spawn(Box::pin(operator.clone().watch()));
    let still = left.clone();
    runtime.spawn(Box::pin(operator.clone().run(seed, move || still.load(Ordering::SeqCst) == 0)));
    let (still, changes, began) = (left.clone(), operator.clone(), runtime.now());
    if bad_sectors::happen_in(seed) {
        let (still, healed) = (left.clone(), nemesis.clone());
        let is_over = move || still.load(Ordering::SeqCst) == 0 || healed.has_healed();
        runtime.spawn(Box::pin(nemesis.clone().spoil_sectors(seed, is_over)));
    }
    {
        let (still, healed) = (left.clone(), nemesis.clone());
        let is_over = move || still.load(Ordering::SeqCst) == 0 || healed.has_healed();
        runtime.spawn(Box::pin(nemesis.clone().decay(seed, is_over)));
    }
    for number in (0..folding::CLIENTS).filter(|_| folding::happen_in(seed)) {
        let (still, healed) = (left.clone(), nemesis.clone());
        let is_over = move || still.load(Ordering::SeqCst) == 0 || healed.has_healed();
        runtime.spawn(Box::pin(folding::run(clients.clone(), (seed, number), is_over)));
    }
    let is_over = || {
        let has_changed = changes.in_faults() > 0 || runtime.now() > began + FIRST_CHANGE_MAX;
        still.load(Ordering::SeqCst) == 0 && has_changed
    };
    nemesis.clone().run(is_over).await;
    nemesis.heal().await;
    operator.finish(&clients).await;
    runtime.sleep(CALM).await;
    settling::settle_and_decay(&clients, ColdDecay::new(&nemesis, seed)).await;
    clients.cluster.lock().look_at_repairs();
    queries::check_listings(&clients).await;
    pauses::check(&clients, seed).await;
    let (cluster, mut oracle) = (clients.cluster.lock(), clients.oracle.lock());
    for key in oracle.keys() {
        let owners = cluster.owners_of(&key);
        oracle.check_healed(&cluster, key, &owners);
    }
}
