//! The commands of operators about the cluster, in Riak's words (docs/riak/semantics.md §16).

use super::{handoff_summary, partition_admin, transfer_admin, transfer_progress};
use ombak_api::admin::{AdminError, ClusterAdmin, ClusterCommand};
use ombak_cluster::{
    ClusterError, ClusterFacts, MemberChange, MemberFacts, MemberNode, RingChangeFacts, RingReady, Unsettled,
};
use ombak_runtime::BoxFuture;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::{SocketAddr, ToSocketAddrs};

pub(super) const COLUMNS: usize = 79;
/// The head of the column of locations, which is there if a member has one.
const LOCATION_HEAD: &str = "location";

/// Carries out commands on a member.
pub struct MemberAdmin(pub MemberNode);

impl ClusterAdmin for MemberAdmin {
    fn run(&self, command: ClusterCommand) -> BoxFuture<'static, Result<Value, AdminError>> {
        let member = self.0.clone();
        Box::pin(async move {
            match command {
                ClusterCommand::Join(to) => join(&member, &to).await,
                ClusterCommand::Leave(name) => {
                    let name = name.unwrap_or_else(|| member.kv().node_name().to_owned());
                    stage(&member, MemberChange::Leave(name)).await
                }
                ClusterCommand::ForceRemove(name) => stage(&member, MemberChange::ForceRemove(name)).await,
                ClusterCommand::Replace { node, with, forced: false } => {
                    stage(&member, MemberChange::Replace { node, with }).await
                }
                ClusterCommand::Replace { node, with, forced: true } => {
                    stage(&member, MemberChange::ForceReplace { node, with }).await
                }
                ClusterCommand::Location { location, node } => {
                    let node = node.unwrap_or_else(|| member.kv().node_name().to_owned());
                    stage(&member, MemberChange::SetLocation { node, location }).await
                }
                ClusterCommand::Plan => plan(&member).await,
                ClusterCommand::Commit => {
                    member.commit().await.map_err(refused)?;
                    Ok(json!({"committed": true, "text": "Cluster changes committed"}))
                }
                ClusterCommand::Clear => {
                    member.clear().await.map_err(refused)?;
                    Ok(json!({"cleared": true, "text": "Cleared staged cluster changes"}))
                }
                ClusterCommand::Down(name) => {
                    member.mark_down(&name).await.map_err(refused)?;
                    Ok(json!({"down": name, "text": format!("Success: \"{name}\" marked as down")}))
                }
                ClusterCommand::Status => Ok(with_text(&member.facts().await, status_text)),
                ClusterCommand::MemberStatus => Ok(with_text(&member.facts().await, member_text)),
                ClusterCommand::RingStatus => Ok(with_text(&member.facts().await, ring_text)),
                ClusterCommand::RingReady => Ok(ring_ready(&member.ring_ready().await)),
                ClusterCommand::Settled => Ok(settled(&member.unsettled().await)),
                ClusterCommand::Partitions => Ok(partition_admin::partitions(&member).await),
                ClusterCommand::Transfers => Ok(transfer_admin::transfers(&member).await),
                ClusterCommand::Handoff => Ok(transfer_admin::handoff(&member).await),
                ClusterCommand::HandoffSummary => Ok(handoff_summary::summary(&member).await),
                ClusterCommand::HandoffDetails => Ok(transfer_admin::details(&member).await),
                ClusterCommand::SetHandoff { direction, enabled, members } => {
                    transfer_admin::set_handoff(&member, direction, enabled, members).await
                }
                ClusterCommand::TransferLimit => Ok(transfer_admin::transfer_limit(&member).await),
                ClusterCommand::SetTransferLimit { limit, bytes_per_second, members } => {
                    transfer_admin::set_transfer_limit(&member, limit, bytes_per_second, members).await
                }
            }
        })
    }

    fn summary(&self) -> Value {
        let metadata = self.0.metadata();
        let ring = self.0.kv().ring();
        json!({
            "peer_address": self.0.node().listens_on(),
            "members": metadata.members().len(),
            "ring": ring.version().to_string(),
            "ring_nodes": ring.node_count(),
            "takes_writes": self.0.kv().is_open_to_writes(),
        })
    }
}

