//! The keys of a bucket: `/buckets/B/keys`, `/types/T/buckets/B/keys`, and `/riak/B`. The answer of
//! `/riak/B` begins with the bucket's properties, unless the request says otherwise
//! (docs/riak/http-api.md §3).

use super::{listing, props_body};
use crate::JobClass;
use crate::access::{Access, Permission};
use crate::http::conditional::Validators;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, READ_ONLY, Resource, decide};
use crate::http::error_status::{self, RequestKind};
use crate::http::path::{Call, Generation, Path, Serve, parts};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_types::{Bucket, PropMap};
use std::time::Duration;

/// The paths of this resource.
pub const PATHS: &[Path] = &[
    Path::new("keys", Generation::Buckets, parts::KEYS, Serve::Boxed(run)).ends_with_client(),
    Path::new("keys", Generation::Types, parts::TYPED_KEYS, Serve::Boxed(run)).ends_with_client(),
    Path::new("keys", Generation::Riak, parts::RIAK_BUCKET, Serve::Boxed(run)).when(lists_keys).ends_with_client(),
];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        decide(call.ctx, &mut Keys::new(call.ctx, call.request, call.bucket(), call.generation()), call.request).await
    })
}

/// Whether a request for `/riak/BUCKET` is for the keys of the bucket and not for its properties.
fn lists_keys(request: &Request) -> bool {
    request.is_read() && (request.parameter_is("keys", "true") || request.parameter_is("keys", "stream"))
}

/// The resource `GET …/keys?keys=true|stream`.
pub struct Keys<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    generation: Generation,
    timeout: Duration,
    props: PropMap,
}

impl<'a> Keys<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext, request: &'a Request, bucket: Bucket, generation: Generation) -> Self {
        Self { ctx, request, bucket, generation, timeout: listing::TIMEOUT, props: PropMap::new() }
    }

    fn class(&self) -> Option<JobClass> {
        match self.request.parameter("keys") {
            Some(b"true") => Some(JobClass::ListKeys),
            Some(b"stream") => Some(JobClass::StreamListKeys),
            _ => None,
        }
    }

    /// The member `"props":{…}`, if this is a request of the oldest URL generation that wants it.
    fn props_member(&self) -> Option<String> {
        let wanted = self.generation == Generation::Riak && !self.request.parameter_is("props", "false");
        wanted.then(|| props_body::member(&self.props, Some(&self.bucket)))
    }
}

impl Resource for Keys<'_> {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::LIST_KEYS, Some(&self.bucket.bucket_type), &self.bucket.name))
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        self.timeout = listing::permit(self.ctx, self.request, self.class())?;
        Ok(())
    }

    fn offers(&self) -> Offers {
        Offers::json()
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let Ok(props) = self.ctx.kv.buckets().bucket_map(&self.bucket) else { return Ok(Existence::Missing) };
        self.props = props;
        Ok(Existence::Present(Validators::default()))
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let Some(class) = self.class() else { return reply::json(StatusCode::OK, "{}") };
        let list = match self.ctx.kv.list_keys(&self.bucket, Some(self.timeout)) {
            Ok(list) => list.in_group(self.request.tenant().group),
            Err(error) => return error_status::reply_for(&error, RequestKind::Other),
        };
        let props = self.props_member();
        if class == JobClass::ListKeys {
            let before = props.map(|member| member + ",").unwrap_or_default();
            listing::document(self.request, list, "keys", &before).await
        } else {
            listing::documents(list, "keys", props.map(|member| format!("{{{member}}}")))
        }
    }
}
