//! The commands `ombak admin handoff`. The node words the answers, but for the table of `details`.

use super::args::Common;
use super::cluster::{ask, print, show};
use super::cluster_args::{Direction, HandoffCommand, MemberArgs};
use super::failure::Failure;
use super::output::Output;
use crate::table::table;
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub async fn run(command: &HandoffCommand, common: &Common, out: Output) -> Result<(), Failure> {
    let (enabled, direction, of) = match command {
        HandoffCommand::Status => return show("handoff", common, out).await,
        HandoffCommand::Summary => return show("handoff-summary", common, out).await,
        HandoffCommand::Details { of } => return details(of, common, out).await,
        HandoffCommand::Enable { direction, of } => (true, direction, of),
        HandoffCommand::Disable { direction, of } => (false, direction, of),
    };
    let direction = match direction {
        Direction::Inbound => "inbound",
        Direction::Outbound => "outbound",
        Direction::Both => "both",
    };
    let body = json!({"direction": direction, "enabled": enabled, "member": of.member, "all": of.all});
    print(ask(Method::POST, "handoff", &body.to_string(), common).await?, out)
}

/// What a node tells about the transfers in its cluster.
#[derive(Deserialize)]
struct Details {
    /// The name of the node that was asked.
    node: String,
    members: Vec<String>,
    unreachable: Vec<String>,
    transfers: Vec<Transfer>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Transfer {
    r#type: String,
    sender: String,
    receiver: String,
    partition: u32,
    n_val: u32,
    objects_compared: u64,
    objects_total: Option<u64>,
    bytes_sent: u64,
    bytes_per_second: Option<u64>,
    seconds_left: Option<u64>,
}

async fn details(of: &MemberArgs, common: &Common, out: Output) -> Result<(), Failure> {
    let answer = ask(Method::GET, "handoff-details", "", common).await?;
    let details: Details = serde_json::from_value(answer)
        .map_err(|e| Failure::new(format!("the node's answer is not understood: {e}")))?;
    let transfers = details.of(of)?;
    let json = json!({ "transfers": transfers, "unreachable": details.unreachable });
    out.result(&json, || details.text(&transfers))
}

impl Details {
    /// The transfers from or to the members that are asked for.
    fn of(&self, of: &MemberArgs) -> Result<Vec<Transfer>, Failure> {
        let name = of.member.as_ref().unwrap_or(&self.node);
        if !self.members.contains(name) {
            return Err(Failure::new(format!("Failed: '{name}' is not a member of the cluster.")));
        }
        let is_of = |transfer: &&Transfer| of.all || transfer.sender == *name || transfer.receiver == *name;
        Ok(self.transfers.iter().filter(is_of).cloned().collect())
    }

    fn text(&self, transfers: &[Transfer]) -> String {
        let mut lines = Vec::new();
        if transfers.is_empty() {
            lines.push("No ongoing transfers.".to_owned());
        } else {
            let rows: Vec<[String; 7]> = transfers.iter().map(Transfer::row).collect();
            lines.push("Type Key: O = Ownership, H = Hinted, Rz = Resize, Rp = Repair".into());
            lines.push(table(["Type", "Source:ID", "Target:ID", "Size", "Rate (KB/s)", "%", "Left (s)"], &rows));
        }
        if !self.unreachable.is_empty() {
            lines.push(format!("(unreachable): {}", self.unreachable.join(" ")));
        }
        lines.join("\n")
    }
}

impl Transfer {
    fn row(&self) -> [String; 7] {
        let kind = match self.r#type.as_str() {
            "ownership" => "O",
            "hinted" => "H",
            _ => "Rp",
        };
        let known = |number: Option<f64>| number.map_or_else(|| "--".to_owned(), |number| format!("{number:.2}"));
        let whole = |number: Option<u64>, unit: &str| number.map_or_else(|| "--".to_owned(), |n| format!("{n}{unit}"));
        let part = self.objects_total.map(|total| self.objects_compared as f64 * 100.0 / total.max(1) as f64);
        [
            kind.to_owned(),
            format!("{}:{}", self.sender, self.partition),
            format!("{}:{}", self.receiver, self.partition),
            whole(self.objects_total, " Objs"),
            known(self.bytes_per_second.map(|bytes| bytes as f64 / 1024.0)),
            known(part),
            whole(self.seconds_left, ""),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn details() -> Details {
        let transfer = |kind: &str, sender: &str, receiver: &str, total: Value| {
            json!({
                "type": kind, "sender": sender, "receiver": receiver, "partition": 7, "n_val": 3,
                "objects_compared": 100, "objects_total": total, "bytes_sent": 1, "bytes_per_second": 1536,
                "seconds_left": null, "since_secs": 0
            })
        };
        serde_json::from_value(json!({
            "node": "a@h",
            "members": ["a@h", "b@h", "c@h"],
            "unreachable": ["c@h"],
            "transfers": [
                transfer("ownership", "a@h", "b@h", json!(400)),
                transfer("owed", "b@h", "c@h", Value::Null),
            ],
        }))
        .unwrap()
    }

    #[test]
    fn details_are_those_of_the_members_that_are_asked_for() {
        let details = details();
        let of = |member: Option<&str>, all| {
            let args = MemberArgs { member: member.map(ToOwned::to_owned), all };
            details.of(&args).map(|found| found.len())
        };
        assert_eq!((of(None, false), of(Some("b@h"), false), of(Some("c@h"), false)), (Ok(1), Ok(2), Ok(1)));
        assert_eq!(of(None, true), Ok(2));
        assert_eq!(of(Some("d@h"), false).unwrap_err().message, "Failed: 'd@h' is not a member of the cluster.");
    }

    #[test]
    fn details_have_riaks_words() {
        let details = details();
        let expected = "\
Type Key: O = Ownership, H = Hinted, Rz = Resize, Rp = Repair
+----+---------+---------+--------+-----------+-----+--------+
|Type|Source:ID|Target:ID|  Size  |Rate (KB/s)|  %  |Left (s)|
+----+---------+---------+--------+-----------+-----+--------+
| O  |  a@h:7  |  b@h:7  |400 Objs|   1.50    |25.00|   --   |
| Rp |  b@h:7  |  c@h:7  |   --   |   1.50    | --  |   --   |
+----+---------+---------+--------+-----------+-----+--------+
(unreachable): c@h";
        assert_eq!(details.text(&details.transfers), expected);
        assert_eq!(details.text(&[]), "No ongoing transfers.\n(unreachable): c@h");
    }
}
