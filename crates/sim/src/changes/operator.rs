//! What operators do to the members of a cluster in a run, and what becomes of it.

use super::commands::{self, Known};
use super::leavers::Leavers;
use super::wanted::{ChangeKind, Wanted};
use crate::clients::Clients;
use crate::cluster::{Cluster, MemberStage, Wiring};
use crate::faults::Nemesis;
use crate::oracle::{Key, Token, Violation};
use crate::random::Random;
use crate::settling;
use crate::starting;
use crate::world::{HostId, OUTSIDE};
use ombak_repair::{KeyChoice, Repair};
use ombak_ring::placement::Placement;
use ombak_runtime::{Runtime, RuntimeExt};
use ombak_storage::fs::sim::Loss;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// When the first change begins, in milliseconds.
const FIRST_MS: std::ops::Range<u64> = 300..4_000;
/// The pause between two tries of a command, in milliseconds.
const RETRY_MS: std::ops::Range<u64> = 300..1_500;
/// After this time a new plan replaces one that has not ended, in milliseconds.
const HALFWAY_MS: std::ops::Range<u64> = 100..4_000;
/// When a node that was removed starts again, in milliseconds.
const RETURNS_MS: std::ops::Range<u64> = 500..10_000;
/// How long an operator waits for the end of a change before the next one.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked who is a member.
const LOOK: Duration = Duration::from_millis(200);
/// The node that founds the cluster.
const FOUNDER: HostId = HostId(1);
/// So long the founder may be the only member that votes on the metadata, and does not leave.
const FOUNDER_STAYS: Duration = Duration::from_secs(30);
/// So many members stay, at least.
const MEMBERS_MIN: usize = 4;
/// How often clients read what nodes cannot read, while changes wait for it.
const HELP_INTERVAL: Duration = Duration::from_secs(15);
/// After this time an operator gives up what nothing has repaired.
const GIVES_UP_AFTER: Duration = Duration::from_secs(100);
/// How long changes may go on after healing.
const ENDED_MAX: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(super) struct State {
    counts: BTreeMap<ChangeKind, u64>,
    /// The changes that were decided while faults came and went.
    in_faults: u64,
    /// Members that leave, or were removed.
    going: BTreeSet<HostId>,
    /// Those of them that are dead.
    forced: BTreeSet<HostId>,
    is_done: bool,
    /// How many nodes that were removed are about to start again.
    returning: u64,
    /// Nodes that were removed by force, and start again when all changes have ended.
    pub(super) late: Vec<HostId>,
    /// What came of the last try of a command, for people.
    last: String,
    leavers: Leavers,
    /// What nodes have written while they were alone.
    pub(super) brought: BTreeMap<HostId, Vec<(Key, Token)>>,
    /// The decided placements, by their numbers.
    placements: BTreeMap<u64, Arc<Placement>>,
}

/// An operator. Clones share everything.
#[derive(Clone)]
pub(crate) struct Operator {
    pub(super) nemesis: Nemesis,
    pub(super) state: Arc<Mutex<State>>,
}

impl Operator {
    pub(crate) fn new(nemesis: &Nemesis) -> Self {
        Self { nemesis: nemesis.clone(), state: Arc::default() }
    }

    /// How often each kind of change was decided.
    pub(crate) fn counts(&self) -> BTreeMap<ChangeKind, u64> {
        self.state.lock().counts.clone()
    }

    /// How many changes were decided while faults came and went.
    pub(crate) fn in_faults(&self) -> u64 {
        self.state.lock().in_faults
    }

    /// Changes the members until `is_over`, at least once.
    pub(crate) async fn run(self, seed: u64, is_over: impl Fn() -> bool + Send) {
        let runtime = self.nemesis.world.runtime(OUTSIDE);
        let mut random = self.nemesis.world.fork_random();
        let changes = 1 + random.within(0..3);
        runtime.sleep(Duration::from_millis(random.within(FIRST_MS))).await;
        for nth in 0..changes {
            if nth > 0 && is_over() {
                break;
            }
            let first = ChangeKind::FIRST[(seed / 3 % 5) as usize];
            let kind = if nth == 0 { first } else { *random.pick(&ChangeKind::FIRST) };
            let Some(wanted) = self.choose(kind, &mut random).await else { continue };
            if wanted.kind() == ChangeKind::Leave && random.chance(60) {
                self.stage_and_clear(wanted, &mut random).await;
            }
            self.join_and_take_back(wanted, &mut random).await;
            self.carry_out(wanted, &mut random).await;
            self.fill_disks_of_leaver(seed, nth, wanted);
            if random.chance(50) {
                runtime.sleep(Duration::from_millis(random.within(HALFWAY_MS))).await;
            } else {
                self.wait_for_end(&is_over).await;
            }
        }
        self.state.lock().is_done = true;
    }

