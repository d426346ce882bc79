//! The commands of operators about the cluster, in Riak's words (docs/riak/semantics.md §16).

use super::cluster_text::{member_text, quoted, ring_text, status_text, with_text};
use super::settlement_text::settlement_answer;
use super::{cluster_warnings, exchange_admin, handoff_summary, names, partition_admin, transfer_admin};
use crate::config::HostPort;
use ombak_api::admin::{AdminError, ClusterAdmin, ClusterCommand};
use ombak_cluster::{ClusterError, Losses, MemberChange, MemberNode, RingReady, Staging, TransferChange};
use ombak_runtime::BoxFuture;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What a command that would destroy data asks of the operator.
const ACCEPT_LOSS: &str = "If members that have the data can come back, start them, wait until 'ombak admin cluster \
                           settled' names nothing but the members to be removed, and plan again.\nTo destroy it nevertheless: 'ombak admin cluster commit --accept-loss'.";

/// How long a command tries one of several addresses of a host.
const TRY_MAX: Duration = Duration::from_secs(2);

/// Carries out commands on a member.
pub struct MemberAdmin(pub MemberNode);

impl ClusterAdmin for MemberAdmin {
    fn run(&self, command: ClusterCommand) -> BoxFuture<'static, Result<Value, AdminError>> {
        let member = self.0.clone();
        Box::pin(async move {
            match command {
                ClusterCommand::Join(to) => join(&member, &to).await,
                ClusterCommand::Rejoin(to) => rejoin(&member, to.as_deref()).await,
                ClusterCommand::Alone => {
                    member.go_on_alone().await.map_err(refused)?;
                    let me = member.kv().node_name();
                    Ok(json!({"node": me, "text": format!("Success: '{me}' goes on as a cluster of its own")}))
                }
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
                ClusterCommand::Commit { accept_loss } => {
                    commit(&member, accept_loss).await?;
                    Ok(committed(cluster_warnings::of_deciders(&member.deciders())))
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
                ClusterCommand::RingReady => match member.removed() {
                    Some(removed) => Ok(json!({"ring_ready": false, "text": format!("FALSE {removed}")})),
                    None => Ok(ring_ready(&member.ring_ready().await)),
                },
                ClusterCommand::Settled => {
                    let mut answer = settlement_answer(&member.settlement().await);
                    if let Some(removed) = member.removed() {
                        (answer["settled"], answer["text"]) = (json!(false), json!(format!("FALSE {removed}")));
                    }
                    Ok(answer)
                }
                ClusterCommand::Partitions => {
                    let members = member.transfers().await;
                    Ok(partition_admin::partitions(&member.kv().ring(), &members, member.kv().node_name()))
                }
                ClusterCommand::Transfers => {
                    let (members, change) = (member.transfers().await, member.ring_change().await);
                    Ok(transfer_admin::transfers(&members, change.as_ref()))
                }
                ClusterCommand::Exchanges { members } => {
                    let found = exchange_admin::ask(&member, &members, None).await?;
                    Ok(exchange_admin::status(&found))
                }
                ClusterCommand::ChangeExchanges { wanted, members } => {
                    let changed = exchange_admin::ask(&member, &members, Some(&wanted)).await?;
                    exchange_admin::changed(&changed, &wanted)
                }
                ClusterCommand::Handoff => Ok(transfer_admin::handoff(&member.transfers().await)),
                ClusterCommand::HandoffSummary => {
                    Ok(handoff_summary::summary(&member.transfers().await, &member.changing_homes()))
                }
                ClusterCommand::HandoffDetails => {
                    Ok(transfer_admin::details(&member.transfers().await, member.kv().node_name()))
                }
                ClusterCommand::SetHandoff { direction, enabled, members } => {
                    let change = transfer_admin::handoff_change(direction, enabled);
                    let changed = transfer_admin::change_transfers(&member, members.clone(), change).await?;
                    Ok(transfer_admin::handoff_was_set(&changed, &members))
                }
                ClusterCommand::TransferLimit => Ok(transfer_admin::limits(&member.transfers().await)),
                ClusterCommand::SetTransferLimit { limit, bytes_per_second, members } => {
                    let change =
                        TransferChange { transfer_limit: limit, bytes_per_second, ..TransferChange::default() };
                    let changed = transfer_admin::change_transfers(&member, members.clone(), change).await?;
                    Ok(transfer_admin::limit_was_set(&changed, &members, limit))
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
        other if other.lacks_votes() => AdminError::Failed(format!(
            "{other}; if members that decide do not answer, 'ombak admin cluster settled' names them"
        )),
        other => AdminError::Failed(other.to_string()),
    }
}

async fn join(member: &MemberNode, to: &str) -> Result<Value, AdminError> {
    let address = resolve(member, to).await?;
    let other = member.join(address).await.map_err(refused)?;
    // The operator's next request may go through this node.
    member.wait_for_all_members_up().await;
    let me = member.kv().node_name();
    let warnings = cluster_warnings::of_members(member).await;
    let text = format!("Success: staged join request for '{me}' to '{other}'");
    let text = std::iter::once(&text).chain(&warnings).map(String::as_str).collect::<Vec<_>>().join("\n");
    Ok(json!({"node": me, "joins": other, "warnings": warnings, "text": text}))
}

async fn rejoin(member: &MemberNode, to: Option<&str>) -> Result<Value, AdminError> {
    let address = match to {
        Some(to) => Some(resolve(member, to).await?),
        None => None,
    };
    let lost = member.rejoin(address).await.map_err(refused)?;
    // The operator's next request may go through this node.
    member.wait_for_all_members_up().await;
    Ok(json!({
        "node": member.kv().node_name(),
        "replaces": lost,
        "text": format!("Success: staged forced replacement of '{lost}' with this node, whose directory is new"),
    }))
}

async fn stage(member: &MemberNode, change: MemberChange) -> Result<Value, AdminError> {
    let Staging { text, is_withdrawal } = member.stage_for_operator(&change).await.map_err(refused)?;
    let (action, node, with) = match change {
        MemberChange::Leave(node) => ("leave", node, None),
        MemberChange::ForceRemove(node) => ("force-remove", node, None),
        MemberChange::Replace { node, with } => ("replace", node, Some(with)),
        MemberChange::ForceReplace { node, with } => ("force-replace", node, Some(with)),
        MemberChange::SetLocation { node, location } => {
            return Ok(json!({ "staged": "set-location", "node": node, "location": location, "text": text }));
        }
    };
    Ok(json!({ "staged": action, "node": node, "with": with, "withdrawn": is_withdrawal, "text": text }))
}

/// The address of the peer listener of a node, from `HOST:PORT` or `NAME@HOST:PORT`. Of several
/// addresses of a host, it is the first one at which a node of this cluster's kind answers.
async fn resolve(member: &MemberNode, to: &str) -> Result<SocketAddr, AdminError> {
    let refused = |why: String| {
        AdminError::BadRequest(format!(
            "{to}: {why}; name the address on which a member listens for other nodes (listener.peer), such as \
             10.0.0.1:8099 or node-1.example:8099"
        ))
    };
    let host = to.rsplit_once('@').map_or(to, |(_, host)| host);
    let host = HostPort::parse(host).map_err(refused)?;
    let found = names::addresses(&host, Some(member.node().listens_on().ip())).await.map_err(refused)?;
    if let [one] = found.as_slice() {
        return Ok(*one);
    }
    for address in &found {
        let deadline = Instant::now() + TRY_MAX;
        if member.node().transport().identify(*address, deadline).await.is_ok() {
            return Ok(*address);
        }
    }
    found.first().copied().ok_or_else(|| refused("the name has no address".into()))
}

async fn plan(member: &MemberNode) -> Result<Value, AdminError> {
    let Some(shown) = member.plan().await.map_err(refused)? else {
        return Ok(json!({"plan": null, "text": "There are no staged changes"}));
    };
    let losses = member.losses(&shown.plan).await.map_err(refused)?;
    let mut text = shown.text();
    match losses.is_any() {
        true => text = format!("{text}{}\n{ACCEPT_LOSS}\n", losses.text()),
        false if losses.untold.is_empty() => {}
        false => text = format!("{text}{}\n", losses.text()),
    }
    let warnings = cluster_warnings::of_members(member).await;
    for warning in &warnings {
        text = format!("{text}{warning}\n");
    }
    let losses = losses_json(&losses);
    Ok(json!({"plan": shown.plan, "names": shown.names, "losses": losses, "warnings": warnings, "text": text}))
}

async fn commit(member: &MemberNode, accept_loss: bool) -> Result<(), AdminError> {
    if accept_loss {
        return member.commit_accepting_loss().await.map_err(refused);
    }
    member.commit().await.map_err(|why| match why {
        ClusterError::DestroysData(losses) => {
            AdminError::Refused(format!("Failed: nothing was committed.\n{}\n{ACCEPT_LOSS}", losses.text()))
        }
        other => refused(other),
    })
}

fn committed(warning: Option<String>) -> Value {
    let text = "Cluster changes committed";
    let text = warning.as_ref().map_or_else(|| text.to_owned(), |warning| format!("{text}\n{warning}"));
    json!({"committed": true, "warnings": Vec::from_iter(warning), "text": text})
}

/// What a plan would destroy; null if that is nothing.
fn losses_json(losses: &Losses) -> Value {
    if !losses.is_any() && losses.untold.is_empty() {
        return Value::Null;
    }
    let classes = losses.partitions.iter().map(|(n_val, partitions)| json!({"n_val": n_val, "partitions": partitions}));
    json!({
        "partitions_without_full_replica": losses.partition_count(),
        "classes": classes.collect::<Vec<_>>(),
        "silent_members": losses.silent,
        "bytes_held_for_others": losses.held_for_others,
        "partitions_not_looked_at": losses.may_hold_for_others,
        "unreadable_keys": losses.unreadable,
        "members_that_told_nothing": losses.untold,
    })
}

pub(super) fn ring_ready(ready: &RingReady) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_agree_are_named() {
        let ready = ring_ready(&RingReady::Ready(vec!["a".into(), "b".into()]));
        assert_eq!(ready["text"], "TRUE All nodes agree on the ring ['a','b']");
    }
}
