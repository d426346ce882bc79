//! The commands of operators about exchanges between primaries: `aae-status`, `tictacaae` and
//! `node repair`, in Riak's words where it has some (docs/riak/semantics.md §16).

use super::cluster_admin::refused;
use super::cluster_text::{COLUMNS, quoted};
use crate::wall_clock::now_secs;
use ombak_api::admin::{AdminError, ExchangeWish, ForMembers};
use ombak_cluster::{ExchangeChange, ExchangeOfClass, ExchangeThatWaits, MemberExchanges, MemberNode, OfMember, Whom};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The answers of members.
type Members = [OfMember<MemberExchanges>];

/// Maximum number of partitions that one line names.
const NAMED_MAX: usize = 8;

/// What exchanges of one partition have done, in the columns of Riak's `aae-status`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PartitionRow {
    /// When the last exchange ended in full.
    last_secs: Option<u64>,
    /// Since when each exchange has ended in full; none if one has not.
    all_secs: Option<u64>,
    repaired_last: u64,
    repaired: u64,
    comparisons: u64,
    repaired_max: u64,
}

/// Asks members for their exchanges, and changes them before if something is wanted.
pub(super) async fn ask(
    member: &MemberNode,
    members: &ForMembers,
    wanted: Option<&ExchangeWish>,
) -> Result<Vec<OfMember<MemberExchanges>>, AdminError> {
    let whom = match members {
        ForMembers::This => Whom::This,
        ForMembers::All => Whom::All,
        ForMembers::Named(name) => Whom::Named(name.clone()),
    };
    let change = match wanted {
        None => ExchangeChange::Nothing,
        Some(ExchangeWish::Suspend) => ExchangeChange::Suspend,
        Some(ExchangeWish::Resume) => ExchangeChange::Resume,
        Some(ExchangeWish::Interval(ms)) => ExchangeChange::Interval(*ms),
        Some(ExchangeWish::StartNodeRepair(reason)) => ExchangeChange::StartNodeRepair { reason: reason.clone() },
        Some(ExchangeWish::StopNodeRepair) => ExchangeChange::StopNodeRepair,
    };
    member.exchanges(&whom, change).await.map_err(refused)
}

/// `aae-status`.
pub(super) fn status(members: &Members) -> Value {
    let now_secs = now_secs();
    let text = members.iter().map(|of| status_text(of, members.len() > 1, now_secs)).collect::<Vec<_>>();
    answer(members, text.join("\n\n"))
}

/// What a change answers. It fails if a member did not do it. The others are changed nevertheless,
/// and the message says so.
pub(super) fn changed(members: &Members, wanted: &ExchangeWish) -> Result<Value, AdminError> {
    let failures: Vec<String> =
        members.iter().filter_map(|of| of.answer.as_ref().err().map(|why| format!("'{}': {why}", of.name))).collect();
    if !failures.is_empty() {
        let others = if failures.len() == members.len() { "" } else { ". The other members were changed" };
        return Err(AdminError::Refused(format!("{}{others}", failures.join("; "))));
    }
    let lines = members.iter().filter_map(|of| Some(changed_line(&of.name, of.answer.as_ref().ok()?, wanted)));
    Ok(answer(members, lines.collect::<Vec<_>>().join("\n")))
}

fn changed_line(name: &str, now: &MemberExchanges, wanted: &ExchangeWish) -> String {
    match wanted {
        ExchangeWish::Suspend => format!("Exchanges are suspended on {name} until it stops or they are resumed"),
        ExchangeWish::Resume => format!("Exchanges go on on {name}"),
        ExchangeWish::Interval(_) => format!("Set exchangetick to {} on {name}", now.interval_ms),
        ExchangeWish::StartNodeRepair(_) if now.has_changed => format!("Node repair started on {name}."),
        ExchangeWish::StartNodeRepair(_) => format!("There are repairs currently ongoing on node {name}"),
        ExchangeWish::StopNodeRepair if now.has_changed => format!("{name}: Node repair stopped"),
        ExchangeWish::StopNodeRepair => format!("No active node repairs on {name}"),
    }
}

