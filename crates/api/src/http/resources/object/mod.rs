//! Objects: `/buckets/B/keys/K`, `/types/T/buckets/B/keys/K`, `/riak/B/K` (docs/riak/http-api.md
//! §5).

pub mod delete;
pub mod read;
pub mod render;
pub mod write;

use crate::http::context::HttpContext;
use crate::http::decision_graph::{self, decide};
use crate::http::error_status::{self, RequestKind};
use crate::http::path::Part::{Name, Word};
use crate::http::path::{Generation, Path, Serve, parts};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::wire::request_lines::{LineName, line};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, StatusCode};
use ombak_types::{Bucket, Error, VectorClock, stored_object};

/// The methods of an object, in Riak's order.
const ALLOW: &str = "HEAD, GET, POST, PUT, DELETE";

/// The paths of objects.
pub const PATHS: &[Path] = &[
    Path::new("object", Generation::Buckets, &[Word(b"buckets"), Name, Word(b"keys"), Name], Serve::Object),
    Path::new(
        "object",
        Generation::Types,
        &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"keys"), Name],
        Serve::Object,
    ),
    Path::new("object", Generation::Riak, &[Word(b"riak"), Name, Name], Serve::Object),
    Path::new("new object", Generation::Buckets, parts::KEYS, Serve::NewObject).when(is_post),
    Path::new("new object", Generation::Types, parts::TYPED_KEYS, Serve::NewObject).when(is_post),
    Path::new("new object", Generation::Riak, parts::RIAK_BUCKET, Serve::NewObject).when(is_post),
];

fn is_post(request: &Request) -> bool {
    request.method == Method::POST
}

/// Answers a request about one object.
pub async fn run(ctx: &HttpContext, request: &Request, bucket: Bucket, key: Bytes, generation: Generation) -> Reply {
    match request.method {
        Method::GET | Method::HEAD => {
            decide(ctx, &mut read::Read::new(ctx, request, bucket, key, generation), request).await
        }
        Method::PUT | Method::POST => {
            decide(ctx, &mut write::Write::new(ctx, request, bucket, Some(key), generation), request).await
        }
        Method::DELETE => decide(ctx, &mut delete::Delete::new(ctx, request, bucket, key), request).await,
        _ => match decision_graph::admit(ctx, request, ALLOW, None).await {
            Err(refusal) => refusal,
            Ok(()) => reply::page(StatusCode::METHOD_NOT_ALLOWED),
        },
    }
}

/// Stores a new object under a key that the server chooses.
pub async fn run_new(ctx: &HttpContext, request: &Request, bucket: Bucket, generation: Generation) -> Reply {
    decide(ctx, &mut write::Write::new(ctx, request, bucket, None, generation), request).await
}

/// Refuses a bucket whose type does not exist.
fn check_type(ctx: &HttpContext, bucket: &Bucket, asked: RequestKind) -> Result<(), Reply> {
    ctx.kv.buckets().snapshot().props(bucket).map(|_| ()).map_err(|e| error_status::reply_for(&e, asked))
}

/// The vector clock in a header; `None` if the header is missing.
fn clock_header(request: &Request, name: LineName) -> Result<Option<VectorClock>, Error> {
    let Some(text) = request.header(name) else { return Ok(None) };
    let bytes = STANDARD.decode(text.trim_ascii()).map_err(|e| Error::BadClock(e.to_string()))?;
    stored_object::decode_clock(&bytes).map(Some)
}

/// The vector clock that the client has read.
fn seen_clock(request: &Request, asked: RequestKind) -> Result<Option<VectorClock>, Reply> {
    clock_header(request, line::X_RIAK_VCLOCK).map_err(|e| error_status::reply_for(&e, asked))
}
