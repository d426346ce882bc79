//! PUT and POST of an object.
//!
//! A conditional write reads first, because HTTP's conditions are about what a client could have
//! read. The version that was read then becomes the engine's condition for the write, so that no
//! other write can come in between.

use super::render::{self, Choice, Rendering};
use super::{ALLOW, check_type, clock_header, seen_clock};
use crate::access::{Access, Permission};
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, Resource};
use crate::http::error_status::{self, RequestKind};
use crate::http::params::ObjectParams;
use crate::http::path::Generation;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::wire::headers::name;
use crate::http::wire::request_lines::line;
use crate::http::{accept, metadata, url};
use bytes::Bytes;
use http::StatusCode;
use ombak_kv::{GetReply, GetRequest, PutCondition, PutReply, PutRequest};
use ombak_types::{Bucket, Error, Object, Sibling, SiblingMeta, VectorClock};
use smallvec::smallvec;

/// The write of one object. Without a key, the engine chooses one.
pub struct Write<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    key: Option<Bytes>,
    generation: Generation,
    params: ObjectParams,
    meta: SiblingMeta,
    seen: Option<VectorClock>,
    /// The condition that follows from the read before a conditional write.
    condition: PutCondition,
}

impl<'a> Write<'a> {
    /// Creates the resource for one request.
    pub fn new(
        ctx: &'a HttpContext,
        request: &'a Request,
        bucket: Bucket,
        key: Option<Bytes>,
        generation: Generation,
    ) -> Self {
        Self {
            ctx,
            request,
            bucket,
            key,
            generation,
            params: ObjectParams::default(),
            meta: SiblingMeta::default(),
            seen: None,
            condition: PutCondition::None,
        }
    }

    /// The condition of the write: that of Riak's own header, otherwise the one that follows from
    /// the read. A clock in Riak's header that cannot be decoded sets no condition
    /// (docs/riak/http-api.md §17).
    fn take_condition(&mut self) -> PutCondition {
        match clock_header(self.request, line::X_RIAK_IF_NOT_MODIFIED) {
            Ok(Some(clock)) => PutCondition::IfNotModified(clock),
            _ => std::mem::take(&mut self.condition),
        }
    }

    fn location(&self, key: &[u8]) -> String {
        let (bucket, key) = (url::quote(&self.bucket.name), url::quote(key));
        match self.generation {
            Generation::Riak => format!("/riak/{bucket}/{key}"),
            Generation::Buckets => format!("/buckets/{bucket}/keys/{key}"),
            Generation::Types => {
                format!("/types/{}/buckets/{bucket}/keys/{key}", url::quote(&self.bucket.bucket_type))
            }
        }
    }

    async fn reply(&self, stored: PutReply) -> Reply {
        let created = stored.key.is_some() && self.key.is_none();
        let mut answer = match stored.object.filter(|_| self.params.return_body) {
            Some(object) => self.show(object).await,
            None if created => {
                let mut answer = reply::bare(StatusCode::OK, Bytes::new());
                answer.set(name::CONTENT_TYPE, metadata::content_type_of(&self.meta));
                answer
            }
            None => reply::bare(StatusCode::NO_CONTENT, Bytes::new()),
        };
        if let (true, Some(key)) = (created, &stored.key) {
            if answer.status == StatusCode::OK {
                answer.status = StatusCode::CREATED;
            }
            answer.set(name::LOCATION, self.location(key));
        }
        answer
    }

    async fn show(&self, object: Object) -> Reply {
        let accept = self.request.header(line::ACCEPT);
        let in_parts =
            accept.is_some() && accept::choose(accept.as_deref(), &["multipart/mixed", "text/plain"]) == Some(0);
        let (choice, bucket) = (Choice::of(&object, None), self.bucket.clone());
        let rendering = Rendering { object, choice, in_parts, bucket, generation: self.generation };
        rendering.make().await.map_or_else(|failed| failed, |(_, reply)| reply)
    }
}

impl Resource for Write<'_> {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::PUT, Some(&self.bucket.bucket_type), &self.bucket.name))
    }

    fn allow(&self) -> &'static str {
        ALLOW
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        check_type(self.ctx, &self.bucket, RequestKind::Put)?;
        self.meta = metadata::parse(self.request, &self.bucket, self.generation)?;
        self.params = ObjectParams::parse(self.request)?;
        self.seen = seen_clock(self.request, RequestKind::Put)?;
        Ok(())
    }

    /// A returned body has the content type of the written one.
    fn offers(&self) -> Offers {
        Offers { types: smallvec![metadata::content_type_of(&self.meta)], gzip: true }
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let key = match &self.key {
            Some(key) if self.request.is_conditional() => key.clone(),
            Some(_) => return Ok(Existence::Present(Default::default())),
            None => return Ok(Existence::Missing),
        };
        let mut options = self.params.get_options()?;
        options.head = true;
        match self.ctx.kv.get(GetRequest { bucket: self.bucket.clone(), key, options }).await {
            Ok(GetReply::Found(object)) => {
                let current = render::validators(&object, Choice::of(&object, None));
                self.condition = PutCondition::IfNotModified(object.clock);
                Ok(Existence::Present(current))
            }
            Ok(GetReply::NotFound { .. }) => {
                self.condition = PutCondition::IfNoneMatch;
                Ok(Existence::Missing)
            }
            Err(error) => Err(error_status::reply_for(&error, RequestKind::Put)),
        }
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let mut options = match self.params.put_options() {
            Ok(options) => options,
            Err(refusal) => return refusal,
        };
        let read_first = self.condition != PutCondition::None;
        options.condition = self.take_condition();
        // If the server chooses the key, the answer needs the content type after the write.
        let meta = if self.key.is_some() { std::mem::take(&mut self.meta) } else { self.meta.clone() };
        let sibling = Sibling { value: self.request.body.clone(), meta };
        let object = Object { clock: self.seen.take().unwrap_or_default(), siblings: vec![sibling] };
        let request = PutRequest { bucket: self.bucket.clone(), key: self.key.clone(), object, options };
        match self.request.write(&self.ctx.kv, request).await {
            Ok(stored) => self.reply(stored).await,
            // Another write came between the read and this write, so the condition does not hold
            // any more.
            Err(Error::Modified | Error::NotFound)
                if read_first && !self.request.lines.contains(line::X_RIAK_IF_NOT_MODIFIED) =>
            {
                reply::page(StatusCode::PRECONDITION_FAILED)
            }
            Err(error) => error_status::reply_for(&error, RequestKind::Put),
        }
    }
}
