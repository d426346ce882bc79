//! The properties of a bucket: `/buckets/B/props`, `/types/T/buckets/B/props`, `/riak/B`
//! (docs/riak/http-api.md §4).

use super::props_body;
use crate::access::{Access, Permission};
use crate::http::conditional::Validators;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, Resource, decide};
use crate::http::path::Part::{Name, Word};
use crate::http::path::parts::RIAK_BUCKET;
use crate::http::path::{Call, Generation, Path, Serve};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use ombak_types::{Bucket, PropMap};

/// The paths of this resource.
pub const PATHS: &[Path] = &[
    Path::new("props", Generation::Buckets, &[Word(b"buckets"), Name, Word(b"props")], Serve::Boxed(run)),
    Path::new(
        "props",
        Generation::Types,
        &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"props")],
        Serve::Boxed(run),
    ),
    Path::new("props", Generation::Riak, RIAK_BUCKET, Serve::Boxed(run)),
];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        decide(call.ctx, &mut Props::new(call.ctx, call.request, call.bucket(), call.generation()), call.request).await
    })
}

/// The resource for GET, PUT and DELETE of a bucket's properties.
pub struct Props<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    generation: Generation,
    changes: PropMap,
    current: PropMap,
}

impl<'a> Props<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext, request: &'a Request, bucket: Bucket, generation: Generation) -> Self {
        Self { ctx, request, bucket, generation, changes: PropMap::new(), current: PropMap::new() }
    }
}

impl Resource for Props<'_> {
    fn access(&self) -> Option<Access<'_>> {
        let permission = if self.request.is_read() { Permission::GET_BUCKET } else { Permission::SET_BUCKET };
        Some(Access::to_bucket(permission, Some(&self.bucket.bucket_type), &self.bucket.name))
    }

    fn allow(&self) -> &'static str {
        match self.generation {
            Generation::Riak => "HEAD, GET, PUT",
            Generation::Buckets | Generation::Types => "HEAD, GET, PUT, DELETE",
        }
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        self.changes = props_body::changes(&self.ctx.kv, self.request).await?;
        Ok(())
    }

    fn offers(&self) -> Offers {
        props_body::offers(self.request)
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let Ok(current) = self.ctx.kv.buckets().bucket_map(&self.bucket) else { return Ok(Existence::Missing) };
        self.current = current;
        Ok(Existence::Present(Validators::default()))
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let (kv, bucket, changes) = (self.ctx.kv.clone(), self.bucket.clone(), std::mem::take(&mut self.changes));
        let outcome = match self.request.method {
            Method::PUT if !props_body::is_json(self.request) => {
                return reply::page(StatusCode::UNSUPPORTED_MEDIA_TYPE);
            }
            Method::PUT => props_body::change(move || kv.buckets().set_bucket(&bucket, &changes)).await,
            Method::DELETE => props_body::change(move || kv.buckets().reset_bucket(&bucket)).await,
            _ => {
                let member = props_body::member(&self.current, Some(&self.bucket));
                return reply::json(StatusCode::OK, format!("{{{member}}}"));
            }
        };
        match outcome {
            Ok(()) => reply::bare(StatusCode::NO_CONTENT, Bytes::new()),
            Err(error) => props_body::refusal(&error),
        }
    }
}
