//! The resource about keys that this node cannot read and that nothing has replaced.

use super::key_decision::{DECIDE_KEYS, SHOW_KEYS, blocking, decision, version_json};
use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::http::Part::Word;
use ombak_repair::{UnreadableReport, UnreadableVersion};
use serde::Deserialize;
use serde_json::{Value, json};

/// The paths of this resource.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"unreadable-keys")], SHOW_KEYS, |call| Box::pin(list(call.ctx))),
    AdminPath::post(&[Word(b"unreadable-keys")], DECIDE_KEYS, |call| Box::pin(decide(call.ctx, call.body))),
];

/// Maximum number of keys in an answer.
const LISTED_MAX: usize = 1_000;

/// What becomes of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Drop,
}

/// The keys.
async fn list(ctx: &AdminContext) -> Result<Value, AdminError> {
    let report = blocking(ctx, |repair| Ok(repair.unreadable_report(LISTED_MAX))).await?;
    Ok(report_json(&report))
}

/// Gives keys up.
async fn decide(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let (Action::Drop, choice) = decision(body, r#""drop""#)?;
    tracing::info!(%choice, "an operator gives up keys that cannot be read");
    let dropped = blocking(ctx, move |repair| repair.drop_unreadable(&choice)).await?;
    Ok(json!({ "dropped": dropped }))
}

fn report_json(report: &UnreadableReport) -> Value {
    let key = |version: &UnreadableVersion| {
        let more = json!({
            "hint": version.is_hint,
            "failed_repairs": version.failures,
        });
        version_json((&version.bucket, &version.key, version.partition), more)
    };
    json!({ "keys": report.versions.iter().map(key).collect::<Vec<_>>(), "more": report.more })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_repair::KeyChoice;
    use ombak_types::Bucket;

    #[test]
    fn keys_can_only_be_dropped() {
        let decided = decision::<Action>(br#"{"action":"drop","bucket":"b"}"#, "");
        assert_eq!(decided, Ok((Action::Drop, KeyChoice::Bucket(Bucket::untyped("b")))));
        let refused = decision::<Action>(br#"{"action":"push","all":true}"#, r#""drop""#);
        assert!(matches!(refused, Err(AdminError::BadRequest(why)) if why.contains(r#"{"action": "drop", and"#)));
    }
}
