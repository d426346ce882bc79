//! What the commands about the cluster print, in Riak's words and columns: the members, and how far
//! a change of the ring is. The texts are made from facts, which the member gathers.

use super::transfer_progress;
use ombak_cluster::{ClusterFacts, MemberFacts, RingChangeFacts};
use serde_json::{Value, json};
use std::fmt::Write;

/// The width of tables.
pub(super) const COLUMNS: usize = 79;
/// The head of the column of locations, which is there if a member has one.
const LOCATION_HEAD: &str = "location";

pub(super) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",")
}

pub(super) fn with_text(facts: &ClusterFacts, text: impl FnOnce(&ClusterFacts) -> String) -> Value {
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
    let said = match &facts.removed {
        Some(removed) => format!("{}\n\n{}", removed_line(removed), text(facts)),
        None => text(facts),
    };
    json!({
        "ring": facts.ring.to_string(),
        "ring_size": facts.ring_size,
        "claimant": facts.claimant,
        "takes_writes": !facts.is_closed,
        "ring_change": facts.ring_change.as_ref().map(ring_change_json),
        "members": facts.members.iter().map(member).collect::<Vec<_>>(),
        "removed": facts.removed,
        "text": said,
    })
}

/// What stands above everything that a node tells which is no member any more.
fn removed_line(removed: &str) -> String {
    format!("WARNING: {removed}. What it knew before:")
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
pub(super) fn member_text(facts: &ClusterFacts) -> String {
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
pub(super) fn status_text(facts: &ClusterFacts) -> String {
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
pub(super) fn ring_text(facts: &ClusterFacts) -> String {
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
            removed: None,
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
    fn a_node_that_was_removed_says_so_first() {
        let removed = Some("this node is no member of its cluster any more".to_owned());
        let answer = with_text(&ClusterFacts { removed, ..facts() }, member_text);
        let text = answer["text"].as_str().unwrap();
        assert!(text.starts_with("WARNING: this node is no member of its cluster any more. What it knew"), "{text}");
        assert!(text.contains("'dev1@h'") && answer["removed"].is_string());
        assert_eq!(with_text(&facts(), member_text)["removed"], Value::Null);
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
    }
}