    /// Chooses who goes and who joins. What cannot be done becomes another kind.
    async fn choose(&self, kind: ChangeKind, random: &mut Random) -> Option<Wanted> {
        let (members, spare) = {
            let (cluster, state) = (self.nemesis.cluster.lock(), self.state.lock());
            let is_young = self.nemesis.world.elapsed() < FOUNDER_STAYS;
            let stays = |host: &HostId| state.going.contains(host) || is_young && *host == FOUNDER;
            let members = cluster.member_hosts().into_iter().filter(|host| !stays(host));
            let spare = cluster.nodes.iter().find(|node| node.stage == MemberStage::Spare).map(|node| node.host);
            (members.collect::<Vec<_>>(), spare)
        };
        let may_shrink = self.staying() > MEMBERS_MIN;
        let joins = match kind {
            ChangeKind::Leave | ChangeKind::ForceRemove if may_shrink => None,
            _ => spare,
        };
        let is_forced = matches!(kind, ChangeKind::ForceRemove | ChangeKind::ForceReplace);
        let is_forced = is_forced && self.state.lock().forced.is_empty();
        let goes = match kind {
            ChangeKind::Join if joins.is_some() => None,
            _ if joins.is_none() && !may_shrink => return None,
            _ if is_forced => Some(self.kill(&members, random).await?),
            _ => Some(*random.pick(&members)),
        };
        if let Some(host) = joins {
            self.nemesis.cluster.lock().node_mut(host).stage = MemberStage::Joining;
            if let Err(why) = self.start_joiner(host, random).await {
                self.nemesis.oracle.lock().broken(Violation::NoStart(why.to_string()));
            }
        }
        self.state.lock().going.extend(goes);
        Some(Wanted { goes, joins, is_forced: goes.is_some() && is_forced })
    }

    /// How many members do not leave.
    fn staying(&self) -> usize {
        let (cluster, state) = (self.nemesis.cluster.lock(), self.state.lock());
        cluster.member_hosts().into_iter().filter(|host| !state.going.contains(host)).count()
    }

    /// Kills a member for ever.
    async fn kill(&self, members: &[HostId], random: &mut Random) -> Option<HostId> {
        let runtime = self.nemesis.world.runtime(OUTSIDE);
        let host = loop {
            let host = *random.pick(members);
            // The founder may be the only voter yet.
            if host != FOUNDER && self.nemesis.take(host) {
                break host;
            }
            // Another fault has it in its hands.
            runtime.sleep(Duration::from_millis(random.within(RETRY_MS))).await;
        };
        self.nemesis.oracle.lock().forgo_overlap();
        self.nemesis.stop(host, if random.chance(50) { Loss::Nothing } else { Loss::Everything }, false);
        self.state.lock().forced.insert(host);
        self.note(&format!("host {} is dead", host.0));
        Some(host)
    }

    async fn stage_and_clear(&self, wanted: Wanted, random: &mut Random) {
        let (Some(goes), Some(through)) = (wanted.goes, self.someone(random)) else { return };
        if self.nemesis.cluster.lock().wiring == Wiring::Messages {
            return;
        }
        if commands::stage_and_clear(&self.nemesis.cluster, through, goes).await.is_ok() {
            self.count(ChangeKind::Clear);
        }
    }

    /// A member that runs, or is to run.
    pub(super) fn someone(&self, random: &mut Random) -> Option<HostId> {
        let cluster = self.nemesis.cluster.lock();
        let state = self.state.lock();
        let hosts: Vec<HostId> =
            cluster.member_hosts().into_iter().filter(|host| !state.going.contains(host)).collect();
        (!hosts.is_empty()).then(|| *random.pick(&hosts))
    }

    /// Gives the commands of a change again and again until it is decided.
    async fn carry_out(&self, wanted: Wanted, random: &mut Random) {
        let runtime = self.nemesis.world.runtime(OUTSIDE);
        let is_halfway = !commands::left(&self.nemesis.cluster.lock()).is_empty();
        self.note(&format!("wanted: {wanted:?}"));
        loop {
            let is_decided = {
                let cluster = self.nemesis.cluster.lock();
                Known::of(&cluster).is_decided(&cluster, &wanted)
            };
            if is_decided {
                break;
            }
            if let Some(through) = self.someone(random) {
                let tried = commands::decide(&self.nemesis.cluster, through, wanted).await;
                let text = format!("through host {}: {tried:?}", through.0);
                self.note(&text);
                self.state.lock().last = text;
            }
            runtime.sleep(Duration::from_millis(random.within(RETRY_MS))).await;
        }
        self.note(&format!("decided: {wanted:?}"));
        self.count(wanted.kind());
        if is_halfway && wanted.kind() != ChangeKind::NewPlan {
            self.count(ChangeKind::NewPlan);
        }
        if !self.nemesis.has_healed() {
            self.state.lock().in_faults += 1;
        }
    }

