//! The command `handoff summary`: how many transfers each member has, in Riak's table.

use crate::table::table;
use ombak_cluster::{MemberTransfers, OfMember};
use ombak_types::NodeId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

type Members = [OfMember<MemberTransfers>];

/// The transfers of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// How many are under way, in either direction.
    active: u64,
    /// How many are known, also those that wait.
    known: u64,
}

/// The transfers of one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    ownership: Count,
    hinted: Count,
    repair: Count,
}

impl Count {
    fn cell(self) -> String {
        match self {
            Self { active: 0, known: 0 } => " ".into(),
            Self { active, known: 0 } => format!("{active} (Unknown)"),
            Self { active, known } => format!("{active} ({known})"),
        }
    }

    fn json(self) -> Value {
        json!({ "active": self.active, "known": self.known })
    }
}

impl Counts {
    const fn total(&self) -> u64 {
        self.ownership.active + self.hinted.active + self.repair.active
    }

    fn of_kind(&mut self, kind: &str) -> &mut Count {
        match kind {
            "ownership" => &mut self.ownership,
            "hinted" => &mut self.hinted,
            _ => &mut self.repair,
        }
    }
}

/// `handoff summary`. `changing_homes` are the partitions without their new owners, by the members
/// that take part in their change.
pub(super) fn summary(members: &Members, changing_homes: &BTreeMap<NodeId, u64>) -> Value {
    let counts = counts(members, changing_homes);
    let rows: Vec<[String; 6]> = members
        .iter()
        .filter(|of| of.answer.is_ok())
        .filter_map(|of| Some((of, counts.get(&of.node)?)))
        .map(|(of, counts)| {
            let [ownership, hinted, repair] = [counts.ownership, counts.hinted, counts.repair].map(Count::cell);
            [format!("  {}  ", of.name), counts.total().to_string(), ownership, " ".into(), hinted, repair]
        })
        .collect();
    let json_of = |of: &OfMember<MemberTransfers>| match (&of.answer, counts.get(&of.node)) {
        (Ok(_), Some(counts)) => json!({
            "node": of.node,
            "name": of.name,
            "up": true,
            "active": counts.total(),
            "ownership": counts.ownership.json(),
            "hinted": counts.hinted.json(),
            "repair": counts.repair.json(),
        }),
        _ => json!({ "node": of.node, "name": of.name, "up": false }),
    };
    let mut text = format!(
        "Each cell indicates active transfers and, in parenthesis, the number of all known transfers.\n\
         The 'Total' column is the sum of the active transfers.\n{}",
        table(["Node", "Total", "Ownership", "Resize", "Hinted", "Repair"], &rows)
    );
    let silent: Vec<&str> = members.iter().filter(|of| of.answer.is_err()).map(|of| of.name.as_str()).collect();
    if !silent.is_empty() {
        text.push_str(&format!("\n(unreachable): {}", silent.join(" ")));
    }
    json!({ "members": members.iter().map(json_of).collect::<Vec<_>>(), "text": text })
}

/// The counts of all members. A transfer that is under way counts at both ends.
fn counts(members: &Members, changing_homes: &BTreeMap<NodeId, u64>) -> BTreeMap<NodeId, Counts> {
    let mut counts: BTreeMap<NodeId, Counts> = members.iter().map(|of| (of.node, Counts::default())).collect();
    for (of, transfers) in members.iter().filter_map(|of| Some((of, of.answer.as_ref().ok()?))) {
        for transfer in &transfers.active {
            for end in [of.node, transfer.receiver] {
                if let Some(counts) = counts.get_mut(&end) {
                    counts.of_kind(&transfer.kind).active += 1;
                }
            }
        }
        let Some(counts) = counts.get_mut(&of.node) else { continue };
        counts.hinted.known = transfers.hinted_partitions;
        counts.repair.known = transfers.owed_marks + transfers.ordered_transfers + transfers.filling_classes;
    }
    for (node, homes) in changing_homes {
        if let Some(counts) = counts.get_mut(node) {
            counts.ownership.known = *homes;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_cluster::ActiveTransfer;

    fn member(number: u64, answer: Result<MemberTransfers, String>) -> OfMember<MemberTransfers> {
        OfMember { node: NodeId::new(number), name: format!("dev{number}@h"), answer }
    }

    fn to(receiver: u64, kind: &str) -> ActiveTransfer {
        ActiveTransfer {
            kind: kind.into(),
            partition: 1,
            n_val: 3,
            receiver: NodeId::new(receiver),
            objects_compared: 0,
            bytes_sent: 0,
            since_secs: 0,
            objects_total: None,
            running_ms: None,
        }
    }

    #[test]
    fn transfers_count_at_both_ends_in_riaks_table() {
        let active = vec![to(2, "ownership"), to(2, "fill"), to(9, "hinted")];
        let busy = MemberTransfers { active, hinted_partitions: 12, owed_marks: 1, ..MemberTransfers::default() };
        let members = [member(1, Ok(busy)), member(2, Ok(MemberTransfers::default())), member(3, Err("silent".into()))];
        let homes = [(NodeId::new(1), 20), (NodeId::new(2), 20)].into();
        let summary = summary(&members, &homes);
        let expected = "\
Each cell indicates active transfers and, in parenthesis, the number of all known transfers.
The 'Total' column is the sum of the active transfers.
+----------+-----+---------+------+------+-----------+
|   Node   |Total|Ownership|Resize|Hinted|  Repair   |
+----------+-----+---------+------+------+-----------+
|  dev1@h  |  3  | 1 (20)  |      |1 (12)|   1 (1)   |
|  dev2@h  |  2  | 1 (20)  |      |      |1 (Unknown)|
+----------+-----+---------+------+------+-----------+
(unreachable): dev3@h";
        assert_eq!(summary["text"], expected, "{}", summary["text"].as_str().unwrap_or_default());
        let second = &summary["members"][1];
        assert_eq!((&second["active"], &second["ownership"]), (&json!(2), &json!({"active": 1, "known": 20})));
        assert_eq!(summary["members"][2]["up"], false);
    }
}
