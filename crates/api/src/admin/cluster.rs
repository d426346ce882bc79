//! The resources about the cluster. What they do is up to whoever runs the node.

use super::AdminError;
use ombak_runtime::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

/// A command about the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterCommand {
    /// Joins the cluster of the node with this address.
    Join(String),
    /// Stages that this node takes the place of the member with its name or address. The cluster is
    /// that of the node with this address; `None`: of a peer of the configuration.
    Rejoin(Option<String>),
    /// Lets a new node go on as a cluster of its own.
    Alone,
    /// Stages the leave of a member, given by its name; `None`: of the node that is asked.
    Leave(Option<String>),
    /// Stages the removal of a member without its data.
    ForceRemove(String),
    /// Stages that a node that joins takes the place of a member.
    Replace {
        /// The member.
        node: String,
        /// The node that joins.
        with: String,
        /// Whether nobody gets the data of the member.
        forced: bool,
    },
    /// Stages that a node is at a location.
    Location {
        /// The name of the location.
        location: String,
        /// The node; `None`: the one that is asked.
        node: Option<String>,
    },
    /// Plans the staged changes.
    Plan,
    /// Carries out the plan that was shown last.
    Commit {
        /// Whether it is carried out also if it destroys data.
        accept_loss: bool,
    },
    /// Drops the staged changes.
    Clear,
    /// Marks a member, given by its name, as down.
    Down(String),
    /// Shows the members, and what is staged.
    Status,
    /// Shows the members.
    MemberStatus,
    /// Shows who carries out changes, and who cannot be reached.
    RingStatus,
    /// Shows whether all members agree on the ring.
    RingReady,
    /// Shows what members have still to bring to where it belongs.
    Settled,
    /// Shows the partitions of each member.
    Partitions,
    /// Shows what members hold for others, what they owe, and what is being transferred.
    Transfers,
    /// Shows which transfers are allowed.
    Handoff,
    /// Counts the transfers of each member.
    HandoffSummary,
    /// Shows each transfer that is under way.
    HandoffDetails,
    /// Allows or forbids transfers in a direction.
    SetHandoff {
        /// Which direction.
        direction: HandoffDirection,
        /// Whether they are allowed.
        enabled: bool,
        /// Of which members.
        members: ForMembers,
    },
    /// Shows how much may be transferred at the same time.
    TransferLimit,
    /// Sets how much may be transferred at the same time.
    SetTransferLimit {
        /// How many classes and partitions are worked on at the same time; `None`: as before.
        limit: Option<u64>,
        /// How many bytes a member pushes in a second; `None`: as before.
        bytes_per_second: Option<u64>,
        /// Of which members.
        members: ForMembers,
    },
}

/// A direction of transfers, as a node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandoffDirection {
    /// Copies that other nodes push.
    Inbound,
    /// Copies that the node pushes.
    Outbound,
    /// Both.
    Both,
}

/// The members that a command is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForMembers {
    /// The member that is asked.
    This,
    /// All members.
    All,
    /// The member with this name.
    Named(String),
}

/// Carries out commands about the cluster of a node. Each answer has a text for people in its field
/// `text`.
pub trait ClusterAdmin: Send + Sync {
    /// Carries out a command.
    fn run(&self, command: ClusterCommand) -> BoxFuture<'static, Result<Value, AdminError>>;

