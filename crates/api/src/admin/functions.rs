//! The resources for functions in JavaScript: create, delete, test, show. What compiles and runs
//! them is up to whoever runs the node.

use super::path::{AdminCall, AdminPath};
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::{self, Name, Word};
use ombak_kv::BucketRegistry;
use ombak_kv::buckets::PropsError;
use ombak_kv::buckets::{FunctionList, FunctionRecord, HookUser};
use ombak_runtime::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const SHOW: Permission = Permission::named("ombak_admin.functions");
const CHANGE: Permission = Permission::named("ombak_admin.change_functions");
const TEST: Permission = Permission::named("ombak_admin.test_functions");
const FUNCTIONS: Part = Word(b"functions");

/// The paths of these resources.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[FUNCTIONS], SHOW, |call| Box::pin(list(call.ctx))),
    AdminPath::get(&[FUNCTIONS, Name], SHOW, |call| Box::pin(describe(call.ctx, call.name()))),
    AdminPath::post(&[FUNCTIONS, Name, Word(b"create")], CHANGE, |call| Box::pin(create(call))),
    AdminPath::post(&[FUNCTIONS, Name, Word(b"delete")], CHANGE, |call| Box::pin(delete(call))),
    AdminPath::post(&[FUNCTIONS, Name, Word(b"test")], TEST, |call| Box::pin(test(call))),
    // Every other action is unknown.
    AdminPath::post(&[FUNCTIONS, Name, Name], SHOW, |call| {
        Box::pin(async move { Err(call.no_such_action("function")) })
    }),
];

/// How many buckets and bucket types an answer names that have a function as a hook.
const USERS_SHOWN_MAX: usize = 10;

/// As what a function is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionRole {
    /// A map function.
    Map,
    /// A reduce function.
    Reduce,
    /// A hook before a put.
    PreCommit,
    /// A hook after a put.
    PostCommit,
}

/// A test of a function.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionTest {
    /// As what the function is called.
    #[serde(rename = "as")]
    pub role: FunctionRole,
    /// What it gets: an object, or a list of values for a reduce function.
    pub input: Value,
    /// The argument of the phase, for map and reduce functions.
    #[serde(default)]
    pub arg: Value,
}

/// Compiles and runs functions.
pub trait FunctionAdmin: Send + Sync {
    /// Compiles the source of a function. The error says what is wrong with it.
    fn compile(&self, source: String) -> BoxFuture<'static, Result<(), AdminError>>;

    /// Calls the function with a name once, with the limits of the node. What the function gives,
    /// or how it failed, is in the answer.
    fn test(&self, name: String, test: FunctionTest) -> BoxFuture<'static, Result<Value, AdminError>>;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    source: String,
    #[serde(default)]
    replace: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Delete {
    #[serde(default)]
    force: bool,
}

/// All registered functions, and which hooks they are.
async fn list(ctx: &AdminContext) -> Result<Value, AdminError> {
    let (functions, users) = all(ctx).await?;
    let of = |name: &str| users.get(name).map(Vec::as_slice).unwrap_or_default();
    let entries = functions.iter().map(|(name, record)| entry(name, record, of(name)));
    Ok(json!({ "functions": entries.collect::<Vec<_>>() }))
}

/// One function with its source.
async fn describe(ctx: &AdminContext, name: &[u8]) -> Result<Value, AdminError> {
    let name = text(name);
    let (functions, users) = all(ctx).await?;
    let record = functions.get(&*name).ok_or_else(|| AdminError::NoSuchFunction(name.clone()))?;
    let mut entry = entry(&name, record, users.get(&name).map(Vec::as_slice).unwrap_or_default());
    entry["source"] = json!(&*record.source);
    Ok(entry)
}

/// All functions, and what names them. It looks at each bucket with properties of its own.
async fn all(ctx: &AdminContext) -> Result<FunctionList, AdminError> {
    let kv = ctx.kv.clone();
    let listed = tokio::task::spawn_blocking(move || kv.buckets().list_functions()).await;
    listed.map_err(|panic| AdminError::Failed(panic.to_string()))
}

async fn create(call: AdminCall<'_>) -> Result<Value, AdminError> {
    let (ctx, name, wanted) = (call.ctx, text(call.name()), read::<Create>(call.body)?);
    BucketRegistry::check_function(&name, &wanted.source).map_err(|why| refusal(&name, why))?;
    ctx.functions.compile(wanted.source.clone()).await?;
    let (kv, put) = (ctx.kv.clone(), name.clone());
    blocking(&name, move || kv.buckets().put_function(&put, &wanted.source, wanted.replace)).await?;
    describe(ctx, name.as_bytes()).await
}

async fn delete(call: AdminCall<'_>) -> Result<Value, AdminError> {
    let (ctx, name) = (call.ctx, text(call.name()));
    let wanted = if call.body.is_empty() { Delete::default() } else { read(call.body)? };
    let (kv, gone) = (ctx.kv.clone(), name.clone());
    blocking(&name, move || kv.buckets().delete_function(&gone, wanted.force)).await?;
    Ok(json!({ "name": name }))
}

async fn test(call: AdminCall<'_>) -> Result<Value, AdminError> {
    call.ctx.functions.test(text(call.name()), read(call.body)?).await
}

/// Runs a change on a blocking thread. It has been decided when this returns.
async fn blocking(
    name: &str,
    change: impl FnOnce() -> Result<(), PropsError> + Send + 'static,
) -> Result<(), AdminError> {
    match tokio::task::spawn_blocking(change).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(refusal(name, error)),
        Err(panic) => Err(AdminError::Failed(panic.to_string())),
    }
}