pub(super) fn refused(error: ClusterError) -> AdminError {
    match error {
        ClusterError::Refused(text) => AdminError::Refused(text),
        other => AdminError::Failed(other.to_string()),
    }
}

async fn join(member: &MemberNode, to: &str) -> Result<Value, AdminError> {
    let address = resolve(to).await?;
    let other = member.join(address).await.map_err(refused)?;
    let me = member.kv().node_name();
    Ok(json!({
        "node": me,
        "joins": other,
        "text": format!("Success: staged join request for '{me}' to '{other}'"),
    }))
}

async fn stage(member: &MemberNode, change: MemberChange) -> Result<Value, AdminError> {
    let text = member.stage(&change).await.map_err(refused)?;
    let (action, node, with) = match change {
        MemberChange::Leave(node) => ("leave", node, None),
        MemberChange::ForceRemove(node) => ("force-remove", node, None),
        MemberChange::Replace { node, with } => ("replace", node, Some(with)),
        MemberChange::ForceReplace { node, with } => ("force-replace", node, Some(with)),
        MemberChange::SetLocation { node, location } => {
            return Ok(json!({ "staged": "set-location", "node": node, "location": location, "text": text }));
        }
    };
    Ok(json!({ "staged": action, "node": node, "with": with, "text": text }))
}

/// The address of the peer listener of a node. A name is looked up on a thread that may wait.
async fn resolve(to: &str) -> Result<SocketAddr, AdminError> {
    let wanted = to.to_owned();
    let found = tokio::task::spawn_blocking(move || wanted.to_socket_addrs().map(|mut all| all.next())).await;
    match found {
        Ok(Ok(Some(address))) => Ok(address),
        Ok(Ok(None)) => Err(AdminError::BadRequest(format!("{to} has no address"))),
        Ok(Err(why)) => Err(AdminError::BadRequest(format!(
            "{to}: {why}; name the address on which a member listens for other nodes (listener.peer), such as \
             10.0.0.1:8099"
        ))),
        Err(panic) => Err(AdminError::Failed(panic.to_string())),
    }
}

async fn plan(member: &MemberNode) -> Result<Value, AdminError> {
    let Some(shown) = member.plan().await.map_err(refused)? else {
        return Ok(json!({"plan": null, "text": "There are no staged changes"}));
    };
    Ok(json!({"plan": shown.plan, "names": shown.names, "text": shown.text()}))
}

fn ring_ready(ready: &RingReady) -> Value {
    let (is_ready, text) = match ready {
        RingReady::Ready(nodes) => (true, format!("TRUE All nodes agree on the ring [{}]", quoted(nodes))),
        RingReady::Differ(one, other) => {
            (false, format!("FALSE Node '{one}' and '{other}' list different partition owners"))
        }
        RingReady::Down(nodes) => {
            (false, format!("FALSE [{}] down.  All nodes need to be up to check.", quoted(nodes)))
        }
    };
    json!({"ring_ready": is_ready, "text": text})
}

/// `cluster settled`.
fn settled(members: &[Unsettled]) -> Value {
    let is_settled = members.iter().all(Unsettled::is_settled);
    let json_of = |of: &Unsettled| {
        let counts = of.counts.unwrap_or_default();
        json!({
            "name": of.member,
            "up": of.counts.is_some(),
            "partitions_with_hints": counts.partitions_with_hints,
            "owed_marks": counts.owed_marks,
            "filling_classes": counts.filling_classes,
            "transfers": counts.transfers,
            "unreadable_keys": counts.unreadable_keys,
            "versions_to_reap": counts.versions_to_reap,
            "looks_for_tombstones": counts.looks_for_tombstones,
        })
    };
    let line = |of: &Unsettled| {
        let Some(counts) = of.counts else { return format!("'{}' does not answer", of.member) };
        let mut open: Vec<String> = [
            (counts.partitions_with_hints, "partitions with hints"),
            (counts.owed_marks, "owed marks"),
            (counts.filling_classes, "filling classes"),
            (counts.transfers, "transfers"),
            (counts.unreadable_keys, "keys that it cannot read ('ombak admin cluster unreadable-keys')"),
            (counts.versions_to_reap, "tombstones or expired values to reap"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if counts.looks_for_tombstones {
            open.push("looks through its stores for tombstones".into());
        }
        format!("'{}': {}", of.member, open.join(", "))
    };
    let text = if is_settled {
        "TRUE Everything lies where it belongs, and nothing waits to be reaped".to_owned()
    } else {
        let lines: Vec<String> = members.iter().filter(|of| !of.is_settled()).map(line).collect();
        format!("FALSE {}", lines.join("\n      "))
    };
    json!({"settled": is_settled, "members": members.iter().map(json_of).collect::<Vec<_>>(), "text": text})
}

pub(super) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",")
}

