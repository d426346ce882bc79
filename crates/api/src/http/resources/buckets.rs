//! The buckets of a type: `/buckets`, `/types/TYPE/buckets`, `/riak` (docs/riak/http-api.md §2).

use super::listing;
use crate::JobClass;
use crate::access::{Access, Permission};
use crate::http::conditional::Validators;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, READ_ONLY, Resource, decide};
use crate::http::error_status::{self, RequestKind};
use crate::http::path::Part::{Name, Word};
use crate::http::path::parts::RIAK;
use crate::http::path::{Call, Generation, Path, Serve};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use std::time::Duration;

/// The paths of this resource.
pub const PATHS: &[Path] = &[
    Path::new("buckets", Generation::Buckets, &[Word(b"buckets")], Serve::Boxed(run)).ends_with_client(),
    Path::new("buckets", Generation::Types, &[Word(b"types"), Name, Word(b"buckets")], Serve::Boxed(run))
        .ends_with_client(),
    Path::new("buckets", Generation::Riak, RIAK, Serve::Boxed(run)).ends_with_client(),
];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        decide(call.ctx, &mut Buckets::new(call.ctx, call.request, call.bucket_type()), call.request).await
    })
}

/// The resource `GET …/buckets?buckets=true|stream`.
pub struct Buckets<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket_type: Bytes,
    timeout: Duration,
}

impl<'a> Buckets<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext, request: &'a Request, bucket_type: Bytes) -> Self {
        Self { ctx, request, bucket_type, timeout: listing::TIMEOUT }
    }

    fn class(&self) -> Option<JobClass> {
        match self.request.parameter("buckets") {
            Some(b"true") => Some(JobClass::ListBuckets),
            Some(b"stream") => Some(JobClass::StreamListBuckets),
            _ => None,
        }
    }
}

impl Resource for Buckets<'_> {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_type(Permission::LIST_BUCKETS, Some(&self.bucket_type)))
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
        Ok(match self.ctx.kv.buckets().type_map(&self.bucket_type) {
            Ok(_) => Existence::Present(Validators::default()),
            Err(_) => Existence::Missing,
        })
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let Some(class) = self.class() else { return reply::json(StatusCode::OK, "{}") };
        let list = self.ctx.kv.list_buckets(&self.bucket_type, Some(self.timeout));
        match list.map(|list| list.in_group(self.request.tenant().group)) {
            Err(error) => error_status::reply_for(&error, RequestKind::Other),
            Ok(list) if class == JobClass::ListBuckets => listing::document(self.request, list, "buckets", "").await,
            Ok(list) => listing::documents(list, "buckets", None),
        }
    }
}