fn status_text(of: &OfMember<MemberExchanges>, is_named: bool, now_secs: u64) -> String {
    let named = if is_named { format!("{}: ", quoted(std::slice::from_ref(&of.name))) } else { String::new() };
    match &of.answer {
        Err(why) => format!("{named}{why}"),
        Ok(exchanges) if exchanges.state == "off" => {
            format!("{named}This node exchanges nothing with others: it does not listen for other nodes.")
        }
        Ok(exchanges) => format!("{named}{}\n\n{}", headline(exchanges, now_secs), tables(exchanges, now_secs)),
    }
}

fn headline(of: &MemberExchanges, now_secs: u64) -> String {
    let every = period(of.interval_ms / 1_000);
    let mut text = match of.state.as_str() {
        "suspended" => "Exchanges are suspended.".to_owned(),
        _ => format!("Each partition is compared with each other primary every {every}."),
    };
    // Writing into a string does not fail.
    let _ = match of.round_ended_secs {
        Some(at) => {
            write!(text, "\nThe last full round ended {}, and repaired {} keys.", ago(at, now_secs), of.round_repaired)
        }
        None => write!(text, "\nNo full round has ended since the start."),
    };
    let _ = write!(text, "\n{} of {} exchanges of this round are left.", of.left_of_round, of.exchanges_in_round);
    if let Some(reason) = &of.node_repair {
        let _ = write!(text, " A repair of the node is under way: {reason}");
    }
    for line in waiting_lines(&of.waiting) {
        let _ = write!(text, "\n{line}");
    }
    let dropped: u64 = of.exchanges.iter().map(|of| of.dropped).sum();
    if dropped > 0 {
        let _ = write!(
            text,
            "\n{dropped} copies were dropped since the start, because their keys had been removed everywhere else \
             ('ombak admin cluster restored-keys')."
        );
    }
    text
}

/// One line for each other node and reason for which exchanges wait.
fn waiting_lines(waiting: &[ExchangeThatWaits]) -> Vec<String> {
    let mut partitions: BTreeMap<(Option<String>, &str), BTreeSet<u32>> = BTreeMap::new();
    for of in waiting {
        let name = of.node.map(|node| of.name.clone().unwrap_or_else(|| node.to_string()));
        partitions.entry((name, &of.why)).or_default().insert(of.partition);
    }
    let line = |((name, why), partitions): (&(Option<String>, &str), &BTreeSet<u32>)| {
        let named: Vec<String> = partitions.iter().take(NAMED_MAX).map(u32::to_string).collect();
        let more = match partitions.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let with = name.as_ref().map_or_else(
            || "Nothing is exchanged".to_owned(),
            |name| format!("Exchanges with {} wait", quoted(std::slice::from_ref(name))),
        );
        format!("{with}: {why} (partitions {}{more}).", named.join(", "))
    };
    partitions.iter().map(line).collect()
}

fn tables(of: &MemberExchanges, now_secs: u64) -> String {
    let rows = rows(&of.exchanges);
    let rule = "-".repeat(COLUMNS);
    let shown = |at: Option<u64>| at.map_or_else(|| "--".to_owned(), |at| ago(at, now_secs));
    let mut text =
        format!("{:=^COLUMNS$}\n{:<45}{:>17}{:>17}\n{rule}\n", " Exchanges ", "Index", "Last (ago)", "All (ago)");
    for (partition, row) in &rows {
        let _ = writeln!(text, "{partition:<45}{:>17}{:>17}", shown(row.last_secs), shown(row.all_secs));
    }
    let _ = write!(text, "\n{:=^COLUMNS$}\n", " Keys Repaired ");
    let _ = write!(text, "{:<45}{:>11}{:>11}{:>12}\n{rule}", "Index", "Last", "Mean", "Max");
    for (partition, row) in &rows {
        let mean = row.repaired.checked_div(row.comparisons).unwrap_or(0);
        let _ = write!(text, "\n{partition:<45}{:>11}{mean:>11}{:>12}", row.repaired_last, row.repaired_max);
    }
    text
}