fn refusal(name: &str, error: PropsError) -> AdminError {
    match error {
        PropsError::NoFunction => AdminError::NoSuchFunction(name.to_owned()),
        PropsError::FunctionExists => {
            AdminError::Refused(format!("a function {name} is registered already; --replace replaces it"))
        }
        PropsError::FunctionUsed(users) => AdminError::Refused(format!(
            "the function {name} is a commit hook of {}; with --force it is deleted nevertheless",
            shown(&users).join(", ")
        )),
        PropsError::Storage(_) => AdminError::Failed(error.to_string()),
        PropsError::BadName(_) | PropsError::BadFunction(_) => AdminError::BadRequest(error.to_string()),
        error => AdminError::Refused(error.to_string()),
    }
}

fn entry(name: &str, record: &FunctionRecord, users: &[HookUser]) -> Value {
    let digest = format!("{:016x}", record.digest);
    json!({"name": name, "bytes": record.source.len(), "digest": digest, "hook_of": shown(users)})
}

/// The first users, in words.
fn shown(users: &[HookUser]) -> Vec<String> {
    let word = |user: &HookUser| match user {
        HookUser::Type(name) => format!("the bucket type {}", name.escape_ascii()),
        HookUser::Bucket(bucket) if bucket.is_default_type() => format!("the bucket {}", bucket.name.escape_ascii()),
        HookUser::Bucket(bucket) => {
            format!("the bucket {} of the type {}", bucket.name.escape_ascii(), bucket.bucket_type.escape_ascii())
        }
    };
    let more = users.len().saturating_sub(USERS_SHOWN_MAX);
    let more = (more > 0).then(|| format!("{more} more"));
    users.iter().take(USERS_SHOWN_MAX).map(word).chain(more).collect()
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, AdminError> {
    serde_json::from_slice(body).map_err(|why| AdminError::BadRequest(format!("invalid json: {why}")))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::Bucket;

    #[test]
    fn a_test_names_its_role_and_its_input() {
        let test: FunctionTest = read(br#"{"as":"precommit","input":{"key":"k"}}"#).unwrap();
        assert_eq!((test.role, test.arg), (FunctionRole::PreCommit, Value::Null));
        for wrong in [&br#"{"as":"hook","input":1}"#[..], br#"{"as":"map"}"#, br#"{"as":"map","input":1,"x":2}"#, b""] {
            assert!(matches!(read::<FunctionTest>(wrong), Err(AdminError::BadRequest(_))));
        }
    }

    #[test]
    fn many_users_are_counted() {
        let bucket = |number: usize| HookUser::Bucket(Bucket::untyped(format!("b{number}")));
        let users: Vec<HookUser> = (0..12).map(bucket).collect();
        let words = shown(&users);
        assert_eq!((words.len(), &*words[0], &*words[10]), (11, "the bucket b0", "2 more"));
        assert_eq!(shown(&[HookUser::Bucket(Bucket::typed("t", "b"))]), ["the bucket b of the type t"]);
        assert_eq!(shown(&users[..10]).len(), 10);
    }
}
