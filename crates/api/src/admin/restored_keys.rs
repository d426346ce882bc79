//! The resource about keys that only a restored store of this node has, and about the copies that
//! exchanges have dropped.

use super::key_decision::{DECIDE_KEYS, SHOW_KEYS, blocking, decision, version_json};
use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::http::Part::Word;
use ombak_repair::{DroppedReport, DroppedVersion, SetAsideReport, SetAsideVersion};
use serde::Deserialize;
use serde_json::{Value, json};

/// The paths of this resource.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"restored-keys")], SHOW_KEYS, |call| Box::pin(list(call.ctx))),
    AdminPath::post(&[Word(b"restored-keys")], DECIDE_KEYS, |call| Box::pin(decide(call.ctx, call.body))),
];

/// Maximum number of keys in an answer.
const LISTED_MAX: usize = 1_000;
/// What can be decided.
const ACTIONS: &str = r#""push"|"drop"|"push-dropped""#;

/// What becomes of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Push,
    Drop,
    PushDropped,
}

/// The keys.
async fn list(ctx: &AdminContext) -> Result<Value, AdminError> {
    let reports =
        blocking(ctx, |repair| Ok((repair.set_aside_report(LISTED_MAX)?, repair.dropped_report(LISTED_MAX)?)));
    let (report, dropped) = reports.await?;
    let mut json = report_json(&report);
    json["dropped_copies"] = dropped_json(&dropped);
    Ok(json)
}

/// Pushes keys to the other nodes, or drops them.
async fn decide(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let (action, choice) = decision(body, ACTIONS)?;
    tracing::info!(?action, %choice, "an operator decides about keys of a restored store, or about dropped copies");
    let decided = blocking(ctx, move |repair| match action {
        Action::Push => repair.push_set_aside(&choice),
        Action::Drop => repair.drop_set_aside(&choice),
        Action::PushDropped => repair.push_dropped(&choice),
    });
    let decided = decided.await?;
    Ok(match action {
        Action::Push | Action::PushDropped => json!({ "pushed": decided }),
        Action::Drop => json!({ "dropped": decided }),
    })
}

fn report_json(report: &SetAsideReport) -> Value {
    let key = |version: &SetAsideVersion| {
        let more = json!({
            "bytes": version.bytes,
            "last_modified_secs": version.last_modified.map(|at| at.secs()),
            "compared": version.is_compared,
        });
        version_json((&version.bucket, &version.key, version.partition), more)
    };
    json!({
        "keys": report.versions.iter().map(key).collect::<Vec<_>>(),
        "more": report.more,
        "compared": report.compared,
    })
}

fn dropped_json(report: &DroppedReport) -> Value {
    let copy = |version: &DroppedVersion| {
        let more = json!({
            "bytes": version.bytes,
            "dropped_secs": version.dropped_at.secs(),
            "tombstone": version.is_tombstone,
            "held": version.is_held,
        });
        version_json((&version.bucket, &version.key, version.partition), more)
    };
    json!({ "copies": report.versions.iter().map(copy).collect::<Vec<_>>(), "more": report.more })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ombak_repair::KeyChoice;
    use ombak_types::Bucket;

    fn decision(body: &[u8]) -> Result<(Action, KeyChoice), AdminError> {
        super::decision(body, ACTIONS)
    }

    #[test]
    fn a_decision_names_what_it_is_about() {
        let key = KeyChoice::Key(Bucket::typed("t", "b"), Bytes::from_static(b"\xff"));
        let body = br#"{"action":"push","bucket_type":"t","bucket":"b","key":{"base64":"/w=="}}"#;
        assert_eq!(decision(body), Ok((Action::Push, key)));
        assert_eq!(decision(br#"{"action":"push-dropped","all":true}"#), Ok((Action::PushDropped, KeyChoice::All)));
        let bucket = KeyChoice::Bucket(Bucket::untyped("b"));
        assert_eq!(decision(br#"{"action":"drop","bucket":"b"}"#), Ok((Action::Drop, bucket)));
        assert_eq!(decision(br#"{"action":"drop","all":true}"#), Ok((Action::Drop, KeyChoice::All)));
        for body in [
            &br#"{"action":"drop"}"#[..],
            br#"{"action":"drop","key":"k"}"#,
            br#"{"action":"drop","all":true,"bucket":"b"}"#,
            br#"{"action":"keep","all":true}"#,
            br#"{"action":"push","bucket":{"base64":"%"}}"#,
            b"",
        ] {
            assert!(matches!(decision(body), Err(AdminError::BadRequest(_))), "{}", String::from_utf8_lossy(body));
        }
    }
}