/// One row for each partition: Riak has no row for each n_val and other node.
fn rows(exchanges: &[ExchangeOfClass]) -> BTreeMap<u32, PartitionRow> {
    let mut rows: BTreeMap<u32, PartitionRow> = BTreeMap::new();
    for of in exchanges {
        let first = PartitionRow { last_secs: of.included_secs, all_secs: of.included_secs, ..PartitionRow::default() };
        let row = rows.entry(of.partition).or_insert(first);
        if of.included_secs >= row.last_secs {
            row.repaired_last = of.repaired_last;
        }
        row.last_secs = row.last_secs.max(of.included_secs);
        row.all_secs = row.all_secs.min(of.included_secs);
        row.repaired += of.repaired;
        row.comparisons += of.comparisons;
        row.repaired_max = row.repaired_max.max(of.repaired_max);
    }
    rows
}

/// How long ago something was.
pub(super) fn ago(at_secs: u64, now_secs: u64) -> String {
    format!("{} ago", period(now_secs.saturating_sub(at_secs)))
}

/// A time in its largest whole unit.
fn period(secs: u64) -> String {
    match secs {
        0..120 => format!("{secs} s"),
        120..7_200 => format!("{} min", secs / 60),
        7_200..172_800 => format!("{} h", secs / 3_600),
        _ => format!("{} days", secs / 86_400),
    }
}

