//! The commands of operators about the cluster, in Riak's words (docs/riak/semantics.md §16).

use super::cluster_text::{member_text, quoted, ring_text, status_text, with_text};
use super::{handoff_summary, partition_admin, transfer_admin};
use ombak_api::admin::{AdminError, ClusterAdmin, ClusterCommand};
use ombak_cluster::{ClusterError, MemberChange, MemberNode, RingReady, Unsettled};
use ombak_runtime::BoxFuture;
use serde_json::{Value, json};
use std::net::{SocketAddr, ToSocketAddrs};

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
    // The operator's next request may go through this node.
    member.wait_for_all_members_up().await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_agree_are_named() {
        let ready = ring_ready(&RingReady::Ready(vec!["a".into(), "b".into()]));
        assert_eq!(ready["text"], "TRUE All nodes agree on the ring ['a','b']");
    }
}
