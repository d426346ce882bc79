//! The resources for the indexes of search: create, delete, rebuild, show how they stand.

use super::path::{AdminCall, AdminPath};
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::{self, Name, Word};
use crate::search::change;
use ombak_kv::buckets::PropsError;
use ombak_searching::{AdminError as SearchAdminError, IndexStatus, PartitionStatus, Search};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) const SHOW: Permission = Permission::named("ombak_admin.search");
pub(super) const CHANGE: Permission = Permission::named("ombak_admin.change_search");
pub(super) const SEARCH: Part = Word(b"search");
const INDEXES: Part = Word(b"indexes");

/// The paths of these resources.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[SEARCH, INDEXES], SHOW, |call| Box::pin(list(call.ctx))),
    AdminPath::get(&[SEARCH, INDEXES, Name], SHOW, |call| {
        Box::pin(async move { describe(call.ctx, &name(&call)).await })
    }),
    AdminPath::post(&[SEARCH, INDEXES, Name, Word(b"create")], CHANGE, |call| Box::pin(create(call))),
    AdminPath::post(&[SEARCH, INDEXES, Name, Word(b"delete")], CHANGE, |call| Box::pin(delete(call))),
    AdminPath::post(&[SEARCH, INDEXES, Name, Word(b"rebuild")], CHANGE, |call| Box::pin(rebuild(call))),
    // Every other action is unknown.
    AdminPath::post(&[SEARCH, INDEXES, Name, Name], SHOW, |call| {
        Box::pin(async move { Err(call.no_such_action("index")) })
    }),
];

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    schema: Option<String>,
    n_val: Option<u32>,
}

/// The name in a path such as `search/indexes/NAME`.
pub(super) fn name(call: &AdminCall<'_>) -> String {
    String::from_utf8_lossy(call.names.get(2).copied().unwrap_or_default()).into_owned()
}

/// The search of the node. The error says how it is switched on.
pub(super) fn search_of(ctx: &AdminContext) -> Result<&Arc<Search>, AdminError> {
    let off = "search is off on this node; search = on in its configuration turns it on when the node is started again";
    ctx.search.as_ref().ok_or_else(|| AdminError::Refused(off.to_owned()))
}

/// Reads a body.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, AdminError> {
    serde_json::from_slice(body).map_err(|why| AdminError::BadRequest(format!("invalid json: {why}")))
}

/// Carries out something about the index or schema with a name on a blocking thread.
pub(super) async fn run<T: Send + 'static>(
    ctx: &AdminContext,
    name: &str,
    run: impl FnOnce(&Search) -> Result<T, SearchAdminError> + Send + 'static,
) -> Result<T, AdminError> {
    change(search_of(ctx)?, run).await.map_err(|error| refusal(name, error))
}

fn refusal(name: &str, error: SearchAdminError) -> AdminError {
    match error {
        SearchAdminError::NotFound => AdminError::NoSuchIndex(name.to_owned()),
        SearchAdminError::NoSchema(schema) => AdminError::NoSuchSchema(schema),
        SearchAdminError::BadName(_) | SearchAdminError::BadNVal | SearchAdminError::BadSchema(_) => {
            AdminError::BadRequest(error.to_string())
        }
        SearchAdminError::Refused(PropsError::Storage(_)) => AdminError::Failed(error.to_string()),
        SearchAdminError::InUse(_) | SearchAdminError::Refused(_) => AdminError::Refused(error.to_string()),
    }
}

/// All indexes, and how they stand on this node.
async fn list(ctx: &AdminContext) -> Result<Value, AdminError> {
    let of_all = |search: &Search| {
        let indexes = search.indexes();
        Ok(indexes.iter().filter_map(|info| search.index_status(&info.name)).collect::<Vec<_>>())
    };
    let statuses = run(ctx, "", of_all).await?;
    Ok(json!({ "indexes": statuses.iter().map(status_json).collect::<Vec<_>>() }))
}