    async fn wait_for_end(&self, is_over: &impl Fn() -> bool) {
        let runtime = self.nemesis.world.runtime(OUTSIDE);
        let until = runtime.now() + PATIENCE;
        while runtime.now() < until && !is_over() && !commands::left(&self.nemesis.cluster.lock()).is_empty() {
            runtime.sleep(LOOK).await;
        }
    }

    pub(super) fn count(&self, kind: ChangeKind) {
        *self.state.lock().counts.entry(kind).or_default() += 1;
        self.nemesis.world.inner().note([13, kind as u64, 0]);
    }

    pub(super) fn note(&self, what: &str) {
        let text = format!("{:?} members: {what}", self.nemesis.world.elapsed());
        self.nemesis.oracle.lock().note_all(&text);
    }

    /// Looks who is a member, and what the nodes take for the placement, until the world ends.
    pub(crate) async fn watch(self) {
        let runtime = self.nemesis.world.runtime(OUTSIDE);
        let mut random = self.nemesis.world.fork_random();
        loop {
            runtime.sleep(LOOK).await;
            self.check_placements();
            self.look_at_leavers();
            for (host, is_forced) in self.look() {
                self.note(&format!("host {} is no member any more", host.0));
                let is_member = self.nemesis.cluster.lock().wiring == Wiring::Streams;
                if !is_member {
                    self.nemesis.cluster.lock().stop(host, Loss::Nothing);
                } else if is_forced && random.chance(60) {
                    self.state.lock().returning += 1;
                    let returns_ms = random.within(RETURNS_MS);
                    let this = self.clone();
                    let returns = runtime.sleep(Duration::from_millis(returns_ms));
                    runtime.spawn(Box::pin(async move {
                        returns.await;
                        this.let_return(host).await;
                        this.state.lock().returning -= 1;
                    }));
                } else if is_forced {
                    self.state.lock().late.push(host);
                }
            }
        }
    }

    fn look_at_leavers(&self) {
        let (cluster, oracle) = (self.nemesis.cluster.lock(), self.nemesis.oracle.lock());
        let (now, mut state) = (self.nemesis.world.runtime(OUTSIDE).now(), self.state.lock());
        let State { going, forced, leavers, .. } = &mut *state;
        going.difference(forced).for_each(|host| leavers.look(&cluster, *host, now, &oracle.witness));
    }

    /// Notes who has become a member, and returns who is none any more.
    fn look(&self) -> Vec<(HostId, bool)> {
        let mut cluster = self.nemesis.cluster.lock();
        let mut oracle = self.nemesis.oracle.lock();
        let known = Known::of(&cluster);
        let mut gone = Vec::new();
        for at in 0..cluster.nodes.len() {
            let node = &cluster.nodes[at];
            let (host, stage, Some(id)) = (node.host, node.stage, node.id) else { continue };
            match stage {
                MemberStage::Joining if knows_that_it_is_member(&cluster, host) => {
                    cluster.node_mut(host).stage = MemberStage::Member;
                }
                MemberStage::Member if known.is_removed(id) => {
                    let is_forced = self.state.lock().forced.contains(&host);
                    oracle.node_goes(&mut cluster, host, is_forced);
                    gone.push((host, is_forced));
                }
                _ => {}
            }
        }
        gone
    }

    /// Checks that the replicas of each node are those of a decided placement.
    fn check_placements(&self) {
        let cluster = self.nemesis.cluster.lock();
        let mut state = self.state.lock();
        let of_members = cluster.nodes.iter().filter_map(|node| node.member.as_ref()?.metadata().placement().cloned());
        let of_log = cluster.decided.newest().map(|decided| decided.placement.clone());
        for placement in of_members.chain(of_log).filter(|placement| placement.nodes().len() > 1) {
            state.placements.insert(placement.version().number, placement);
        }
        for host in cluster.member_hosts() {
            let Some(kv) = &cluster.node(host).kv else { continue };
            let own = kv.placement();
            let Some(decided) = state.placements.get(&own.version().number) else { continue };
            if **decided == *own || decided.version() != own.version() {
                continue;
            }
            for (home, n) in own.homes().flat_map(|home| [1, 2, 3, 5].map(|n| (home, n))) {
                let (set, allowed) = (home.replica_set(n), decided.home(home.home()).primaries(n));
                if set.iter().any(|node| !allowed.contains(node)) {
                    let (host, home, nodes) = (host.0, home.home(), format!("{set:?}"));
                    self.nemesis.oracle.lock().broken(Violation::Strangers { host, home, n, nodes });
                    return;
                }
            }
        }
    }

