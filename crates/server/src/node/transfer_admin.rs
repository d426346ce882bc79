//! The commands of operators about transfers between nodes: `transfers`, `handoff` and
//! `transfer-limit`, in Riak's words (docs/riak/semantics.md §16).

use super::cluster_admin::refused;
use super::cluster_text::{quoted, ring_change_json, ring_change_lines};
use super::transfer_progress::transfer_json;
use super::transfer_text::{Members, handoff_text, limit_said, limit_text, transfers_text};
use crate::wall_clock::now_secs;
use ombak_api::admin::{AdminError, ForMembers, HandoffDirection};
use ombak_cluster::{
    ActiveTransfer, MemberNode, MemberTransfers, Missed, OfMember, RingChangeFacts, TransferChange, Whom,
};
use ombak_types::NodeId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `transfers`.
pub(super) fn transfers(members: &Members, change: Option<&RingChangeFacts>) -> Value {
    let mut text = transfers_text(members, now_secs());
    if let Some(change) = change {
        text = format!("{}\n\n{text}", ring_change_lines(change).join("\n"));
    }
    let mut answer = answer(members, text);
    answer["ring_change"] = change.map(ring_change_json).unwrap_or_default();
    answer
}

/// `handoff status`.
pub(super) fn handoff(members: &Members) -> Value {
    answer(members, handoff_text(members))
}

/// `handoff details`: the transfers that are under way, and the members that do not answer. The
/// command prints those of the members that were asked for. `asked` is the node that was asked.
pub(super) fn details(members: &Members, asked: &str) -> Value {
    let silent: Vec<&str> = members.iter().filter(|of| of.answer.is_err()).map(|of| of.name.as_str()).collect();
    let names: Vec<&str> = members.iter().map(|of| of.name.as_str()).collect();
    let mut transfers = Vec::new();
    for of in members {
        for transfer in of.answer.iter().flat_map(|answer| &answer.active) {
            let receiver = members.iter().find(|other| other.node == transfer.receiver);
            let receiver = receiver.map_or_else(|| transfer.receiver.to_string(), |found| found.name.clone());
            let Ok(sender) = &of.answer else { continue };
            let mut json = transfer_json(sender, transfer, &receiver, now_secs());
            json["sender"] = json!(of.name);
            transfers.push(json);
        }
    }
    json!({ "node": asked, "members": names, "unreachable": silent, "transfers": transfers, "text": "" })
}

/// The change that `handoff enable` and `disable` ask for.
pub(super) fn handoff_change(direction: HandoffDirection, enabled: bool) -> TransferChange {
    let of = |wanted| (direction == wanted || direction == HandoffDirection::Both).then_some(enabled);
    let (outbound, inbound) = (of(HandoffDirection::Outbound), of(HandoffDirection::Inbound));
    TransferChange { outbound, inbound, ..TransferChange::default() }
}

/// What `handoff enable` and `disable` answer. `changed` are the members that were changed.
pub(super) fn handoff_was_set(changed: &Members, members: &ForMembers) -> Value {
    let said = match members {
        ForMembers::All => "All nodes successfully updated",
        ForMembers::This | ForMembers::Named(_) => "Handoff setting successfully updated",
    };
    answer(changed, format!("{said}\n\n{}", handoff_text(changed)))
}

/// `transfer-limit`.
pub(super) fn limits(members: &Members) -> Value {
    answer(members, limit_text(members))
}

/// What `transfer-limit LIMIT` answers. `changed` are the members that were changed.
pub(super) fn limit_was_set(changed: &Members, members: &ForMembers, limit: Option<u64>) -> Value {
    let for_all = matches!(members, ForMembers::All);
    answer(changed, format!("{}{}", limit_said(limit, for_all, changed), limit_text(changed)))
}

/// Changes the transfers of members. It fails if one of them did not answer: the others are changed
/// nevertheless, and the message says so.
pub(super) async fn change_transfers(
    member: &MemberNode,
    members: ForMembers,
    change: TransferChange,
) -> Result<Vec<OfMember<MemberTransfers>>, AdminError> {
    let whom = match members {
        ForMembers::This => Whom::This,
        ForMembers::All => Whom::All,
        ForMembers::Named(name) => Whom::Named(name),
    };
    let changed = member.change_transfers(&whom, change).await.map_err(refused)?;
    let silent: Vec<String> = changed.iter().filter(|of| of.answer.is_err()).map(|of| of.name.clone()).collect();
    if silent.is_empty() {
        return Ok(changed);
    }
    let others = if silent.len() == changed.len() { "" } else { ". The other members were changed" };
    Err(AdminError::Failed(format!("[{}] did not answer and were not changed{others}", quoted(&silent))))
}

fn answer(members: &Members, text: String) -> Value {
    let names: BTreeMap<NodeId, &str> = members.iter().map(|of| (of.node, of.name.as_str())).collect();
    let name = |node: NodeId| names.get(&node).map_or_else(|| node.to_string(), |name| (*name).to_owned());
    let members: Vec<Value> = members.iter().map(|of| member_json(of, &name)).collect();
    json!({ "members": members, "text": text })
}

