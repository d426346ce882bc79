//! Parts of Riak's interface that this server does not have. They get a clear answer instead of a
//! bare 404.
//!
//! A feature that comes to exist registers its paths in a module of its own, and they leave this
//! one.

use crate::JobClass;
use crate::access::{Access, Permission};
use crate::http::context::HttpContext;
use crate::http::decision_graph::{self, READ_ONLY};
use crate::http::error_status::{self, RequestKind};
use crate::http::path::Part::{Name, Rest, Word};
use crate::http::path::{Call, Generation, Path, Serve};
use crate::http::reply::{self, Reply};
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::{Bucket, Error};

/// The paths of resources that do not exist here.
pub const PATHS: &[Path] = &[
    Path::plain("MapReduce", &[Word(b"mapred")], map_reduce),
    Path::plain("counter", &[Word(b"buckets"), Name, Word(b"counters"), Name], counter),
    Path::plain(
        "counter",
        &[Word(b"types"), Word(DEFAULT_TYPE), Word(b"buckets"), Name, Word(b"counters"), Name],
        counter,
    ),
    Path::new(
        "data type",
        Generation::Types,
        &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"datatypes")],
        Serve::Boxed(data_type),
    ),
    Path::new(
        "data type",
        Generation::Types,
        &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"datatypes"), Name],
        Serve::Boxed(data_type),
    ),
    Path::plain("queue", &[Word(b"queuename"), Name], queue),
    Path::plain("queue", &[Word(b"membership_request")], queue),
    Path::plain("queue", &[Word(b"rtq"), Rest], queue),
    Path::plain("queue", &[Word(b"riak-repl"), Rest], queue),
    Path::plain("anti-entropy fold", &[Word(b"cachedtrees"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"rangetrees"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"rangerepl"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"rangerepair"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"siblings"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"objectsizes"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"objectstats"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"tombs"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"reap"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"erase"), Rest], aae_fold),
    Path::plain("anti-entropy fold", &[Word(b"aaebucketlist"), Rest], aae_fold),
];

const GET_OR_POST: &str = "GET, POST";
const READ_OR_POST: &str = "GET, HEAD, POST";

fn map_reduce(call: Call<'_>) -> BoxFuture<'_, Reply> {
    refuse(call, READ_OR_POST, None, |call| match call.ctx.jobs.check(JobClass::MapReduce) {
        Err(error) => error_status::reply_for(&error, RequestKind::Other),
        Ok(()) => missing("MapReduce"),
    })
}

fn counter(call: Call<'_>) -> BoxFuture<'_, Reply> {
    refuse(call, GET_OR_POST, None, |_| missing("counters"))
}

fn data_type(call: Call<'_>) -> BoxFuture<'_, Reply> {
    let permission = if call.request.method == Method::POST { Permission::Put } else { Permission::Get };
    refuse(call, READ_OR_POST, Some(permission), |call| refuse_data_type(call.ctx, &call.bucket()))
}

fn queue(call: Call<'_>) -> BoxFuture<'_, Reply> {
    refuse(call, GET_OR_POST, None, |_| missing("replication"))
}

fn aae_fold(call: Call<'_>) -> BoxFuture<'_, Reply> {
    refuse(call, READ_ONLY, None, |_| missing("anti-entropy folds"))
}

/// Answers as the resource would if its feature existed, up to the point where the feature is
/// needed. A resource that reads properties of the bucket in its path names the permission for it.
fn refuse<'a>(
    call: Call<'a>,
    allow: &'static str,
    permission: Option<Permission>,
    answer: fn(&Call<'a>) -> Reply,
) -> BoxFuture<'a, Reply> {
    Box::pin(async move {
        let bucket = call.bucket();
        let access =
            permission.map(|permission| Access::to_bucket(permission, Some(&bucket.bucket_type), &bucket.name));
        match decision_graph::admit(call.ctx, call.request, allow, access).await {
            Err(refusal) => refusal,
            Ok(()) => answer(&call),
        }
    })
}

fn missing(what: &str) -> Reply {
    reply::text(StatusCode::NOT_IMPLEMENTED, format!("Not in this version: {what}\n"))
}

fn refuse_data_type(ctx: &HttpContext, bucket: &Bucket) -> Reply {
    if bucket.is_default_type() {
        let text = "Counters in the default bucket-type should use the legacy URL\n";
        return reply::text(StatusCode::MOVED_PERMANENTLY, text);
    }
    match ctx.kv.buckets().props(bucket) {
        Err(Error::NoType(_)) => {
            let name = String::from_utf8_lossy(&bucket.bucket_type);
            reply::text(StatusCode::NOT_FOUND, format!("Unknown bucket type: {name}\n"))
        }
        Err(error) => error_status::reply_for(&error, RequestKind::Other),
        Ok(props) if props.datatype.is_none() => {
            let text = "Bucket datatype 'undefined' is not a supported type.\n";
            reply::text(StatusCode::FORBIDDEN, text)
        }
        Ok(_) => missing("data types"),
    }
}
