//! The resource about scrubbing: how far it has come, and what an operator wants of it.

use super::key_decision::blocking;
use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::Word;
use ombak_kv::{ScrubReport, ScrubbedStore};
use serde::Deserialize;
use serde_json::{Value, json};

const SHOW: Permission = Permission::named("ombak_admin.scrub");
const CHANGE: Permission = Permission::named("ombak_admin.change_scrub");

/// The paths of this resource.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"scrub")], SHOW, |call| Box::pin(show(call.ctx))),
    AdminPath::post(&[Word(b"scrub")], CHANGE, |call| Box::pin(change(call.ctx, call.body))),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Start,
    Pause,
    Resume,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    action: Action,
}

async fn show(ctx: &AdminContext) -> Result<Value, AdminError> {
    blocking(ctx, |repair| Ok(report_json(&repair.kv().scrub_report()))).await
}

async fn change(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let action = wanted(body)?;
    blocking(ctx, move |repair| {
        let kv = repair.kv();
        match action {
            Action::Start => kv.start_scrub()?,
            Action::Pause => kv.set_scrub_paused(true)?,
            Action::Resume => kv.set_scrub_paused(false)?,
        }
        Ok(report_json(&kv.scrub_report()))
    })
    .await
}

fn wanted(body: &[u8]) -> Result<Action, AdminError> {
    let read = serde_json::from_slice::<Wanted>(body);
    let expected = r#"the body must be {"action": "start"}, "pause" or "resume""#;
    read.map(|wanted| wanted.action).map_err(|why| AdminError::BadRequest(format!("{expected}: {why}")))
}

fn report_json(report: &ScrubReport) -> Value {
    // What is not limited has no number.
    let rate = Some(report.bytes_per_second).filter(|rate| *rate != u64::MAX);
    json!({
        "state": report.state.word(),
        "bytes_per_second": rate,
        "interval_secs": report.interval.as_secs(),
        "round_began_secs": report.round_began_secs,
        "next_round_secs": report.next_round_secs,
        "bytes_read": report.bytes_read,
        "stores": report.stores.iter().map(store_json).collect::<Vec<_>>(),
    })
}

fn store_json(store: &ScrubbedStore) -> Value {
    json!({
        "partition": store.partition,
        "last_full_secs": store.last_full_secs,
        "done": store.is_done,
        "round_bytes": store.bytes_read,
        "bytes": store.bytes,
        "damaged": store.damaged,
        "obsolete": store.obsolete,
        "places": store.places,
        "repaired": store.repaired,
        "waiting": store.waiting,
        "not_repairable": store.not_repairable,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_kv::ScrubState;
    use std::time::Duration;

    #[test]
    fn there_are_three_actions() {
        assert_eq!(wanted(br#"{"action":"start"}"#), Ok(Action::Start));
        assert_eq!(wanted(br#"{"action":"pause"}"#), Ok(Action::Pause));
        assert_eq!(wanted(br#"{"action":"resume"}"#), Ok(Action::Resume));
        for wrong in [&b""[..], b"{}", br#"{"action":"stop"}"#, br#"{"action":"start","all":true}"#] {
            assert!(matches!(wanted(wrong), Err(AdminError::BadRequest(why)) if why.contains("resume")));
        }
    }

    #[test]
    fn a_rate_without_a_limit_has_no_number() {
        let report = ScrubReport {
            state: ScrubState::Reading,
            bytes_per_second: u64::MAX,
            interval: Duration::from_secs(60),
            round_began_secs: Some(5),
            next_round_secs: None,
            bytes_read: 7,
            stores: vec![ScrubbedStore { partition: 3, damaged: 2, ..ScrubbedStore::default() }],
        };
        let shown = report_json(&report);
        assert_eq!((&shown["state"], &shown["bytes_per_second"]), (&json!("reading"), &Value::Null));
        assert_eq!((&shown["stores"][0]["partition"], &shown["stores"][0]["damaged"]), (&json!(3), &json!(2)));
    }
}