fn with_text(facts: &ClusterFacts, text: impl FnOnce(&ClusterFacts) -> String) -> Value {
    let member = |member: &MemberFacts| {
        json!({
            "node": member.node,
            "name": member.name,
            "address": member.address,
            "status": member.status.to_string(),
            "up": member.is_up,
            "restored": member.older,
            "ring": member.ring.map(|ring| ring.to_string()),
            "location": member.location,
            "partitions": member.partitions,
            "partitions_planned": member.partitions_planned,
        })
    };
    json!({
        "ring": facts.ring.to_string(),
        "ring_size": facts.ring_size,
        "claimant": facts.claimant,
        "takes_writes": !facts.is_closed,
        "ring_change": facts.ring_change.as_ref().map(ring_change_json),
        "members": facts.members.iter().map(member).collect::<Vec<_>>(),
        "text": text(facts),
    })
}

/// How far a change of the ring is, and what it waits for.
pub(super) fn ring_change_lines(change: &RingChangeFacts) -> Vec<String> {
    let RingChangeFacts { homes, done, changing, .. } = change;
    let left = match change.seconds_left() {
        Some(secs) => format!("; {} left", transfer_progress::about(secs)),
        None => String::new(),
    };
    let mut lines = vec![format!(
        "The ring changes: {done} of {homes} partitions have their new owners, {changing} are on their way{left}."
    )];
    if change.driver.is_none() {
        lines.push("  No member carries the change out at the moment.".into());
    }
    for obstacle in &change.obstacles {
        let partitions =
            if obstacle.homes == 1 { "1 partition".to_owned() } else { format!("{} partitions", obstacle.homes) };
        lines.push(format!("  {partitions}: {}", obstacle.why));
    }
    lines
}

/// A change of the ring as JSON.
pub(super) fn ring_change_json(change: &RingChangeFacts) -> Value {
    let obstacles: Vec<Value> =
        change.obstacles.iter().map(|of| json!({ "why": of.why, "partitions": of.homes })).collect();
    json!({
        "driver": change.driver,
        "partitions": change.homes,
        "done": change.done,
        "changing": change.changing,
        "left": change.left(),
        "seconds_left": change.seconds_left(),
        "obstacles": obstacles,
    })
}

fn percent(partitions: u32, of: u32) -> f64 {
    f64::from(partitions) * 100.0 / f64::from(of)
}

/// `member-status`.
fn member_text(facts: &ClusterFacts) -> String {
    let rule = "-".repeat(COLUMNS);
    let mut out = format!("{:=^COLUMNS$}\nStatus     Ring    Pending    Node\n{rule}\n", " Membership ");
    for member in &facts.members {
        let pending = match member.partitions_planned {
            Some(planned) if planned != member.partitions => format!("{:>7.1}%", percent(planned, facts.ring_size)),
            _ => "    --  ".to_owned(),
        };
        let share = percent(member.partitions, facts.ring_size);
        // Writing into a string does not fail.
        let status = member.status.to_string();
        let location = member.location.map_or_else(String::new, |location| format!(" ({location})"));
        let _ = writeln!(out, "{status:<8}  {share:>5.1}%  {pending}    '{}'{location}", member.name);
    }
    let count = |wanted: &str| facts.members.iter().filter(|member| member.status.to_string() == wanted).count();
    let _ = write!(
        out,
        "{rule}\nValid:{} / Leaving:{} / Exiting:{} / Joining:{} / Down:{}",
        count("valid"),
        count("leaving"),
        count("exiting"),
        count("joining"),
        count("down")
    );
    for (member, why) in facts.members.iter().filter_map(|member| Some((member, member.older.as_ref()?))) {
        let _ = write!(out, "\n'{}' takes no part, because its data directory is an older copy: {why}", member.name);
    }
    out
}

