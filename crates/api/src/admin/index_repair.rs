//! The resource about the repair of index entries (`repair-2i`).

use super::key_decision::blocking;
use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::Word;
use ombak_repair::{INDEX_REPAIR_SPEED_MAX, IndexRepairState, IndexRepairStatus};
use serde::Deserialize;
use serde_json::{Value, json};

const SHOW: Permission = Permission::named("ombak_admin.index_repair");
const CHANGE: Permission = Permission::named("ombak_admin.change_index_repair");

/// The paths of this resource.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"index-repair")], SHOW, |call| Box::pin(show(call.ctx))),
    AdminPath::post(&[Word(b"index-repair")], CHANGE, |call| Box::pin(change(call.ctx, call.body))),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Start,
    Kill,
    SetSpeed,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    action: Action,
    /// None: all of this node.
    #[serde(default)]
    partitions: Vec<u32>,
    speed: Option<u32>,
}

async fn show(ctx: &AdminContext) -> Result<Value, AdminError> {
    blocking(ctx, |repair| Ok(status_json(&repair.index_repair_status()))).await
}

async fn change(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let Wanted { action, partitions, speed } = wanted(body)?;
    let done = blocking(ctx, move |repair| {
        let (chosen, is_done) = match action {
            Action::Start => {
                let chosen = repair.start_index_repair(&partitions, speed.unwrap_or(INDEX_REPAIR_SPEED_MAX))?;
                let is_done = chosen.is_some();
                (chosen.unwrap_or_default(), is_done)
            }
            Action::Kill => (Vec::new(), repair.kill_index_repair()),
            Action::SetSpeed => (Vec::new(), repair.set_index_repair_speed(speed.unwrap_or(INDEX_REPAIR_SPEED_MAX))),
        };
        let mut answer = status_json(&repair.index_repair_status());
        answer["done"] = json!(is_done);
        answer["chosen"] = json!(chosen);
        Ok(answer)
    });
    done.await
}

fn wanted(body: &[u8]) -> Result<Wanted, AdminError> {
    let form = r#"the body must be {"action": "start", with "partitions" and "speed" if wanted}, {"action": "kill"} or {"action": "set-speed", "speed": …}"#;
    let malformed = |why: String| AdminError::BadRequest(format!("{form}: {why}"));
    let wanted: Wanted = serde_json::from_slice(body).map_err(|why| malformed(why.to_string()))?;
    match wanted {
        Wanted { speed: Some(speed), .. } if speed > INDEX_REPAIR_SPEED_MAX => {
            Err(malformed(format!("a speed is from 0 to {INDEX_REPAIR_SPEED_MAX}")))
        }
        Wanted { action: Action::SetSpeed, speed: None, .. } => Err(malformed("the speed is missing".into())),
        Wanted { action: Action::Kill | Action::SetSpeed, ref partitions, .. } if !partitions.is_empty() => {
            Err(malformed("there is one repair, of all of its partitions".into()))
        }
        wanted => Ok(wanted),
    }
}

fn status_json(status: &IndexRepairStatus) -> Value {
    let state = match status.state {
        IndexRepairState::Never => "never",
        IndexRepairState::Running => "running",
        IndexRepairState::Finished => "finished",
        IndexRepairState::Killed => "killed",
    };
    let failures = status.failures.iter().map(|(partition, why)| json!({ "partition": partition, "why": why }));
    json!({
        "state": state,
        "partitions": status.partitions,
        "finished": status.finished,
        "speed": status.speed,
        "scanned": status.visited,
        "added": status.lacking,
        "removed": status.surplus,
        "failures": failures.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_three_actions() {
        let start =
            |partitions: &[u32], speed| Wanted { action: Action::Start, partitions: partitions.to_vec(), speed };
        assert_eq!(wanted(br#"{"action":"start"}"#), Ok(start(&[], None)));
        assert_eq!(wanted(br#"{"action":"start","partitions":[0,17],"speed":50}"#), Ok(start(&[0, 17], Some(50))));
        assert!(wanted(br#"{"action":"kill"}"#).is_ok() && wanted(br#"{"action":"set-speed","speed":0}"#).is_ok());
        for wrong in [
            &b""[..],
            br#"{"action":"set-speed"}"#,
            br#"{"action":"start","speed":101}"#,
            br#"{"action":"kill","partitions":[1]}"#,
            br#"{"action":"status"}"#,
        ] {
            assert!(matches!(wanted(wrong), Err(AdminError::BadRequest(why)) if why.contains("set-speed")));
        }
    }

    #[test]
    fn a_status_has_what_was_mended() {
        let status = IndexRepairStatus {
            state: IndexRepairState::Running,
            partitions: 64,
            finished: 3,
            speed: 100,
            visited: 9,
            lacking: 2,
            surplus: 1,
            failures: vec![(7, "closed".into())],
        };
        let shown = status_json(&status);
        assert_eq!((&shown["state"], &shown["added"], &shown["removed"]), (&json!("running"), &json!(2), &json!(1)));
        assert_eq!(shown["failures"], json!([{ "partition": 7, "why": "closed" }]));
    }
}
