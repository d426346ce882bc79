//! What the commands about transfers print, in Riak's words. The texts are made from what the
//! members have answered.

use super::cluster_text::{COLUMNS, quoted};
use super::transfer_progress::{TransferProgress, about};
use ombak_cluster::{ActiveTransfer, MemberTransfers, OfMember};
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The answers of all members.
pub(super) type Members = [OfMember<MemberTransfers>];

/// The width of the bar that shows how far a transfer is.
const BAR_COLUMNS: usize = 50;

/// `1 partition`, `2 partitions`.
fn counted(number: u64, what: &str) -> String {
    let plural = match what {
        "class" => "es",
        _ => "s",
    };
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}{plural}") }
}

/// A number of bytes with a unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", UNITS[unit]) }
}

fn rate(bytes_per_second: u64) -> String {
    if bytes_per_second == 0 { "no limit".into() } else { format!("{}/s", size(bytes_per_second)) }
}

pub(super) fn transfers_text(members: &Members, now_secs: u64) -> String {
    let mut lines = Vec::new();
    let down: Vec<String> = members.iter().filter(|of| of.answer.is_err()).map(|of| of.name.clone()).collect();
    if !down.is_empty() {
        lines.push(format!("Nodes [{}] are currently down.", quoted(&down)));
    }
    let names: BTreeMap<NodeId, &str> = members.iter().map(|of| (of.node, of.name.as_str())).collect();
    let name = |node: NodeId| names.get(&node).map_or_else(|| node.to_string(), |name| (*name).to_owned());
    let answered = || members.iter().filter_map(|of| Some((of, of.answer.as_ref().ok()?)));
    for (of, transfers) in answered() {
        lines.extend(waiting_lines(&of.name, transfers, &name));
    }
    let mut blocks = String::new();
    for (of, transfers) in answered() {
        for transfer in &transfers.active {
            blocks.push_str(&block(&of.name, transfers, transfer, &name, now_secs));
        }
    }
    if blocks.is_empty() {
        lines.push("No transfers active".into());
    } else {
        lines.push(format!("\nActive Transfers:\n{blocks}"));
    }
    lines.join("\n").trim_end().to_owned()
}

/// What waits on one member, and why it may wait for ever.
fn waiting_lines(of: &str, transfers: &MemberTransfers, name: &impl Fn(NodeId) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    if transfers.hinted_partitions > 0 {
        let partitions = counted(transfers.hinted_partitions, "partition");
        let held = if transfers.hinted_objects == 0 {
            "not counted yet".to_owned()
        } else {
            format!("about {}, {}", counted(transfers.hinted_objects, "object"), size(transfers.hinted_bytes))
        };
        lines.push(format!("'{of}' waiting to handoff {partitions} ({held})"));
    }
    for (what, count, list) in [
        ("must bring missed writes of", transfers.owed_marks, &transfers.owed),
        ("was asked to complete", transfers.ordered_transfers, &transfers.ordered),
    ] {
        let mut receivers: Vec<String> = list.iter().map(|missed| name(missed.node)).collect();
        receivers.sort();
        receivers.dedup();
        if count > 0 {
            lines.push(format!("'{of}' {what} {} to [{}]", counted(count, "class"), quoted(&receivers)));
        }
    }
    if transfers.filling_classes > 0 {
        let mut reasons: Vec<String> = transfers.filling.iter().map(|class| class.reason.replace('_', " ")).collect();
        reasons.sort();
        reasons.dedup();
        lines.push(format!(
            "'{of}' may lack something in {}, and compares them with the other primaries ({})",
            counted(transfers.filling_classes, "class"),
            reasons.join(", ")
        ));
    }
    match (transfers.outbound, transfers.inbound) {
        (true, true) => {}
        (false, true) => lines.push(format!("'{of}' hands nothing off: outbound handoff is disabled")),
        (true, false) => lines.push(format!("'{of}' takes nothing: inbound handoff is disabled")),
        (false, false) => lines.push(format!("'{of}' hands nothing off and takes nothing: handoff is disabled")),
    }
    if transfers.transfer_limit == 0 {
        lines.push(format!("'{of}' begins no transfers: its transfer limit is 0"));
    }
    lines
}

