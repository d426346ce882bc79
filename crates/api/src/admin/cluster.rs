//! The resources about the cluster: their paths, and the commands that requests name. What the
//! commands do is up to whoever runs the node.

use super::path::{AdminPath, ReadCommand};
use super::{AdminError, ClusterCommand, ExchangeWish, ForMembers, HandoffDirection};
use crate::access::Permission;
use crate::http::Part::{self, Word};
use serde::Deserialize;

const SHOW: Permission = Permission::named("ombak_admin.cluster");
const CHANGE: Permission = Permission::named("ombak_admin.change_cluster");
const CLUSTER: Part = Word(b"cluster");
/// The longest reason for a repair of a node. Each status repeats it.
const REASON_BYTES_MAX: usize = 1_000;

/// The paths of these resources.
pub(super) const PATHS: &[AdminPath] = &[
    change(&[CLUSTER, Word(b"join")], |body| Ok(ClusterCommand::Join(node(body)?))),
    change(&[CLUSTER, Word(b"rejoin")], rejoin),
    change(&[CLUSTER, Word(b"alone")], |_| Ok(ClusterCommand::Alone)),
    change(&[CLUSTER, Word(b"leave")], leave),
    change(&[CLUSTER, Word(b"force-remove")], |body| Ok(ClusterCommand::ForceRemove(node(body)?))),
    change(&[CLUSTER, Word(b"replace")], |body| replace(body, false)),
    change(&[CLUSTER, Word(b"force-replace")], |body| replace(body, true)),
    change(&[CLUSTER, Word(b"location")], location),
    change(&[CLUSTER, Word(b"plan")], |_| Ok(ClusterCommand::Plan)),
    change(&[CLUSTER, Word(b"commit")], commit),
    change(&[CLUSTER, Word(b"clear")], |_| Ok(ClusterCommand::Clear)),
    change(&[CLUSTER, Word(b"down")], |body| Ok(ClusterCommand::Down(node(body)?))),
    show(&[CLUSTER, Word(b"status")], |_| Ok(ClusterCommand::Status)),
    show(&[CLUSTER, Word(b"member-status")], |_| Ok(ClusterCommand::MemberStatus)),
    show(&[CLUSTER, Word(b"ring-status")], |_| Ok(ClusterCommand::RingStatus)),
    show(&[CLUSTER, Word(b"ring-ready")], |_| Ok(ClusterCommand::RingReady)),
    show(&[CLUSTER, Word(b"partitions")], |_| Ok(ClusterCommand::Partitions)),
    show(&[CLUSTER, Word(b"settled")], |_| Ok(ClusterCommand::Settled)),
    show(&[CLUSTER, Word(b"transfers")], |_| Ok(ClusterCommand::Transfers)),
    show(&[CLUSTER, Word(b"exchanges")], |_| Ok(ClusterCommand::Exchanges { members: ForMembers::This })),
    show(&[CLUSTER, Word(b"all-exchanges")], |_| Ok(ClusterCommand::Exchanges { members: ForMembers::All })),
    change(&[CLUSTER, Word(b"exchanges")], change_exchanges),
    show(&[CLUSTER, Word(b"handoff")], |_| Ok(ClusterCommand::Handoff)),
    show(&[CLUSTER, Word(b"handoff-summary")], |_| Ok(ClusterCommand::HandoffSummary)),
    show(&[CLUSTER, Word(b"handoff-details")], |_| Ok(ClusterCommand::HandoffDetails)),
    change(&[CLUSTER, Word(b"handoff")], set_handoff),
    show(&[CLUSTER, Word(b"transfer-limit")], |_| Ok(ClusterCommand::TransferLimit)),
    change(&[CLUSTER, Word(b"transfer-limit")], set_transfer_limit),
];

const fn show(parts: &'static [Part], read: ReadCommand) -> AdminPath {
    AdminPath::show_cluster(parts, SHOW, read)
}