    /// What the status of the node says of its cluster; null if the node does not listen for
    /// others. It never waits.
    fn summary(&self) -> Value;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    node: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Leaver {
    node: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    node: String,
    with: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commit {
    #[serde(default)]
    accept_loss: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Placed {
    location: String,
    node: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Handoff {
    direction: HandoffDirection,
    enabled: bool,
    member: Option<String>,
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferLimit {
    limit: Option<u64>,
    bytes_per_second: Option<u64>,
    member: Option<String>,
    #[serde(default)]
    all: bool,
}

/// A body of this form. The error says what it should look like.
fn parsed<'a, T: Deserialize<'a>>(body: &'a [u8], form: &str) -> Result<T, AdminError> {
    serde_json::from_slice(body).map_err(|e| AdminError::BadRequest(format!("the body must be {form}: {e}")))
}

fn for_members(member: Option<String>, all: bool) -> Result<ForMembers, AdminError> {
    match (member, all) {
        (None, false) => Ok(ForMembers::This),
        (None, true) => Ok(ForMembers::All),
        (Some(name), false) => Ok(ForMembers::Named(name)),
        (Some(_), true) => Err(AdminError::BadRequest("name one member, or all of them".into())),
    }
}

fn set_handoff(body: &[u8]) -> Result<ClusterCommand, AdminError> {
    let form = r#"{"direction": "inbound"|"outbound"|"both", "enabled": …, "member": "…" or "all": true}"#;
    let Handoff { direction, enabled, member, all } = parsed(body, form)?;
    Ok(ClusterCommand::SetHandoff { direction, enabled, members: for_members(member, all)? })
}

fn set_transfer_limit(body: &[u8]) -> Result<ClusterCommand, AdminError> {
    let form = r#"{"limit": …, "bytes_per_second": …, "member": "…" or "all": true}"#;
    let TransferLimit { limit, bytes_per_second, member, all } = parsed(body, form)?;
    Ok(ClusterCommand::SetTransferLimit { limit, bytes_per_second, members: for_members(member, all)? })
}

/// The command that a request for a resource of the cluster asks for.
pub(super) fn command(is_post: bool, action: &[u8], body: &[u8]) -> Result<ClusterCommand, AdminError> {
    let node = || {
        let named: Named = parsed(body, r#"{"node": "…"}"#)?;
        Ok::<_, AdminError>(named.node)
    };
    let replace = |forced| {
        let Replacement { node, with } = parsed(body, r#"{"node": "…", "with": "…"}"#)?;
        Ok::<_, AdminError>(ClusterCommand::Replace { node, with, forced })
    };
    Ok(match (is_post, action) {
        (true, b"join") => ClusterCommand::Join(node()?),
        (true, b"rejoin") if body.is_empty() => ClusterCommand::Rejoin(None),
        (true, b"rejoin") => ClusterCommand::Rejoin(Some(node()?)),
        (true, b"alone") => ClusterCommand::Alone,
        (true, b"leave") if body.is_empty() => ClusterCommand::Leave(None),
        (true, b"leave") => ClusterCommand::Leave(parsed::<Leaver>(body, r#"{"node": "…"} or empty"#)?.node),
        (true, b"force-remove") => ClusterCommand::ForceRemove(node()?),
        (true, b"replace") => replace(false)?,
        (true, b"force-replace") => replace(true)?,
        (true, b"location") => {
            let Placed { location, node } = parsed(body, r#"{"location": "…"}, with "node" if wanted"#)?;
            ClusterCommand::Location { location, node }
        }
        (true, b"plan") => ClusterCommand::Plan,
        (true, b"commit") if body.is_empty() => ClusterCommand::Commit { accept_loss: false },
        (true, b"commit") => {
            let Commit { accept_loss } = parsed(body, r#"{"accept_loss": true} or empty"#)?;
            ClusterCommand::Commit { accept_loss }
        }
        (true, b"clear") => ClusterCommand::Clear,
        (true, b"down") => ClusterCommand::Down(node()?),
        (false, b"status") => ClusterCommand::Status,
        (false, b"member-status") => ClusterCommand::MemberStatus,
        (false, b"ring-status") => ClusterCommand::RingStatus,
        (false, b"ring-ready") => ClusterCommand::RingReady,
        (false, b"partitions") => ClusterCommand::Partitions,
        (false, b"settled") => ClusterCommand::Settled,
        (false, b"transfers") => ClusterCommand::Transfers,
        (false, b"handoff") => ClusterCommand::Handoff,
        (false, b"handoff-summary") => ClusterCommand::HandoffSummary,
        (false, b"handoff-details") => ClusterCommand::HandoffDetails,
        (true, b"handoff") => set_handoff(body)?,
        (false, b"transfer-limit") => ClusterCommand::TransferLimit,
        (true, b"transfer-limit") => set_transfer_limit(body)?,
        _ => {
            let method = if is_post { "POST" } else { "GET" };
            let action = String::from_utf8_lossy(action);
            return Err(AdminError::NoSuchResource(format!("{method} /admin/v1/cluster/{action}")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_commands() {
        let named = br#"{"node":"10.0.0.1:8099"}"#;
        assert_eq!(command(true, b"join", named), Ok(ClusterCommand::Join("10.0.0.1:8099".into())));
        assert_eq!(command(true, b"rejoin", named), Ok(ClusterCommand::Rejoin(Some("10.0.0.1:8099".into()))));
        assert_eq!(command(true, b"rejoin", b""), Ok(ClusterCommand::Rejoin(None)));
        assert_eq!(command(true, b"alone", b""), Ok(ClusterCommand::Alone));
        assert_eq!(command(false, b"ring-ready", b""), Ok(ClusterCommand::RingReady));
        assert_eq!(command(false, b"partitions", b""), Ok(ClusterCommand::Partitions));
        assert_eq!(command(false, b"handoff-summary", b""), Ok(ClusterCommand::HandoffSummary));
        assert_eq!(command(false, b"handoff-details", b""), Ok(ClusterCommand::HandoffDetails));
        assert!(matches!(command(true, b"down", b"{}"), Err(AdminError::BadRequest(_))));
        assert_eq!(command(true, b"leave", b""), Ok(ClusterCommand::Leave(None)));
        assert_eq!(command(true, b"leave", br#"{"node":"a@h"}"#), Ok(ClusterCommand::Leave(Some("a@h".into()))));
        assert_eq!(command(true, b"force-remove", br#"{"node":"a@h"}"#), Ok(ClusterCommand::ForceRemove("a@h".into())));
        let expected = ClusterCommand::Replace { node: "a@h".into(), with: "b@h".into(), forced: true };
        assert_eq!(command(true, b"force-replace", br#"{"node":"a@h","with":"b@h"}"#), Ok(expected));
        assert!(matches!(command(true, b"replace", br#"{"node":"a@h"}"#), Err(AdminError::BadRequest(_))));
        let expected =
            |node: Option<&str>| ClusterCommand::Location { location: "r 1".into(), node: node.map(Into::into) };
        assert_eq!(command(true, b"location", br#"{"location":"r 1"}"#), Ok(expected(None)));
        assert_eq!(command(true, b"location", br#"{"location":"r 1","node":"a@h"}"#), Ok(expected(Some("a@h"))));
        assert!(matches!(command(true, b"location", br#"{"node":"a@h"}"#), Err(AdminError::BadRequest(_))));
        let commit = |accept_loss| Ok(ClusterCommand::Commit { accept_loss });
        assert_eq!(command(true, b"commit", b""), commit(false));
        assert_eq!(command(true, b"commit", b"{}"), commit(false));
        assert_eq!(command(true, b"commit", br#"{"accept_loss":true}"#), commit(true));
        assert!(matches!(command(true, b"commit", br#"{"accept":true}"#), Err(AdminError::BadRequest(_))));
        let body = br#"{"direction":"both","enabled":false,"all":true}"#;
        let members = ForMembers::All;
        let expected = ClusterCommand::SetHandoff { direction: HandoffDirection::Both, enabled: false, members };
        assert_eq!(command(true, b"handoff", body), Ok(expected));
        let members = ForMembers::Named("a@h".into());
        let expected = ClusterCommand::SetTransferLimit { limit: Some(4), bytes_per_second: None, members };
        assert_eq!(command(true, b"transfer-limit", br#"{"limit":4,"member":"a@h"}"#), Ok(expected));
        for body in [
            &br#"{"direction":"up","enabled":true}"#[..],
            br#"{"direction":"both"}"#,
            b"",
            br#"{"direction":"both","enabled":true,"member":"a","all":true}"#,
        ] {
            assert!(matches!(command(true, b"handoff", body), Err(AdminError::BadRequest(_))));
        }
        for (is_post, action) in [(false, &b"commit"[..]), (true, b"status"), (true, b"settled")] {
            assert!(matches!(command(is_post, action, b""), Err(AdminError::NoSuchResource(_))));
        }
    }
}