fn answer(members: &Members, text: String) -> Value {
    let names: BTreeMap<_, &str> = members.iter().map(|of| (of.node, of.name.as_str())).collect();
    let members: Vec<Value> = members
        .iter()
        .map(|of| {
            let (mut json, is_up) = match &of.answer {
                Ok(exchanges) => (json!(exchanges), true),
                Err(why) => (json!({ "why": why }), false),
            };
            json["node"] = json!(of.node);
            json["name"] = json!(of.name);
            json["up"] = json!(is_up);
            if is_up && json["waiting"].is_null() {
                json["waiting"] = json!([]);
            }
            for exchange in json["exchanges"].as_array_mut().into_iter().flatten() {
                let node = exchange["node"].take();
                let name = names.iter().find(|(id, _)| json!(id) == node).map(|(_, name)| json!(name));
                exchange["node"] = name.unwrap_or(node);
            }
            json
        })
        .collect();
    json!({ "members": members, "text": text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::NodeId;

    fn exchange(partition: u32, node: u64, included_secs: Option<u64>, repaired: u64) -> ExchangeOfClass {
        ExchangeOfClass {
            partition,
            n_val: 3,
            node: NodeId::new(node),
            included_secs,
            ended: 1,
            comparisons: 2,
            failures: 0,
            repaired,
            repaired_last: repaired,
            repaired_max: repaired,
            dropped: 0,
            withheld: 0,
            bytes: 60,
        }
    }

    fn member(answer: Result<MemberExchanges, String>) -> OfMember<MemberExchanges> {
        OfMember { node: NodeId::new(1), name: "a@h".into(), answer }
    }

    fn active() -> MemberExchanges {
        MemberExchanges {
            state: "active".into(),
            interval_ms: 480_000,
            exchanges_in_round: 3,
            left_of_round: 1,
            round_ended_secs: Some(100),
            round_repaired: 4,
            exchanges: vec![exchange(0, 2, Some(100), 4), exchange(0, 3, Some(150), 0), exchange(7, 2, None, 0)],
            ..MemberExchanges::default()
        }
    }

    #[test]
    fn the_tables_have_riaks_columns() {
        let text = status_text(&member(Ok(active())), false, 400);
        let squeezed: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in [
            "Each partition is compared with each other primary every 8 min.",
            "The last full round ended 5 min ago, and repaired 4 keys.",
            "1 of 3 exchanges of this round are left.",
            "Index Last (ago) All (ago)",
            "0 4 min ago 5 min ago",
            "7 -- --",
            "Index Last Mean Max",
            "0 0 1 4",
        ] {
            assert!(squeezed.iter().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn the_text_says_why_exchanges_wait() {
        let waits = |partition, node: Option<u64>, name: Option<&str>, why: &str| ExchangeThatWaits {
            partition,
            n_val: 3,
            node: node.map(NodeId::new),
            name: name.map(str::to_owned),
            why: why.into(),
        };
        let mut waiting: Vec<_> =
            (0..10).map(|partition| waits(partition, Some(2), Some("b@h"), "it is down")).collect();
        waiting.push(waits(7, Some(3), None, "it refuses"));
        waiting.push(waits(9, None, None, "this node fills it"));
        let text = status_text(&member(Ok(MemberExchanges { waiting, ..active() })), false, 400);
        for line in [
            "Exchanges with 'b@h' wait: it is down (partitions 0, 1, 2, 3, 4, 5, 6, 7 and 2 more).",
            "Exchanges with '0000000000000003' wait: it refuses (partitions 7).",
            "Nothing is exchanged: this node fills it (partitions 9).",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!status_text(&member(Ok(active())), false, 400).contains("wait"));
    }

    #[test]
    fn a_partition_of_which_one_exchange_is_missing_has_no_time_for_all() {
        let rows = rows(&[exchange(0, 2, Some(100), 0), exchange(0, 3, None, 0)]);
        assert_eq!((rows[&0].last_secs, rows[&0].all_secs), (Some(100), None));
    }

    #[test]
    fn states_and_changes_are_told() {
        let off = status_text(&member(Ok(MemberExchanges { state: "off".into(), ..Default::default() })), true, 0);
        assert!(off.starts_with("'a@h': This node exchanges nothing"), "{off}");
        let repair = MemberExchanges { node_repair: Some("new disk".into()), state: "suspended".into(), ..active() };
        let text = status_text(&member(Ok(repair)), false, 400);
        assert!(text.starts_with("Exchanges are suspended.") && text.contains("is under way: new disk"), "{text}");
        let start = ExchangeWish::StartNodeRepair("x".into());
        let text = |has_changed, wanted: &ExchangeWish| {
            let members = [member(Ok(MemberExchanges { has_changed, ..active() }))];
            changed(&members, wanted).unwrap()["text"].as_str().unwrap().to_owned()
        };
        assert_eq!(text(true, &start), "Node repair started on a@h.");
        assert_eq!(text(false, &start), "There are repairs currently ongoing on node a@h");
        assert_eq!(text(true, &ExchangeWish::StopNodeRepair), "a@h: Node repair stopped");
        assert_eq!(text(false, &ExchangeWish::StopNodeRepair), "No active node repairs on a@h");
        assert_eq!(text(true, &ExchangeWish::Interval(5)), "Set exchangetick to 480000 on a@h");
        let failed = changed(&[member(Err("no answer".into())), member(Ok(active()))], &start);
        assert!(
            matches!(failed, Err(AdminError::Refused(why)) if why.contains("no answer. The other members were changed"))
        );
    }

    #[test]
    fn data_have_the_names_of_nodes() {
        let mut other = member(Ok(active()));
        (other.node, other.name) = (NodeId::new(2), "b@h".into());
        let json = status(&[member(Ok(active())), other]);
        assert_eq!(json["members"][0]["exchanges"][0]["node"], "b@h");
        assert_eq!((&json["members"][0]["state"], &json["members"][0]["up"]), (&json!("active"), &json!(true)));
    }
}
