//! DELETE of an object.

use super::render::{self, Choice};
use super::{ALLOW, check_type, seen_clock};
use crate::access::{Access, Permission};
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, Resource, Types};
use crate::http::error_status::{self, RequestKind};
use crate::http::params::ObjectParams;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use bytes::Bytes;
use http::StatusCode;
use ombak_kv::{DeleteRequest, GetReply, GetRequest};
use ombak_types::{Bucket, VectorClock};

/// The deletion of one object.
pub struct Delete<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    key: Bytes,
    params: ObjectParams,
    seen: Option<VectorClock>,
}

impl<'a> Delete<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext, request: &'a Request, bucket: Bucket, key: Bytes) -> Self {
        Self { ctx, request, bucket, key, params: ObjectParams::default(), seen: None }
    }
}

impl Resource for Delete<'_> {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::DELETE, Some(&self.bucket.bucket_type), &self.bucket.name))
    }

    fn allow(&self) -> &'static str {
        ALLOW
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        check_type(self.ctx, &self.bucket, RequestKind::Delete)?;
        self.params = ObjectParams::parse(self.request)?;
        self.seen = seen_clock(self.request, RequestKind::Delete)?;
        Ok(())
    }

    fn offers(&self) -> Offers {
        Offers { types: Types::new(), gzip: true }
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        if !self.request.is_conditional() {
            return Ok(Existence::Present(Default::default()));
        }
        let mut options = self.params.get_options()?;
        options.head = true;
        let request = GetRequest { bucket: self.bucket.clone(), key: self.key.clone(), options };
        match self.ctx.kv.get(request).await {
            Ok(GetReply::Found(object)) => {
                let current = render::validators(&object, Choice::of(&object, None));
                // Only the version whose condition was checked is deleted. A write that came in
                // between stays as a sibling.
                self.seen.get_or_insert(object.clock);
                Ok(Existence::Present(current))
            }
            Ok(GetReply::NotFound { .. }) => Ok(Existence::Missing),
            Err(error) => Err(error_status::reply_for(&error, RequestKind::Delete)),
        }
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let (get, put) = match (self.params.get_options(), self.params.put_options()) {
            (Ok(get), Ok(put)) => (get, put),
            (Err(refusal), _) | (_, Err(refusal)) => return refusal,
        };
        let (bucket, key) = (self.bucket.clone(), self.key.clone());
        let request = DeleteRequest { bucket, key, clock: self.seen.take(), get, put, rw: self.params.rw };
        match self.ctx.kv.delete(request).await {
            Ok(reply) if reply.found => reply::bare(StatusCode::NO_CONTENT, Bytes::new()),
            Ok(_) => reply::text(StatusCode::NOT_FOUND, "not found\n"),
            Err(error) => error_status::reply_for(&error, RequestKind::Delete),
        }
    }
}
