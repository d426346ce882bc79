//! What operators decide about some keys of a node.

use super::{AdminContext, AdminError};
use crate::access::Permission;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ombak_repair::{KeyChoice, Repair};
use ombak_types::{Bucket, Error};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The permission to see such keys.
pub(super) const SHOW_KEYS: Permission = Permission::named("ombak_admin.keys");
/// The permission to decide about them.
pub(super) const DECIDE_KEYS: Permission = Permission::named("ombak_admin.decide_keys");

/// A name: text, or bytes that are no text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Name {
    Text(String),
    Bytes { base64: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision<A> {
    action: A,
    #[serde(default)]
    all: bool,
    bucket_type: Option<Name>,
    bucket: Option<Name>,
    key: Option<Name>,
}

/// Reads the body of a decision. `actions` says in the refusal of a malformed one which there are.
pub(super) fn decision<A: DeserializeOwned>(body: &[u8], actions: &str) -> Result<(A, KeyChoice), AdminError> {
    let malformed = |why: &dyn std::fmt::Display| {
        AdminError::BadRequest(format!(
            r#"the body must be {{"action": {actions}, and "all": true, or "bucket": "…" with "bucket_type" and "key" if wanted}}: {why}"#
        ))
    };
    let Decision { action, all, bucket_type, bucket, key } = serde_json::from_slice(body).map_err(|e| malformed(&e))?;
    let bytes = |name| bytes_of(name).map_err(|e| malformed(&e));
    let choice = match (all, bytes(bucket_type)?, bytes(bucket)?, bytes(key)?) {
        (true, None, None, None) => KeyChoice::All,
        (false, bucket_type, Some(name), key) => {
            let bucket = bucket_type.map_or_else(|| Bucket::untyped(name.clone()), |t| Bucket::typed(t, name.clone()));
            key.map_or_else(|| KeyChoice::Bucket(bucket.clone()), |key| KeyChoice::Key(bucket.clone(), key))
        }
        _ => return Err(malformed(&"name a bucket, or all keys")),
    };
    Ok((action, choice))
}

/// The bytes of a name, if there is one.
pub(super) fn bytes_of(name: Option<Name>) -> Result<Option<Bytes>, base64::DecodeError> {
    match name {
        None => Ok(None),
        Some(Name::Text(text)) => Ok(Some(Bytes::from(text))),
        Some(Name::Bytes { base64 }) => STANDARD.decode(base64).map(|raw| Some(Bytes::from(raw))),
    }
}

/// Runs work that walks over keys.
pub(super) async fn blocking<T: Send + 'static>(
    ctx: &AdminContext,
    work: impl FnOnce(&Repair) -> Result<T, Error> + Send + 'static,
) -> Result<T, AdminError> {
    let repair = Repair::of(&ctx.kv);
    let done = tokio::task::spawn_blocking(move || work(&repair)).await;
    done.map_err(|panic| AdminError::Failed(panic.to_string()))?.map_err(|e| AdminError::Failed(e.to_string()))
}

/// A version in an answer: where its key is, and the members of the object `more`.
pub(super) fn version_json((bucket, key, partition): (&Bucket, &[u8], u32), more: Value) -> Value {
    let mut version = json!({
        "bucket_type": name(&bucket.bucket_type),
        "bucket": name(&bucket.name),
        "key": name(key),
        "partition": partition,
    });
    if let (Value::Object(version), Value::Object(more)) = (&mut version, more) {
        version.extend(more);
    }
    version
}

/// A name in an answer: text, or bytes that are no text.
pub(super) fn name(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}