const fn change(parts: &'static [Part], read: ReadCommand) -> AdminPath {
    AdminPath::change_cluster(parts, CHANGE, read)
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

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ExchangeAction {
    Suspend,
    Resume,
    SetInterval,
    StartNodeRepair,
    StopNodeRepair,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchanges {
    action: ExchangeAction,
    interval_ms: Option<u64>,
    reason: Option<String>,
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

fn node(body: &[u8]) -> Result<String, AdminError> {
    Ok(parsed::<Named>(body, r#"{"node": "…"}"#)?.node)
}

fn rejoin(body: &[u8]) -> Result<ClusterCommand, AdminError> {
    Ok(ClusterCommand::Rejoin(if body.is_empty() { None } else { Some(node(body)?) }))
}

fn leave(body: &[u8]) -> Result<ClusterCommand, AdminError> {
    if body.is_empty() {
        return Ok(ClusterCommand::Leave(None));
    }
    Ok(ClusterCommand::Leave(parsed::<Leaver>(body, r#"{"node": "…"} or empty"#)?.node))
}

fn replace(body: &[u8], forced: bool) -> Result<ClusterCommand, AdminError> {
    let Replacement { node, with } = parsed(body, r#"{"node": "…", "with": "…"}"#)?;
    Ok(ClusterCommand::Replace { node, with, forced })
}

fn location(body: &[u8]) -> Result<ClusterCommand, AdminError> {
    let Placed { location, node } = parsed(body, r#"{"location": "…"}, with "node" if wanted"#)?;
    Ok(ClusterCommand::Location { location, node })
}

fn commit(body: &[u8]) -> Result<ClusterCommand, AdminError> {
    if body.is_empty() {
        return Ok(ClusterCommand::Commit { accept_loss: false });
    }
    let Commit { accept_loss } = parsed(body, r#"{"accept_loss": true} or empty"#)?;
    Ok(ClusterCommand::Commit { accept_loss })
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

fn change_exchanges(body: &[u8]) -> Result<ClusterCommand, AdminError> {
    let form = r#"{"action": "suspend"|"resume"|"set-interval"|"start-node-repair"|"stop-node-repair", with "interval_ms" or "reason", "member": "…" or "all": true}"#;
    let Exchanges { action, interval_ms, reason, member, all } = parsed(body, form)?;
    let needless = || AdminError::BadRequest(format!("the body must be {form}"));
    let wanted = match (action, interval_ms, reason) {
        (ExchangeAction::Suspend, None, None) => ExchangeWish::Suspend,
        (ExchangeAction::Resume, None, None) => ExchangeWish::Resume,
        (ExchangeAction::SetInterval, Some(ms), None) => ExchangeWish::Interval(ms),
        (ExchangeAction::StartNodeRepair, None, reason) => {
            let reason = reason.unwrap_or_default();
            if reason.len() > REASON_BYTES_MAX {
                return Err(AdminError::BadRequest(format!("a reason has at most {REASON_BYTES_MAX} bytes")));
            }
            ExchangeWish::StartNodeRepair(reason)
        }
        (ExchangeAction::StopNodeRepair, None, _) => ExchangeWish::StopNodeRepair,
        _ => return Err(needless()),
    };
    Ok(ClusterCommand::ChangeExchanges { wanted, members: for_members(member, all)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    /// The command that a request for a resource of the cluster asks for; `None` if there is no
    /// such resource.
    fn command(is_post: bool, action: &[u8], body: &[u8]) -> Option<Result<ClusterCommand, AdminError>> {
        let method = if is_post { Method::POST } else { Method::GET };
        PATHS.iter().find(|path| path.matches(&method, &[b"cluster", action]))?.command(body)
    }

    #[test]
    fn requests_name_commands() {
        let named = br#"{"node":"10.0.0.1:8099"}"#;
        assert_eq!(command(true, b"join", named), Some(Ok(ClusterCommand::Join("10.0.0.1:8099".into()))));
        assert_eq!(command(true, b"rejoin", named), Some(Ok(ClusterCommand::Rejoin(Some("10.0.0.1:8099".into())))));
        assert_eq!(command(true, b"rejoin", b""), Some(Ok(ClusterCommand::Rejoin(None))));
        assert_eq!(command(true, b"alone", b""), Some(Ok(ClusterCommand::Alone)));
        assert_eq!(command(false, b"ring-ready", b""), Some(Ok(ClusterCommand::RingReady)));
        assert_eq!(command(false, b"partitions", b""), Some(Ok(ClusterCommand::Partitions)));
        assert_eq!(command(false, b"handoff-summary", b""), Some(Ok(ClusterCommand::HandoffSummary)));
        assert_eq!(command(false, b"handoff-details", b""), Some(Ok(ClusterCommand::HandoffDetails)));
        assert!(matches!(command(true, b"down", b"{}"), Some(Err(AdminError::BadRequest(_)))));
        assert_eq!(command(true, b"leave", b""), Some(Ok(ClusterCommand::Leave(None))));
        assert_eq!(command(true, b"leave", br#"{"node":"a@h"}"#), Some(Ok(ClusterCommand::Leave(Some("a@h".into())))));
        assert_eq!(
            command(true, b"force-remove", br#"{"node":"a@h"}"#),
            Some(Ok(ClusterCommand::ForceRemove("a@h".into())))
        );
        let expected = ClusterCommand::Replace { node: "a@h".into(), with: "b@h".into(), forced: true };
        assert_eq!(command(true, b"force-replace", br#"{"node":"a@h","with":"b@h"}"#), Some(Ok(expected)));
        assert!(matches!(command(true, b"replace", br#"{"node":"a@h"}"#), Some(Err(AdminError::BadRequest(_)))));
        let expected =
            |node: Option<&str>| ClusterCommand::Location { location: "r 1".into(), node: node.map(Into::into) };
        assert_eq!(command(true, b"location", br#"{"location":"r 1"}"#), Some(Ok(expected(None))));
        assert_eq!(command(true, b"location", br#"{"location":"r 1","node":"a@h"}"#), Some(Ok(expected(Some("a@h")))));
        assert!(matches!(command(true, b"location", br#"{"node":"a@h"}"#), Some(Err(AdminError::BadRequest(_)))));
        let commit = |accept_loss| Ok(ClusterCommand::Commit { accept_loss });
        assert_eq!(command(true, b"commit", b""), Some(commit(false)));
        assert_eq!(command(true, b"commit", b"{}"), Some(commit(false)));
        assert_eq!(command(true, b"commit", br#"{"accept_loss":true}"#), Some(commit(true)));
        assert!(matches!(command(true, b"commit", br#"{"accept":true}"#), Some(Err(AdminError::BadRequest(_)))));
        let body = br#"{"direction":"both","enabled":false,"all":true}"#;
        let members = ForMembers::All;
        let expected = ClusterCommand::SetHandoff { direction: HandoffDirection::Both, enabled: false, members };
        assert_eq!(command(true, b"handoff", body), Some(Ok(expected)));
        let members = ForMembers::Named("a@h".into());
        let expected = ClusterCommand::SetTransferLimit { limit: Some(4), bytes_per_second: None, members };
        assert_eq!(command(true, b"transfer-limit", br#"{"limit":4,"member":"a@h"}"#), Some(Ok(expected)));
        for body in [
            &br#"{"direction":"up","enabled":true}"#[..],
            br#"{"direction":"both"}"#,
            b"",
            br#"{"direction":"both","enabled":true,"member":"a","all":true}"#,
        ] {
            assert!(matches!(command(true, b"handoff", body), Some(Err(AdminError::BadRequest(_)))));
        }
        let change = |body| command(true, b"exchanges", body).unwrap();
        let expected = |wanted, members| Ok(ClusterCommand::ChangeExchanges { wanted, members });
        assert_eq!(change(br#"{"action":"suspend","all":true}"#), expected(ExchangeWish::Suspend, ForMembers::All));
        let set = br#"{"action":"set-interval","interval_ms":5000}"#;
        assert_eq!(change(set), expected(ExchangeWish::Interval(5_000), ForMembers::This));
        let long = format!(r#"{{"action":"start-node-repair","reason":"{}"}}"#, "x".repeat(REASON_BYTES_MAX + 1));
        assert!(matches!(change_exchanges(long.as_bytes()), Err(AdminError::BadRequest(_))));
        let start = br#"{"action":"start-node-repair","reason":"disk"}"#;
        assert_eq!(change(start), expected(ExchangeWish::StartNodeRepair("disk".into()), ForMembers::This));
        for body in [&br#"{"action":"set-interval"}"#[..], br#"{"action":"resume","interval_ms":5}"#, b"{}"] {
            assert!(matches!(change(body), Err(AdminError::BadRequest(_))));
        }
        let shown = ClusterCommand::Exchanges { members: ForMembers::All };
        assert_eq!(command(false, b"all-exchanges", b""), Some(Ok(shown)));
        for (is_post, action) in [(false, &b"commit"[..]), (true, b"status"), (true, b"settled")] {
            assert_eq!(command(is_post, action, b""), None);
        }
    }
}
