//! Gives the commands of operators, and looks what has become of them.

use super::wanted::Wanted;
use crate::cluster::{Cluster, PEER_PORT, TARGET_N_VAL, Wiring};
use crate::network::address_of;
use crate::starting::on_host;
use crate::world::{HostId, OUTSIDE};
use ombak_cluster::{MemberChange, MemberNode};
use ombak_metadata::state::{MemberStatus, Metadata};
use ombak_repair::Repair;
use ombak_ring::placement::{HomePlacement, Phase};
use ombak_ring::staging::Change;
use ombak_runtime::{Runtime, within};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// How long an operator waits for a command.
const COMMAND_MAX: Duration = Duration::from_secs(25);

type Shared = Arc<Mutex<Cluster>>;

fn name(host: HostId) -> String {
    format!("node{}", host.0)
}

/// Tries to have a change decided, through a member. Says why it was not. It may be decided
/// nevertheless.
pub(super) async fn decide(cluster: &Shared, through: HostId, wanted: Wanted) -> Result<(), String> {
    if cluster.lock().wiring == Wiring::Messages {
        return decide_in_log(&mut cluster.lock(), wanted);
    }
    let steps = through_members(cluster, through, wanted);
    let runtime = cluster.lock().world.runtime(OUTSIDE);
    let given = within(&*runtime, Some(runtime.now() + COMMAND_MAX), steps).await;
    given.unwrap_or_else(|_| Err("no answer in time".into()))
}

fn decide_in_log(cluster: &mut Cluster, Wanted { goes, joins, is_forced }: Wanted) -> Result<(), String> {
    let is_pending = |home: &HomePlacement<'_>| home.phase() == Phase::Pending;
    let pending = cluster.decided.newest().map_or(0, |now| now.placement.homes().filter(is_pending).count());
    let id = |host: HostId| cluster.node(host).id.ok_or("the node has never run");
    let joins = joins.map(id).transpose()?;
    let mut changes: Vec<Change> = joins.map(|node| Change::Join { node }).into_iter().collect();
    if let Some(node) = goes.map(id).transpose()? {
        changes.push(match (joins, is_forced) {
            (None, false) => Change::Leave { node },
            (None, true) => Change::ForceRemove { node },
            (Some(with), false) => Change::Replace { node, with },
            (Some(with), true) => Change::ForceReplace { node, with },
        });
    }
    let decided = cluster.decided.set_goal(&changes, TARGET_N_VAL, &cluster.all_n_vals());
    decided.map_err(|why| why.to_string())?;
    // A new goal aborts what was pending.
    cluster.aborted_homes += pending as u64;
    Ok(())
}

async fn through_members(cluster: &Shared, through: HostId, wanted: Wanted) -> Result<(), String> {
    if let Some(host) = wanted.joins {
        join(cluster, through, host).await?;
    }
    let asked = member(cluster, through)?;
    let goes = wanted.goes.map(|host| (name(host), cluster.lock().node(host).id));
    run(cluster, through, async move {
        if let Some((goes, id)) = goes {
            let status = id.and_then(|id| asked.metadata().members().get(&id).map(|member| member.status));
            if wanted.is_forced && status != Some(MemberStatus::Down) {
                asked.mark_down(&goes).await?;
            }
            asked.stage(&change(goes, wanted)).await?;
        }
        asked.plan().await?;
        // Whoever has lost its disk is removed, whatever that destroys: the oracle knows.
        asked.commit_accepting_loss().await
    })
    .await
}

/// Lets a node join through a member, unless it has done so.
pub(super) async fn join(cluster: &Shared, through: HostId, host: HostId) -> Result<(), String> {
    let (joins, seed) = (member(cluster, host)?, address_of(through, PEER_PORT));
    if joins.metadata().members().len() > 1 {
        return Ok(());
    }
    let joined = run(cluster, host, async move { joins.join(seed).await.map(drop) }).await;
    joined.map_err(|why| format!("join: {why}"))
}

/// Drops all staged changes, also joins.
pub(super) async fn clear(cluster: &Shared, through: HostId) -> Result<(), String> {
    let asked = member(cluster, through)?;
    run(cluster, through, async move { asked.clear().await }).await
}

/// Whether a node runs in a cluster of its own.
pub(super) fn is_alone(cluster: &Cluster, host: HostId) -> bool {
    let metadata = cluster.node(host).member.as_ref().map(MemberNode::metadata);
    let is_valid = |member: &ombak_metadata::state::Member| member.status == MemberStatus::Valid;
    metadata.is_some_and(|metadata| metadata.members().len() == 1 && metadata.members().values().all(is_valid))
}

fn change(node: String, wanted: Wanted) -> MemberChange {
    match (wanted.joins.map(name), wanted.is_forced) {
        (None, false) => MemberChange::Leave(node),
        (None, true) => MemberChange::ForceRemove(node),
        (Some(with), false) => MemberChange::Replace { node, with },
        (Some(with), true) => MemberChange::ForceReplace { node, with },
    }
}

/// Stages the leave of a member, and drops it again.
pub(super) async fn stage_and_clear(cluster: &Shared, through: HostId, goes: HostId) -> Result<(), String> {
    let asked = member(cluster, through)?;
    run(cluster, through, async move {
        asked.stage(&MemberChange::Leave(name(goes))).await?;
        asked.clear().await
    })
    .await
}

fn member(cluster: &Shared, host: HostId) -> Result<MemberNode, String> {
    cluster.lock().node(host).member.clone().ok_or_else(|| format!("host {} does not run", host.0))
}

