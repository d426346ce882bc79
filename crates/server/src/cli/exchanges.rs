//! The commands `ombak admin aae-status`, `tictacaae` and `node repair`. The node words the
//! answers, but for those about one setting.

use super::args::Common;
use super::cluster::{ask, print, show};
use super::exchange_args::{NodeRepairCommand, OnMembers, TictacaaeCommand};
use super::failure::Failure;
use super::kept_trees;
use super::output::Output;
use hyper::Method;
use serde_json::{Value, json};

/// Prints what exchanges have done.
pub async fn status(common: &Common, out: Output) -> Result<(), Failure> {
    show("exchanges", common, out).await
}

/// Runs a command about a setting.
pub async fn tictacaae(command: &TictacaaeCommand, common: &Common, out: Output) -> Result<(), Failure> {
    match command {
        TictacaaeCommand::Suspend { of } => change(json!({ "action": "suspend" }), of, common, out).await,
        TictacaaeCommand::Resume { of } => change(json!({ "action": "resume" }), of, common, out).await,
        TictacaaeCommand::Exchangetick { interval_ms: Some(ms), of } => {
            change(json!({ "action": "set-interval", "interval_ms": ms }), of, common, out).await
        }
        TictacaaeCommand::Exchangetick { interval_ms: None, of } => {
            let members = members(of, common).await?;
            let shown = members.iter().map(|member| {
                json!({ "name": member["name"], "state": member["state"], "exchangetick": member["interval_ms"] })
            });
            let line = |member: &Value| match member["interval_ms"].as_u64() {
                _ if member["up"] != true => no_answer(member),
                Some(ms) if member["state"] != "off" => format!("exchangetick on {} is {ms}", name(member)),
                _ => format!("tictacaae not active on {}", name(member)),
            };
            let text = members.iter().map(line).collect::<Vec<_>>().join("\n");
            out.result(&json!({ "members": shown.collect::<Vec<_>>() }), || text)
        }
        TictacaaeCommand::Treestatus { show, .. } => kept_trees::show(show, common, out).await,
        TictacaaeCommand::RebuildNow { of } => kept_trees::rebuild(0, of, common, out).await,
        TictacaaeCommand::RebuildSoon { delay, of } => kept_trees::rebuild(*delay, of, common, out).await,
    }
}

/// Begins, shows or ends the repair of a node.
pub async fn node_repair(command: &NodeRepairCommand, common: &Common, out: Output) -> Result<(), Failure> {
    match command {
        NodeRepairCommand::Start { reason, of } => {
            change(json!({ "action": "start-node-repair", "reason": reason }), of, common, out).await
        }
        NodeRepairCommand::Stop { of, .. } => change(json!({ "action": "stop-node-repair" }), of, common, out).await,
        NodeRepairCommand::Status { of, .. } => {
            let members = members(of, common).await?;
            let fields = ["name", "up", "state", "node_repair", "left_of_round", "exchanges_in_round"];
            let shown = members.iter().map(|member| {
                let fields = fields.iter().map(|field| ((*field).to_owned(), member[*field].clone()));
                Value::Object(fields.collect())
            });
            let text = members.iter().map(repair_line).collect::<Vec<_>>().join("\n");
            out.result(&json!({ "members": shown.collect::<Vec<_>>() }), || text)
        }
    }
}

fn repair_line(member: &Value) -> String {
    let name = name(member);
    match (member["up"] == true, member["node_repair"].as_str()) {
        (false, _) => no_answer(member),
        (true, None) => format!("No active node repairs on {name}"),
        (true, Some(reason)) => format!(
            "Node repair is under way on {name} ({reason}): {} of {} exchanges are left",
            member["left_of_round"], member["exchanges_in_round"]
        ),
    }
}

/// The line about a member that has told nothing.
fn no_answer(member: &Value) -> String {
    format!("{}: {}", name(member), member["why"].as_str().unwrap_or("it does not answer"))
}

fn name(member: &Value) -> &str {
    member["name"].as_str().unwrap_or_default()
}

/// What the members tell that a command is for.
async fn members(of: &OnMembers, common: &Common) -> Result<Vec<Value>, Failure> {
    let path = if of.member.is_some() { "all-exchanges" } else { "exchanges" };
    let mut answer = ask(Method::GET, path, "", common).await?;
    let mut members = match answer["members"].take() {
        Value::Array(members) => members,
        _ => Vec::new(),
    };
    if let Some(wanted) = of.member.as_deref().filter(|member| *member != "all") {
        members.retain(|member| name(member) == wanted);
        if members.is_empty() {
            return Err(Failure::new(format!("Failed: '{wanted}' is not a member of the cluster.")));
        }
    }
    Ok(members)
}

async fn change(mut body: Value, of: &OnMembers, common: &Common, out: Output) -> Result<(), Failure> {
    match of.member.as_deref() {
        None => {}
        Some("all") => body["all"] = json!(true),
        Some(name) => body["member"] = json!(name),
    }
    print(ask(Method::POST, "exchanges", &body.to_string(), common).await?, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_is_told_in_riaks_words() {
        let none = json!({ "name": "a@h", "up": true, "node_repair": null });
        assert_eq!(repair_line(&none), "No active node repairs on a@h");
        let some = json!({
            "name": "a@h", "up": true, "node_repair": "disk", "left_of_round": 3, "exchanges_in_round": 9
        });
        assert_eq!(repair_line(&some), "Node repair is under way on a@h (disk): 3 of 9 exchanges are left");
        assert_eq!(repair_line(&json!({ "name": "b@h", "up": false })), "b@h: it does not answer");
        let failed = json!({ "name": "b@h", "up": false, "why": "it has an earlier version" });
        assert_eq!(repair_line(&failed), "b@h: it has an earlier version");
    }
}