fn member_json(of: &OfMember<MemberTransfers>, name: &impl Fn(NodeId) -> String) -> Value {
    let Ok(transfers) = &of.answer else { return json!({ "node": of.node, "name": of.name, "up": false }) };
    let missed =
        |missed: &Missed| json!({ "partition": missed.partition, "n_val": missed.n_val, "node": name(missed.node) });
    let active = |transfer: &ActiveTransfer| transfer_json(transfers, transfer, &name(transfer.receiver), now_secs());
    json!({
        "node": of.node,
        "name": of.name,
        "up": true,
        "handoff": { "inbound": transfers.inbound, "outbound": transfers.outbound },
        "transfer_limit": transfers.transfer_limit,
        "bytes_per_second": transfers.bytes_per_second,
        "hints": {
            "partitions": transfers.hinted_partitions,
            "objects": transfers.hinted_objects,
            "bytes": transfers.hinted_bytes,
            "list": transfers.hints,
        },
        "active": transfers.active.iter().map(active).collect::<Vec<_>>(),
        "owed": { "count": transfers.owed_marks, "list": transfers.owed.iter().map(missed).collect::<Vec<_>>() },
        "ordered": {
            "count": transfers.ordered_transfers,
            "list": transfers.ordered.iter().map(missed).collect::<Vec<_>>(),
        },
        "filling": { "count": transfers.filling_classes, "list": transfers.filling },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_cluster::{FillingClass, PartitionHints};

    fn member(number: u64, answer: Option<MemberTransfers>) -> OfMember<MemberTransfers> {
        let answer = answer.ok_or_else(|| "it is down".to_owned());
        OfMember { node: NodeId::new(number), name: format!("dev{number}@h"), answer }
    }

    fn idle() -> MemberTransfers {
        MemberTransfers { outbound: true, inbound: true, transfer_limit: 4, ..MemberTransfers::default() }
    }

    #[test]
    fn a_quiet_cluster_says_so_in_riaks_words() {
        let members = [member(1, Some(idle())), member(2, Some(idle()))];
        assert_eq!(transfers_text(&members, 0), "No transfers active");
        let members = [member(1, Some(idle())), member(2, None)];
        assert_eq!(transfers_text(&members, 0), "Nodes ['dev2@h'] are currently down.\nNo transfers active");
    }

    #[test]
    fn what_waits_and_what_moves_is_told() {
        let busy = MemberTransfers {
            inbound: false,
            hinted_partitions: 2,
            hinted_objects: 400,
            hinted_bytes: 3 << 20,
            hints: vec![PartitionHints { partition: 7, objects: 400, bytes: 3 << 20 }],
            active: vec![ActiveTransfer {
                kind: "hinted".into(),
                partition: 7,
                n_val: 3,
                receiver: NodeId::new(2),
                objects_compared: 100,
                bytes_sent: 1536,
                since_secs: 90,
                objects_total: None,
                running_ms: Some(10_000),
            }],
            owed_marks: 1,
            owed: vec![Missed { partition: 1, n_val: 3, node: NodeId::new(2) }],
            filling_classes: 3,
            filling: vec![FillingClass { partition: 1, n_val: 3, reason: "new_store".into() }],
            ..idle()
        };
        let members = [member(1, Some(busy)), member(2, Some(idle()))];
        let text = transfers_text(&members, 100);
        for line in [
            "'dev1@h' waiting to handoff 2 partitions (about 400 objects, 3.0 MB)",
            "'dev1@h' must bring missed writes of 1 class to ['dev2@h']",
            "'dev1@h' may lack something in 3 classes, and compares them with the other primaries (new store)",
            "'dev1@h' takes nothing: inbound handoff is disabled",
            "Active Transfers:",
            "transfer type: hinted",
            "partition: 7 (n_val 3)",
            "started: 10 s ago",
            "objects compared: 100 of about 400",
            "bytes sent: 1.5 KB, 153 bytes/s",
            "time left: about 30 seconds",
            "  'dev1@h' ====> 'dev2@h'",
            "  |############                                      |  25%",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        let json = answer(&members, String::new());
        let first = &json["members"][0];
        assert_eq!(
            (&first["active"][0]["receiver"], &first["active"][0]["objects_total"]),
            (&json!("dev2@h"), &json!(400))
        );
        let active = &first["active"][0];
        assert_eq!((&active["bytes_per_second"], &active["seconds_left"]), (&json!(153), &json!(30)));
        let details = details(&members, "dev2@h");
        assert_eq!((&details["node"], &details["unreachable"]), (&json!("dev2@h"), &json!([])));
        let ends = (&details["transfers"][0]["sender"], &details["transfers"][0]["receiver"]);
        assert_eq!(ends, (&json!("dev1@h"), &json!("dev2@h")));
        assert_eq!(first["handoff"], json!({"inbound": false, "outbound": true}));
        assert_eq!(first["owed"], json!({"count": 1, "list": [{"partition": 1, "n_val": 3, "node": "dev2@h"}]}));
    }

    #[test]
    fn limits_and_switches_are_tables() {
        let slow = MemberTransfers { outbound: false, transfer_limit: 0, bytes_per_second: 50 << 20, ..idle() };
        let members = [member(1, Some(idle())), member(2, Some(slow)), member(3, None)];
        let table = handoff_text(&members);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[1], "dev1@h  on        on       4               no limit");
        assert_eq!(lines[2], "dev2@h  off       on       0               50.0 MB/s");
        assert_eq!(lines[3], "dev3@h  does not answer");
        let table = limit_text(&members);
        assert!(
            table.contains("\n    0       50.0 MB/s       'dev2@h'\n(offline)                   'dev3@h'\n"),
            "{table}"
        );
        let all = "Setting transfer limit to 2 across the cluster\n\n";
        assert_eq!(
            (limit_said(Some(2), true, &members).as_str(), limit_said(None, true, &members).as_str()),
            (all, "")
        );
        assert_eq!(limit_said(Some(2), true, &members[..1]), all);
        assert_eq!(limit_said(Some(2), false, &members[..1]), "Set transfer limit for 'dev1@h' to 2\n\n");
    }
}