async fn run(
    cluster: &Shared,
    host: HostId,
    work: impl Future<Output = Result<(), impl ToString + Send + 'static>> + Send + 'static,
) -> Result<(), String> {
    let runtime = cluster.lock().world.runtime(OUTSIDE);
    let done = on_host(cluster, host, work);
    match within(&*runtime, Some(runtime.now() + COMMAND_MAX), done).await {
        Ok(Ok(outcome)) => outcome.map_err(|why| why.to_string()),
        Ok(Err(why)) => Err(why.to_string()),
        Err(_) => Err("no answer in time".into()),
    }
}

/// What the members are, as far as somebody knows.
pub(super) struct Known {
    /// (node, status) of each member, as each running member knows them.
    states: Vec<Metadata>,
    decided: Option<Arc<super::DecidedState>>,
}

impl Known {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let members = cluster.nodes.iter().filter_map(|node| node.member.as_ref());
        let states = members.map(MemberNode::metadata).filter(|metadata| metadata.members().len() > 1).collect();
        Self { states, decided: cluster.decided.newest() }
    }

    /// Whether a node was a member and was removed.
    pub(super) fn is_removed(&self, node: NodeId) -> bool {
        self.states.iter().any(|state| state.was_removed(node))
            || self.decided.as_ref().is_some_and(|decided| decided.removed.contains(&node))
    }

    /// Whether a node is a full member.
    pub(super) fn is_member(&self, node: NodeId) -> bool {
        let is_full = |status: MemberStatus| matches!(status, MemberStatus::Valid | MemberStatus::Down);
        let in_state = |state: &Metadata| state.members().get(&node).is_some_and(|member| is_full(member.status));
        self.states.iter().any(in_state)
            || self.decided.as_ref().is_some_and(|decided| decided.members.contains_key(&node))
    }

    /// Whether a member is about to leave.
    fn leaves(&self, node: NodeId) -> bool {
        use ombak_ring::staging::MemberStatus as Staged;
        let goes = |status: MemberStatus| matches!(status, MemberStatus::Leaving | MemberStatus::Exiting);
        let in_state = |state: &Metadata| state.members().get(&node).is_some_and(|member| goes(member.status));
        let in_log = |status: &Staged| matches!(status, Staged::Leaving | Staged::Exiting);
        let decided = self.decided.as_ref().and_then(|decided| decided.members.get(&node));
        self.states.iter().any(in_state) || decided.is_some_and(in_log)
    }

    /// Whether a change is decided.
    pub(super) fn is_decided(&self, cluster: &Cluster, wanted: &Wanted) -> bool {
        let id = |host: Option<HostId>| host.and_then(|host| cluster.node(host).id);
        match (id(wanted.goes), id(wanted.joins)) {
            (Some(goes), _) => self.is_removed(goes) || !wanted.is_forced && self.leaves(goes),
            (None, Some(joins)) => self.is_member(joins),
            (None, None) => false,
        }
    }
}

/// What is left to do until all changes have ended; nothing if they have.
pub(super) fn left(cluster: &Cluster) -> Vec<String> {
    let mut left = Vec::new();
    if let Some(decided) = cluster.decided.newest() {
        left.extend(
            decided
                .members
                .iter()
                .filter(|(_, status)| **status != ombak_ring::staging::MemberStatus::Valid)
                .map(|(node, status)| format!("{node} is {status}")),
        );
        if !decided.placement.is_settled() {
            left.push(format!("placement {} is not settled", decided.placement.version()));
            left.extend(cluster.obstacles.iter().cloned());
        }
        if !decided.new.is_empty() {
            left.push("not all members have confirmed the goal".to_owned());
        }
        let hosts = cluster.member_hosts().into_iter();
        let is_behind =
            |host: &HostId| cluster.decided.followed_by(*host).is_none_or(|followed| followed.index != decided.index);
        left.extend(hosts.filter(is_behind).map(|host| format!("host {} is behind", host.0)));
    }
    let members: Vec<(HostId, &MemberNode)> = cluster
        .member_hosts()
        .into_iter()
        .filter_map(|host| Some((host, cluster.node(host).member.as_ref()?)))
        .collect();
    let first = members.first().map(|(_, member)| member.kv().placement_version());
    for (host, member) in members {
        let metadata = member.metadata();
        let others = metadata.members().values().filter(|member| member.status != MemberStatus::Valid);
        left.extend(others.map(|member| format!("host {}: {} is {}", host.0, member.name, member.status)));
        let placement = member.kv().placement();
        if !placement.is_settled() || Some(placement.version()) != first {
            let changing = placement.homes().filter(|home| !placement.has_goal(home.home()));
            let changing: Vec<_> = changing.map(|home| (home.home(), home.phase())).collect();
            let (version, confirmed) = (placement.version(), member.kv().confirmed_placement());
            let text = format!("placement {version}, confirmed {confirmed}, homes without the goal {changing:?}");
            let report = member.node().repair().ring_report(confirmed);
            let cannot = if report.takes_no_copies { ", takes no copies" } else { "" };
            let (proved, lacking) = (report.proved, report.lacking);
            left.push(format!("host {}: {text}{cannot}, has proved {proved:?}, lacks {lacking:?}", host.0));
        }
    }
    for (host, kv) in cluster.nodes.iter().filter_map(|node| Some((node.host, node.kv.as_ref()?))) {
        let (filling, obstacles) = (kv.filling_classes(), Repair::of(kv).proof_obstacles());
        if !left.is_empty() && (!filling.is_empty() || !obstacles.is_empty()) {
            left.push(format!("host {} fills {filling:?}, and cannot prove {obstacles:?}", host.0));
        }
    }
    left
}
