//! GET and HEAD of an object.

use super::render::{self, Choice, Rendering};
use super::{ALLOW, check_type};
use crate::access::{Access, Permission};
use crate::http::conditional::Validators;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, Resource};
use crate::http::error_status::{self, RequestKind};
use crate::http::metadata;
use crate::http::params::ObjectParams;
use crate::http::path::Generation;
use crate::http::range::{self, Wanted};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::wire::headers::name;
use crate::http::wire::request_lines::line;
use bytes::Bytes;
use http::{Method, StatusCode};
use ombak_kv::{GetReply, GetRequest};
use ombak_types::stored_object::SingleSibling;
use ombak_types::{Bucket, Object, VectorClock};
use smallvec::smallvec;

/// The read of one object.
pub struct Read<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    key: Bytes,
    generation: Generation,
    found: Found,
}

/// The object that was read, and the siblings of it that the answer shows.
enum Found {
    /// An object in its stored form, with one sibling that has a `vtag`.
    Single(SingleSibling),
    /// Any other object.
    Object(Object, Choice),
}

impl Default for Found {
    fn default() -> Self {
        Self::Object(Object::default(), Choice::Several)
    }
}

impl Found {
    fn validators(&self) -> Validators {
        match self {
            Self::Single(single) => render::single_validators(single),
            Self::Object(object, choice) => render::validators(object, *choice),
        }
    }
}

impl<'a> Read<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext, request: &'a Request, bucket: Bucket, key: Bytes, generation: Generation) -> Self {
        Self { ctx, request, bucket, key, generation, found: Found::default() }
    }

    fn vtag(&self) -> Option<&[u8]> {
        self.request.parameter("vtag")
    }

    /// Keeps the object that was read. The error is the answer to the client.
    fn keep(&mut self, read: ombak_kv::Read) -> Result<(), Reply> {
        self.found = match read {
            ombak_kv::Read::Single(single) if single.vtag().is_some() => Found::Single(single),
            other => match other.into_reply().map_err(|error| error_status::reply_for(&error, RequestKind::Get))? {
                GetReply::Found(object) => {
                    let choice = Choice::of(&object, self.vtag());
                    Found::Object(object, choice)
                }
                GetReply::NotFound { tombstone } => return Err(not_found(tombstone.as_ref())),
            },
        };
        Ok(())
    }

    /// The answer with the requested range of a value. `whole` is the answer with the whole value.
    fn part(&self, value: &Bytes, validators: impl FnOnce() -> Validators, whole: Reply) -> Reply {
        let len = value.len();
        let wanted = match self.request.lines.get(line::RANGE) {
            Some(header) if self.request.method == Method::GET && self.range_condition_holds(validators) => {
                range::parse(header, len)
            }
            _ => Wanted::Whole,
        };
        match wanted {
            Wanted::Whole => whole,
            Wanted::Unsatisfiable => {
                let mut refusal = reply::page(StatusCode::RANGE_NOT_SATISFIABLE);
                refusal.set(name::CONTENT_RANGE, format!("bytes */{len}"));
                refusal
            }
            Wanted::Part(range) => {
                let mut answer = reply::bare(StatusCode::PARTIAL_CONTENT, value.slice(range.clone()));
                answer.headers = whole.headers;
                answer.set(name::CONTENT_RANGE, format!("bytes {}-{}/{len}", range.start, range.end - 1));
                answer.set(name::ACCEPT_RANGES, "bytes");
                answer
            }
        }
    }

    /// Whether a requested range may be served. If the request has a condition on the version (RFC
    /// 9110 §13.1.5), the range is served only for exactly that entity tag.
    fn range_condition_holds(&self, validators: impl FnOnce() -> Validators) -> bool {
        let Some(tag) = self.request.lines.get(line::IF_RANGE) else { return true };
        validators().etag.is_some_and(|etag| tag == format!("\"{etag}\"").as_bytes())
    }

    async fn show(&self, object: Object, choice: Choice, in_parts: bool) -> Reply {
        let (bucket, generation) = (self.bucket.clone(), self.generation);
        let (object, reply) = match (Rendering { object, choice, in_parts, bucket, generation }).make().await {
            Ok(made) => made,
            Err(failed) => return failed,
        };
        match choice.sibling(&object) {
            Some(sibling) => self.part(&sibling.value, || render::validators(&object, choice), reply),
            None => reply,
        }
    }
}

impl Resource for Read<'_> {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::GET, Some(&self.bucket.bucket_type), &self.bucket.name))
    }

    fn allow(&self) -> &'static str {
        ALLOW
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        check_type(self.ctx, &self.bucket, RequestKind::Get)?;
        let options = ObjectParams::parse(self.request)?.get_options()?;
        let request = GetRequest { bucket: self.bucket.clone(), key: self.key.clone(), options };
        match self.request.read(&self.ctx.kv, &request).await {
            Ok(read) => self.keep(read),
            Err(error) => Err(error_status::reply_for(&error, RequestKind::Get)),
        }
    }

    fn offers(&self) -> Offers {
        let sibling = match &self.found {
            Found::Single(single) => {
                return Offers { types: smallvec![render::single_content_type(single)], gzip: true };
            }
            Found::Object(object, choice) => choice.sibling(object),
        };
        match sibling {
            Some(sibling) => Offers {
                types: smallvec![metadata::content_type_of(&sibling.meta)],
                gzip: sibling.meta.content_encoding.is_none(),
            },
            None => {
                Offers { types: ["text/plain", "multipart/mixed"].map(Bytes::from).into_iter().collect(), gzip: true }
            }
        }
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let is_there = |tag: &[u8]| match &self.found {
            Found::Single(single) => single.vtag() == Some(tag),
            Found::Object(object, _) => object.siblings.iter().any(|s| s.meta.vtag.as_deref() == Some(tag)),
        };
        if self.vtag().is_some_and(|tag| !is_there(tag)) {
            return Ok(Existence::Missing);
        }
        // Only conditional requests use the validators.
        let validators = self.request.is_conditional().then(|| self.found.validators());
        Ok(Existence::Present(validators.unwrap_or_default()))
    }

    async fn answer(&mut self, offer: usize) -> Reply {
        match std::mem::take(&mut self.found) {
            Found::Single(single) => {
                let whole = render::single(&single, &self.bucket, self.generation);
                self.part(single.value(), || render::single_validators(&single), whole)
            }
            Found::Object(object, choice) => self.show(object, choice, offer > 0).await,
        }
    }
}

/// The answer 404. It carries the clock of a tombstone, with which the client can write a new value
/// over the tombstone.
fn not_found(tombstone: Option<&VectorClock>) -> Reply {
    let mut answer = reply::text(StatusCode::NOT_FOUND, "not found\n");
    if let Some(clock) = tombstone {
        answer.set(name::X_RIAK_DELETED, "true");
        answer.set(name::X_RIAK_VCLOCK, render::clock_text(clock));
    }
    answer
}