    /// Waits until all changes have ended, after healing. Then nodes that were removed serve
    /// nobody, and their processes end.
    pub(crate) async fn finish(&self, clients: &Clients) {
        let runtime = self.nemesis.world.runtime(OUTSIDE);
        let healed = runtime.now();
        let (until, mut next_help) = (healed + ENDED_MAX, healed + HELP_INTERVAL);
        loop {
            runtime.sleep(LOOK).await;
            let left = self.left();
            if left.is_empty() {
                break;
            }
            if runtime.now() > next_help {
                next_help += HELP_INTERVAL;
                settling::read_what_is_unreadable(clients).await;
                if runtime.now() > healed + GIVES_UP_AFTER {
                    self.give_up_what_is_unreadable().await;
                }
            }
            if runtime.now() > until {
                let what = format!("members still change {ENDED_MAX:?} after healing: {}", left.join("; "));
                self.nemesis.oracle.lock().broken(Violation::Stuck(what));
                break;
            }
        }
        self.let_return_late().await;
        let mut cluster = self.nemesis.cluster.lock();
        for host in self.state.lock().going.clone() {
            if cluster.node(host).stage == MemberStage::Gone && cluster.node(host).kv.is_some() {
                cluster.stop(host, Loss::Nothing);
            }
        }
    }

    /// Gives up on all members what they cannot read: it keeps classes from being full, and members
    /// from leaving. The oracle has counted it as destroyed when it was damaged.
    async fn give_up_what_is_unreadable(&self) {
        let hosts = self.nemesis.cluster.lock().hosts();
        for host in hosts {
            let Some(kv) = self.nemesis.cluster.lock().node(host).kv.clone() else { continue };
            let there = Repair::of(&kv);
            let dropped = starting::on_host(&self.nemesis.cluster, host, async move {
                kv.offload(move || there.drop_unreadable(&KeyChoice::All)).await
            });
            if matches!(dropped.await, Ok(Ok(Ok(dropped))) if dropped > 0) {
                self.note(&format!("host {} gives up what it cannot read", host.0));
            }
        }
    }

    fn left(&self) -> Vec<String> {
        let cluster = self.nemesis.cluster.lock();
        let state = self.state.lock();
        let mut left = commands::left(&cluster);
        if !state.is_done {
            left.push(format!("a change is not decided: {}", state.last));
        }
        if state.returning > 0 {
            left.push("a node that was removed is about to return".to_owned());
        }
        let going = state.going.iter().map(|host| cluster.node(*host));
        for node in going {
            if node.stage != MemberStage::Gone {
                let settled = node.kv.as_ref().map(|kv| Repair::of(kv).settled());
                left.push(format!("host {} is still a member: {settled:?}", node.host.0));
            } else if node.kv.as_ref().is_some_and(ombak_kv::Kv::is_open) {
                left.push(format!("host {} was removed, and still serves", node.host.0));
            }
        }
        left.extend(
            cluster
                .nodes
                .iter()
                .filter(|node| node.stage == MemberStage::Joining)
                .map(|node| format!("host {} still joins", node.host.0)),
        );
        left
    }
}

/// Whether a node that joins has learned that it is a member.
fn knows_that_it_is_member(cluster: &Cluster, host: HostId) -> bool {
    let node = cluster.node(host);
    let (Some(id), Some(kv)) = (node.id, &node.kv) else { return false };
    match &node.member {
        Some(member) => {
            let metadata = member.metadata();
            let is_valid =
                metadata.members().get(&id).is_some_and(|of| of.status == ombak_metadata::state::MemberStatus::Valid);
            is_valid
                && metadata.members().len() > 1
                && metadata.placement().is_some_and(|it| it.version() == kv.placement_version())
        }
        None => {
            let followed = cluster.decided.followed_by(host);
            followed.is_some_and(|followed| {
                followed.members.contains_key(&id) && kv.placement_version() >= followed.placement.version()
            })
        }
    }
}
