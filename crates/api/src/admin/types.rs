//! The resources for bucket types: create, update, activate, reset, show.

use super::path::{AdminCall, AdminPath};
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::{self, Name, Word};
use ombak_kv::BucketRegistry;
use ombak_kv::buckets::{PropsError, TypeStatus};
use ombak_types::PropMap;
use ombak_types::json::{Json, member};
use serde_json::{Value, json};

const SHOW: Permission = Permission::named("ombak_admin.bucket_types");
const CHANGE: Permission = Permission::named("ombak_admin.change_bucket_types");
const TYPES: Part = Word(b"bucket-types");

/// The paths of these resources.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[TYPES], SHOW, |call| Box::pin(async move { Ok(list(call.ctx)) })),
    AdminPath::get(&[TYPES, Name], SHOW, |call| Box::pin(async move { describe(call.ctx, call.name()) })),
    AdminPath::post(&[TYPES, Name, Word(b"create")], CHANGE, |call| Box::pin(change(call, Action::Create))),
    AdminPath::post(&[TYPES, Name, Word(b"update")], CHANGE, |call| Box::pin(change(call, Action::Update))),
    AdminPath::post(&[TYPES, Name, Word(b"activate")], CHANGE, |call| Box::pin(change(call, Action::Activate))),
    AdminPath::post(&[TYPES, Name, Word(b"reset")], CHANGE, |call| Box::pin(change(call, Action::Reset))),
    // Every other action is unknown.
    AdminPath::post(&[TYPES, Name, Name], SHOW, |call| {
        Box::pin(async move { Err(call.no_such_action("bucket type")) })
    }),
];

/// A change of a bucket type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Create,
    Update,
    Activate,
    Reset,
}

/// All types with their status.
fn list(ctx: &AdminContext) -> Value {
    let types = ctx.kv.buckets().list_types();
    let entries: Vec<Value> =
        types.iter().map(|t| json!({"name": text(&t.name), "status": status_word(t.status)})).collect();
    json!({ "bucket_types": entries })
}

/// One type with its status and properties.
fn describe(ctx: &AdminContext, name: &[u8]) -> Result<Value, AdminError> {
    let (status, props) =
        ctx.kv.buckets().type_status(name).ok_or_else(|| AdminError::NoSuchType(text(name).into_owned()))?;
    Ok(json!({"name": text(name), "status": status_word(status), "props": props}))
}

/// Changes a type. The change runs on a blocking thread, and is on disk when this function returns.
async fn change(call: AdminCall<'_>, action: Action) -> Result<Value, AdminError> {
    let (ctx, name) = (call.ctx, call.name());
    let props = match action {
        Action::Create | Action::Update => props_of(call.body)?,
        Action::Activate | Action::Reset => PropMap::new(),
    };
    let (kv, owned_name) = (ctx.kv.clone(), name.to_vec());
    let done = tokio::task::spawn_blocking(move || apply(kv.buckets(), &owned_name, action, &props)).await;
    match done {
        Ok(Ok(())) => describe(ctx, name),
        Ok(Err(PropsError::NoType)) => Err(AdminError::NoSuchType(text(name).into_owned())),
        Ok(Err(error @ PropsError::Storage(_))) => Err(AdminError::Failed(error.to_string())),
        Ok(Err(PropsError::Invalid(errors))) => Err(AdminError::Refused(errors.to_lines())),
        Ok(Err(error)) => Err(AdminError::Refused(error.to_string())),
        Err(panic) => Err(AdminError::Failed(panic.to_string())),
    }
}

fn apply(buckets: &BucketRegistry, name: &[u8], action: Action, props: &PropMap) -> Result<(), PropsError> {
    match action {
        Action::Create => buckets.create_type(name, props),
        Action::Update => buckets.update_type(name, props),
        Action::Activate => buckets.activate_type(name),
        Action::Reset => buckets.reset_type(name),
    }
}

/// Reads the properties from `{"props":{…}}`. Errors have Riak's wording (docs/riak/semantics.md
/// §16).
fn props_of(body: &[u8]) -> Result<PropMap, AdminError> {
    let Ok(Json::Object(outer)) = Json::read(body) else {
        return Err(AdminError::BadRequest("invalid json".into()));
    };
    match member(&outer, "props").cloned().map(Json::into_value) {
        Some(Value::Object(props)) => Ok(props),
        _ => Err(AdminError::BadRequest("no props field found in json".into())),
    }
}

const fn status_word(status: TypeStatus) -> &'static str {
    match status {
        TypeStatus::Active => "active",
        TypeStatus::Ready => "ready",
        TypeStatus::Created => "created",
    }
}

fn text(name: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_come_in_an_envelope() {
        assert_eq!(props_of(br#"{"props":{"n_val":2}}"#).map(|p| p.len()), Ok(1));
        for (body, words) in [
            (&b"{"[..], "invalid json"),
            (b"[]", "invalid json"),
            (b"", "invalid json"),
            (b"{}", "no props field found in json"),
            (br#"{"props":7}"#, "no props field found in json"),
        ] {
            assert_eq!(props_of(body), Err(AdminError::BadRequest(words.into())), "{}", text(body));
        }
    }
}
