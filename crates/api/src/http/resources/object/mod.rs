//! Objects: `/buckets/B/keys/K`, `/types/T/buckets/B/keys/K`, `/riak/B/K` (docs/riak/http-api.md
//! §5).

pub mod delete;
pub mod read;
pub mod render;
pub mod write;

use crate::http::context::HttpContext;
use crate::http::error_status::{self, Asked};
use crate::http::graph;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::route::Generation;
use crate::http::wire::request_lines::{LineName, line};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, StatusCode};
use ombak_types::{Bucket, Error, VectorClock, stored_object};

/// The methods of an object, in Riak's order.
const ALLOW: &str = "HEAD, GET, POST, PUT, DELETE";

/// Answers a request about one object.
pub async fn run(ctx: &HttpContext, request: &Request, bucket: Bucket, key: Bytes, generation: Generation) -> Reply {
    match request.method {
        Method::GET | Method::HEAD => {
            graph::run(&mut read::Read::new(ctx, request, bucket, key, generation), request).await
        }
        Method::PUT | Method::POST => {
            graph::run(&mut write::Write::new(ctx, request, bucket, Some(key), generation), request).await
        }
        Method::DELETE => graph::run(&mut delete::Delete::new(ctx, request, bucket, key), request).await,
        _ => match graph::admit(request, ALLOW).await {
            Err(refusal) => refusal,
            Ok(()) => reply::page(StatusCode::METHOD_NOT_ALLOWED),
        },
    }
}

/// Refuses a bucket whose type does not exist.
fn check_type(ctx: &HttpContext, bucket: &Bucket, asked: Asked) -> Result<(), Reply> {
    ctx.kv.buckets().snapshot().props(bucket).map(|_| ()).map_err(|e| error_status::reply_for(&e, asked))
}

/// The vector clock in a header; `None` if the header is missing.
fn clock_header(request: &Request, name: LineName) -> Result<Option<VectorClock>, Error> {
    let Some(text) = request.header(name) else { return Ok(None) };
    let bytes = STANDARD.decode(text.trim_ascii()).map_err(|e| Error::BadClock(e.to_string()))?;
    stored_object::decode_clock(&bytes).map(Some)
}

/// The vector clock that the client has read.
fn seen_clock(request: &Request, asked: Asked) -> Result<Option<VectorClock>, Reply> {
    clock_header(request, line::X_RIAK_VCLOCK).map_err(|e| error_status::reply_for(&e, asked))
}