/// One transfer that is under way.
fn block(
    sender: &str,
    of: &MemberTransfers,
    transfer: &ActiveTransfer,
    name: &impl Fn(NodeId) -> String,
    now_secs: u64,
) -> String {
    let kind = match transfer.kind.as_str() {
        "hinted" => "hinted",
        "ownership" => "ownership",
        "owed" => "repair (missed writes)",
        "exchange" => "repair (exchange)",
        _ => "repair (comparison)",
    };
    let progress = TransferProgress::of(of, transfer, now_secs);
    let objects = match progress.objects_total {
        Some(total) => format!("{} of about {total}", transfer.objects_compared),
        None => transfer.objects_compared.to_string(),
    };
    let speed = progress.bytes_per_second.map_or_else(String::new, |speed| format!(", {}/s", size(speed)));
    let mut text = format!(
        "\ntransfer type: {kind}\npartition: {} (n_val {})\nstarted: {} s ago\nobjects compared: {objects}\n\
         bytes sent: {}{speed}\ntime left: {}\n\n  '{sender}' ====> '{}'\n",
        transfer.partition,
        transfer.n_val,
        progress.running_ms / 1000,
        size(transfer.bytes_sent),
        progress.secs_left.map_or_else(|| "not known".to_owned(), about),
        name(transfer.receiver),
    );
    if let Some(part) = progress.part(transfer) {
        let filled = (part * BAR_COLUMNS as f64) as usize;
        // Writing into a string does not fail.
        let _ = writeln!(text, "  |{:<BAR_COLUMNS$}| {:>3}%", "#".repeat(filled), (part * 100.0) as u64);
    }
    text
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

pub(super) fn handoff_text(members: &Members) -> String {
    let width = members.iter().map(|of| of.name.len()).max().unwrap_or(0).max(4);
    let mut text = format!("{:<width$}  outbound  inbound  transfer limit  rate", "node");
    for of in members {
        let _ = match &of.answer {
            Ok(now) => write!(
                text,
                "\n{:<width$}  {:<8}  {:<7}  {:<14}  {}",
                of.name,
                on_or_off(now.outbound),
                on_or_off(now.inbound),
                now.transfer_limit,
                rate(now.bytes_per_second)
            ),
            Err(_) => write!(text, "\n{:<width$}  does not answer", of.name),
        };
    }
    text
}

/// Riak's words for a limit that was set.
pub(super) fn limit_said(limit: Option<u64>, for_all: bool, changed: &Members) -> String {
    match (limit, changed) {
        (None, _) => String::new(),
        (Some(limit), [of]) if !for_all => format!("Set transfer limit for '{}' to {limit}\n\n", of.name),
        (Some(limit), _) => format!("Setting transfer limit to {limit} across the cluster\n\n"),
    }
}

pub(super) fn limit_text(members: &Members) -> String {
    let rule = "-".repeat(COLUMNS);
    let mut text = format!("{:=^COLUMNS$}\nLimit       Rate            Node\n{rule}", " Transfer Limit ");
    for of in members {
        let _ = match &of.answer {
            Ok(now) => {
                write!(text, "\n{:>5}       {:<14}  '{}'", now.transfer_limit, rate(now.bytes_per_second), of.name)
            }
            Err(_) => write!(text, "\n(offline)                   '{}'", of.name),
        };
    }
    let _ = write!(
        text,
        "\n{rule}\nA node works on so many partitions at the same time. 'ombak admin transfer-limit LIMIT' sets\n\
         the limit of all nodes, and 'ombak admin transfer-limit NODE LIMIT' that of one, until they stop."
    );
    text
}