/// `cluster status`: the members with their addresses.
fn status_text(facts: &ClusterFacts) -> String {
    let mut out = format!("{:=^COLUMNS$}\n", " Cluster Status ");
    let _ = writeln!(out, "Ring ready: {}\n", is_ready(facts));
    let width = facts.members.iter().map(|member| member.name.len()).max().unwrap_or(0).max(4);
    let widest = facts.members.iter().filter_map(|member| member.location).map(|at| at.as_str().chars().count()).max();
    let places = widest.map(|widest| widest.max(LOCATION_HEAD.len()));
    let head = places.map_or_else(String::new, |width| format!("{LOCATION_HEAD:<width$}  "));
    let _ = writeln!(out, "{:<width$}  status   avail  ring   pending  {head}address", "node");
    for member in &facts.members {
        let pending = member.partitions_planned.unwrap_or(member.partitions);
        let (status, avail) = (member.status.to_string(), if member.is_up { "up" } else { "down" });
        let (share, planned) = (percent(member.partitions, facts.ring_size), percent(pending, facts.ring_size));
        let location = member.location.map_or_else(|| "--".to_owned(), |location| location.to_string());
        let place = places.map_or_else(String::new, |width| format!("{location:<width$}  "));
        let _ = writeln!(
            out,
            "{:<width$}  {status:<7}  {avail:<5}  {share:>5.1}  {planned:>7.1}  {place}{}",
            member.name, member.address
        );
    }
    if let Some(change) = &facts.ring_change {
        let _ = writeln!(out, "\n{}", ring_change_lines(change).join("\n"));
    }
    if facts.is_closed {
        let _ = writeln!(out, "\nThe cluster takes no writes while it changes.");
    }
    out.trim_end().to_owned()
}

/// While homes change, members may be some steps apart.
fn is_ready(facts: &ClusterFacts) -> bool {
    facts.members.iter().all(|member| member.ring.is_some_and(|ring| ring >= facts.ring))
}