/// How one index stands on this node.
async fn describe(ctx: &AdminContext, name: &str) -> Result<Value, AdminError> {
    let asked = name.to_owned();
    let status = run(ctx, name, move |search| search.index_status(&asked).ok_or(SearchAdminError::NotFound)).await?;
    Ok(status_json(&status))
}

async fn create(call: AdminCall<'_>) -> Result<Value, AdminError> {
    let (ctx, name) = (call.ctx, name(&call));
    let Create { schema, n_val } = if call.body.is_empty() { Create::default() } else { read(call.body)? };
    let created = name.clone();
    run(ctx, &name, move |search| search.create_index(&created, schema.as_deref(), n_val)).await?;
    describe(ctx, &name).await
}

async fn delete(call: AdminCall<'_>) -> Result<Value, AdminError> {
    let (gone, name) = (name(&call), name(&call));
    run(call.ctx, &name, move |search| search.delete_index(&gone)).await?;
    Ok(json!({ "name": name }))
}

async fn rebuild(call: AdminCall<'_>) -> Result<Value, AdminError> {
    let (ctx, name) = (call.ctx, name(&call));
    let rebuilt = name.clone();
    run(ctx, &name, move |search| search.rebuild_index(&rebuilt)).await?;
    describe(ctx, &name).await
}

fn status_json(status: &IndexStatus) -> Value {
    let IndexStatus { info, builds: (answering, being_made), documents, bytes, partitions, last_error } = status;
    let partition = |status: &PartitionStatus| {
        let PartitionStatus { partition, lag_ms, is_being_read } = status;
        json!({ "partition": partition, "lag_ms": lag_ms, "is_being_read": is_being_read })
    };
    json!({
        "name": info.name,
        "schema": info.schema,
        "n_val": info.n_val,
        "build": answering,
        "next_build": being_made,
        "documents": documents,
        "bytes": bytes,
        "partitions": partitions.iter().map(partition).collect::<Vec<_>>(),
        "last_error": last_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_searching::IndexInfo;

    #[test]
    fn a_body_says_which_schema_an_index_has() {
        let read = |body: &str| read::<Create>(body.as_bytes());
        assert_eq!(read(r#"{"schema":"s","n_val":3}"#), Ok(Create { schema: Some("s".into()), n_val: Some(3) }));
        assert_eq!(read("{}"), Ok(Create::default()));
        assert!(read(r#"{"n":3}"#).is_err() && read("").is_err());
    }

    #[test]
    fn a_refused_change_has_a_kind_of_its_own() {
        let kind = |error| refusal("i", error).kind();
        assert_eq!(kind(SearchAdminError::NotFound), "no_such_index");
        assert_eq!(kind(SearchAdminError::NoSchema("s".into())), "no_such_schema");
        assert_eq!(kind(SearchAdminError::BadNVal), "bad_request");
        assert_eq!(kind(SearchAdminError::InUse("b".into())), "refused");
        assert_eq!(kind(SearchAdminError::Refused(PropsError::Storage("full".into()))), "failed");
        assert_eq!(kind(SearchAdminError::Refused(PropsError::Refused("no majority".into()))), "refused");
    }

    #[test]
    fn a_status_has_the_builds_and_the_partitions() {
        let status = IndexStatus {
            info: IndexInfo { name: "i".into(), schema: "s".into(), n_val: 3 },
            builds: (Some(0), Some(1)),
            documents: 7,
            bytes: 9,
            partitions: vec![PartitionStatus { partition: 2, lag_ms: None, is_being_read: true }],
            last_error: Some("full".into()),
        };
        let partitions = json!([{ "partition": 2, "lag_ms": null, "is_being_read": true }]);
        let expected = json!({"name": "i", "schema": "s", "n_val": 3, "build": 0, "next_build": 1, "documents": 7,
            "bytes": 9, "partitions": partitions, "last_error": "full"});
        assert_eq!(status_json(&status), expected);
    }
}
