//! Hooks before a put.

use crate::counts::{HookCounts, is_timeout, reached_limit, took_too_long};
use crate::opened::OpenFunctions;
use crate::owner;
use ombak_functions::{Calls, FunctionError, Lane, LookupError};
use ombak_kv::hooks::HookedKey;
use ombak_mapreduce::{Input, object_from_json, object_to_json};
use ombak_script::{ErrorKind, PreCommit, ScriptError};
use ombak_types::error::PrecommitReason;
use ombak_types::props::Hook;
use ombak_types::{Error, Object, ShownKey};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;
use tracing::warn;

/// The longest reason of a hook that a client gets, in bytes.
const REASON_BYTES_MAX: usize = 4096;

/// Runs hooks in their order. Each gets what the one before gave.
pub(crate) async fn run_all(
    functions: &OpenFunctions,
    counts: &Arc<HookCounts>,
    at: HookedKey,
    hooks: Vec<Hook>,
    mut object: Object,
    until: Instant,
) -> Result<Object, Error> {
    for hook in hooks {
        let name = match hook {
            Hook::Named(name) => name,
            Hook::ModFun { module, function } => return Err(missing(format!("{module},{function}"))),
        };
        object = run(functions, counts, &at, &name, object, until).await?;
    }
    Ok(object)
}

/// What a hook did, before it is known what becomes of the put.
enum Outcome {
    Put(Object),
    Fail(Option<Value>),
    Broken(ScriptError),
    /// It was not called, because it is suspended.
    Suspended,
    /// It gave something back that is not the object.
    Invalid(String),
    /// The object has no JSON.
    NoJson(String),
}

async fn run(
    functions: &OpenFunctions,
    counts: &Arc<HookCounts>,
    at: &HookedKey,
    name: &str,
    object: Object,
    until: Instant,
) -> Result<Object, Error> {
    let function = match functions.get(Lane::PreCommit, name) {
        Ok(function) => function,
        Err(LookupError::Script(_) | LookupError::AnonymousNotAllowed) => return Err(missing(name.to_owned())),
    };
    if !counts.admits(&at.bucket, name) {
        return Err(Error::Overload);
    }
    let input = Input::new(at.bucket.clone(), at.key.clone());
    let owner = owner(&at.bucket, name);
    let (counts_there, name_there) = (counts.clone(), name.to_owned());
    let work = move |calls: &mut Calls<'_>| match counts_there.is_suspended(&input.bucket, &name_there) {
        // It was suspended while this put waited.
        true => Outcome::Suspended,
        false => outcome(calls, &input, &object),
    };
    let done = function.run(&owner, until, work).await;
    let (is_timeout, reached_limit) = match &done {
        Ok(Outcome::Broken(why)) => (is_timeout(why), is_timeout(why)),
        Ok(_) => (false, false),
        Err(why) => (took_too_long(why), reached_limit(why)),
    };
    counts.pre_timeouts.add(u64::from(is_timeout));
    if reached_limit {
        counts.note_limit(&at.bucket, name);
    }
    let done = match done {
        Ok(done) => done,
        Err(FunctionError::Script(why)) => Outcome::Broken(why),
        Err(FunctionError::Busy | FunctionError::Displaced) => return Err(Error::Overload),
        Err(FunctionError::Stopped) => return Err(Error::Stopping),
        Err(FunctionError::Late) => return Err(Error::Timeout),
        Err(why) => return Err(broken(at, name, &why.to_string())),
    };
    match done {
        Outcome::Put(object) => Ok(object),
        Outcome::Fail(reason) => Err(refused(reason)),
        Outcome::Broken(why) => match why.kind {
            ErrorKind::UnknownFunction => Err(missing(name.to_owned())),
            ErrorKind::Result => Err(invalid(at, name, &why.to_string())),
            _ => Err(broken(at, name, &why.to_string())),
        },
        Outcome::Invalid(why) => Err(invalid(at, name, &why)),
        Outcome::NoJson(why) => Err(broken(at, name, &why)),
        Outcome::Suspended => Err(Error::Overload),
    }
}

/// Calls the hook. This runs on a thread of the pool, together with the work on the object's JSON.
fn outcome(calls: &mut Calls<'_>, input: &Input, object: &Object) -> Outcome {
    let json = match object_to_json(input, object) {
        Ok(json) => json,
        Err(why) => return Outcome::NoJson(why.to_string()),
    };
    match calls.pre_commit(&json) {
        Ok(PreCommit::Put(value)) => match object_from_json(input, object, &value) {
            Ok(object) => Outcome::Put(object),
            Err(why) => Outcome::Invalid(why.to_string()),
        },
        Ok(PreCommit::Fail(reason)) => Outcome::Fail(reason),
        Err(why) => Outcome::Broken(why),
    }
}

/// The refusal by a hook that said so.
fn refused(reason: Option<Value>) -> Error {
    Error::PrecommitFail(reason.map(|reason| match reason {
        Value::String(text) => PrecommitReason::HookSaid(shortened(text)),
        other => {
            let mut term = String::new();
            write_term(&other, &mut term);
            PrecommitReason::HookReturned(shortened(term))
        }
    }))
}

fn missing(hook: String) -> Error {
    Error::PrecommitFail(Some(PrecommitReason::HookMissing(hook)))
}

/// The refusal because a hook broke down, as Riak gives it: without a reason. The log has it.
fn broken(at: &HookedKey, name: &str, why: &str) -> Error {
    let ShownKey { bucket_type, bucket, key } = ShownKey::in_bucket(&at.bucket, &at.key);
    warn!(hook = name, %bucket_type, %bucket, %key, why, "a pre-commit hook failed, and so did its put");
    Error::PrecommitFail(None)
}

/// The refusal because a hook gave back something else than an object.
fn invalid(at: &HookedKey, name: &str, why: &str) -> Error {
    let ShownKey { bucket_type, bucket, key } = ShownKey::in_bucket(&at.bucket, &at.key);
    warn!(hook = name, %bucket_type, %bucket, %key, why, "a pre-commit hook gave back no object");
    let mut term = String::from("{invalid_return,");
    write_term(&Value::String(name.to_owned()), &mut term);
    term.push('}');
    Error::PrecommitFail(Some(PrecommitReason::HookReturned(term)))
}

/// A JSON value as Erlang prints the term of Riak's JSON library.
fn write_term(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        // Writing to a text does not fail.
        Value::Number(number) => drop(write!(out, "{number}")),
        Value::String(text) => drop(write!(out, "<<{}>>", Value::String(text.clone()))),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_term(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push_str("{struct,[");
            for (index, (name, item)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "{" } else { ",{" });
                write_term(&Value::String(name.clone()), out);
                out.push(',');
                write_term(item, out);
                out.push('}');
            }
            out.push_str("]}");
        }
    }
}

/// A text of at most [`REASON_BYTES_MAX`].
fn shortened(mut text: String) -> String {
    let mut end = text.len().min(REASON_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