/// `ring-status`.
fn ring_text(facts: &ClusterFacts) -> String {
    let claimant = facts.claimant.as_deref().unwrap_or("(none)");
    let is_up = facts.members.iter().any(|member| Some(&member.name) == facts.claimant.as_ref() && member.is_up);
    let down: Vec<&str> = facts.members.iter().filter(|m| !m.is_up).map(|member| member.name.as_str()).collect();
    let mut out = format!("{:=^COLUMNS$}\n", " Claimant ");
    let _ = writeln!(out, "Claimant:  '{claimant}'\nStatus:     {}", if is_up { "up" } else { "down" });
    let _ = writeln!(out, "Ring Ready: {}\n", is_ready(facts));
    let _ = writeln!(out, "{:=^COLUMNS$}", " Ownership Handoff ");
    match &facts.ring_change {
        Some(change) => {
            let _ = writeln!(out, "{}\n", ring_change_lines(change).join("\n"));
        }
        None => out.push_str("No pending changes.\n\n"),
    }
    let _ = writeln!(out, "{:=^COLUMNS$}", " Unreachable Nodes ");
    if down.is_empty() {
        out.push_str("All nodes are up and reachable");
    } else {
        let _ = write!(
            out,
            "The following nodes are unreachable: [{}]\n\nWARNING: The members of the cluster cannot change until \
             these nodes are\nup again. If one of them stays away for long, mark it as down\n(ombak admin down NODE). \
             Requests go on: what these nodes miss is kept for\nthem, and tombstones are not removed meanwhile.",
            down.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_cluster::MemberStatus;
    use ombak_ring::RingVersion;
    use ombak_types::NodeId;

    fn facts() -> ClusterFacts {
        let version = RingVersion::first(5);
        let member = |number, status, partitions, is_up: bool| MemberFacts {
            node: NodeId::new(number),
            name: format!("dev{number}@h"),
            address: format!("127.0.1.{number}:10019"),
            status,
            is_up,
            older: (!is_up).then(|| "a reason".to_owned()),
            ring: is_up.then_some(version),
            location: None,
            partitions,
            partitions_planned: Some(4),
        };
        ClusterFacts {
            ring_size: 8,
            ring: version,
            claimant: Some("dev1@h".into()),
            is_closed: false,
            ring_change: None,
            members: vec![member(1, MemberStatus::Valid, 8, true), member(2, MemberStatus::Joining, 0, false)],
        }
    }

    #[test]
    fn members_look_as_in_riak() {
        let text = member_text(&facts());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0].len(), lines[2].len()), (79, 79));
        assert_eq!(lines[3], "valid     100.0%     50.0%    'dev1@h'");
        assert_eq!(lines[4], "joining     0.0%     50.0%    'dev2@h'");
        assert_eq!(lines[6], "Valid:1 / Leaving:0 / Exiting:0 / Joining:1 / Down:0");
        assert!(lines[7].starts_with("'dev2@h' takes no part, because its data directory is an older copy: a reason"));
    }

    #[test]
    fn locations_are_shown_beside_the_members_that_have_one() {
        let mut facts = facts();
        assert!(!status_text(&facts).contains("location"));
        facts.members[0].location = "zone of the north".parse().ok();
        let text = status_text(&facts);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[3], "node    status   avail  ring   pending  location           address");
        assert_eq!(lines[4], "dev1@h  valid    up     100.0     50.0  zone of the north  127.0.1.1:10019");
        assert_eq!(lines[5], "dev2@h  joining  down     0.0     50.0  --                 127.0.1.2:10019");
        assert!(member_text(&facts).contains("50.0%    'dev1@h' (zone of the north)\n"));
        let json = with_text(&facts, member_text);
        let location = |number: usize| &json["members"][number]["location"];
        assert_eq!((location(0), location(1)), (&json!("zone of the north"), &Value::Null));
    }

    #[test]
    fn a_change_of_the_ring_says_how_far_it_is_and_what_it_waits_for() {
        let obstacle = ombak_cluster::RingObstacle { why: "waits for 'dev3@h' to answer".into(), homes: 2 };
        let change = RingChangeFacts {
            driver: Some("dev1@h".into()),
            homes: 64,
            done: 48,
            changing: 8,
            obstacles: vec![obstacle],
            driven_secs: 30,
            done_meanwhile: 4,
        };
        let facts = ClusterFacts { ring_change: Some(change.clone()), ..facts() };
        let expected = "The ring changes: 48 of 64 partitions have their new owners, 8 are on their way; about 120 \
                        seconds left.\n  2 partitions: waits for 'dev3@h' to answer";
        let expected = expected.replace("120 seconds", "2 minutes");
        assert!(ring_text(&facts).contains(&expected), "{}", ring_text(&facts));
        assert!(status_text(&facts).contains(&expected));
        let json = ring_change_json(&change);
        assert_eq!((&json["left"], &json["seconds_left"]), (&json!(16), &json!(120)));
        let alone = RingChangeFacts { driver: None, ..change };
        assert!(ring_change_lines(&alone)[1].contains("No member carries the change out"));
    }

    #[test]
    fn the_ring_says_who_is_missing() {
        let text = ring_text(&facts());
        assert!(text.contains("Claimant:  'dev1@h'\nStatus:     up\nRing Ready: false"), "{text}");
        assert!(text.contains("unreachable: ['dev2@h']"), "{text}");
        let ready = ring_ready(&RingReady::Ready(vec!["a".into(), "b".into()]));
        assert_eq!(ready["text"], "TRUE All nodes agree on the ring ['a','b']");
    }
}
