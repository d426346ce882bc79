//! The resources for the schemas of search: list, upload and show.

use super::path::{AdminCall, AdminPath};
use super::search::{CHANGE, SEARCH, SHOW, name, read, run, search_of};
use super::{AdminContext, AdminError};
use crate::http::Part::{self, Name, Word};
use serde::Deserialize;
use serde_json::{Value, json};

const SCHEMAS: Part = Word(b"schemas");

/// The paths of these resources.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[SEARCH, SCHEMAS], SHOW, |call| Box::pin(async move { list(call.ctx) })),
    AdminPath::get(&[SEARCH, SCHEMAS, Name], SHOW, |call| Box::pin(async move { describe(call.ctx, &name(&call)) })),
    AdminPath::post(&[SEARCH, SCHEMAS, Name, Word(b"upload")], CHANGE, |call| Box::pin(upload(call))),
    // Every other action is unknown.
    AdminPath::post(&[SEARCH, SCHEMAS, Name, Name], SHOW, |call| {
        Box::pin(async move { Err(call.no_such_action("schema")) })
    }),
];

/// The audit log has the length of a source only.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Upload {
    source: String,
}

/// All schemas, without their texts.
fn list(ctx: &AdminContext) -> Result<Value, AdminError> {
    let schemas = search_of(ctx)?.schemas().into_iter();
    let schemas: Vec<Value> = schemas.map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
    Ok(json!({ "schemas": schemas }))
}

/// A schema with its text.
fn describe(ctx: &AdminContext, name: &str) -> Result<Value, AdminError> {
    let source = search_of(ctx)?.schema(name).ok_or_else(|| AdminError::NoSuchSchema(name.to_owned()))?;
    Ok(json!({ "name": name, "bytes": source.len(), "source": String::from_utf8_lossy(&source) }))
}

/// Keeps a schema. The notes say what has another effect than in Solr.
async fn upload(call: AdminCall<'_>) -> Result<Value, AdminError> {
    let Upload { source } = read(call.body)?;
    let (name, bytes) = (name(&call), source.len());
    let kept = name.clone();
    let notes = run(call.ctx, &name, move |search| search.put_schema(&kept, source.as_bytes())).await?;
    Ok(json!({ "name": name, "bytes": bytes, "notes": notes }))
}
