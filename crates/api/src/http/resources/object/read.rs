//! GET and HEAD of an object.

use super::render::{self, Choice, Rendering};
use super::{ALLOW, check_type};
use crate::http::conditional::Validators;
use crate::http::context::HttpContext;
use crate::http::failure::{self, Asked};
use crate::http::graph::{Existence, Offers, Resource};
use crate::http::metadata;
use crate::http::params::ObjectParams;
use crate::http::range::{self, Wanted};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::route::Generation;
use crate::http::wire::headers::name;
use bytes::Bytes;
use http::header::{IF_RANGE, RANGE};
use http::{Method, StatusCode};
use ombak_kv::{GetReply, GetRequest};
use ombak_types::{Bucket, Object, Sibling, VectorClock};

/// A read of one object.
pub struct Read<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    key: Bytes,
    generation: Generation,
    object: Object,
    choice: Choice,
}

impl<'a> Read<'a> {
    /// For one request.
    pub fn new(ctx: &'a HttpContext, request: &'a Request, bucket: Bucket, key: Bytes, generation: Generation) -> Self {
        Self { ctx, request, bucket, key, generation, object: Object::default(), choice: Choice::Several }
    }

    fn vtag(&self) -> Option<&[u8]> {
        self.request.parameter("vtag")
    }

    fn part(&self, sibling: &Sibling, whole: Reply) -> Reply {
        let len = sibling.value.len();
        let wanted = match self.request.headers.get(RANGE) {
            Some(header) if self.request.method == Method::GET && self.range_holds() => {
                range::parse(header.as_bytes(), len)
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
                let mut answer = reply::bare(StatusCode::PARTIAL_CONTENT, sibling.value.slice(range.clone()));
                answer.headers = whole.headers;
                answer.set(name::CONTENT_RANGE, format!("bytes {}-{}/{len}", range.start, range.end - 1));
                answer.set(name::ACCEPT_RANGES, "bytes");
                answer
            }
        }
    }

    /// A range asked for with a condition on the version (RFC 9110 §13.1.5) is taken only for that very tag.
    fn range_holds(&self) -> bool {
        let Some(tag) = self.request.headers.get(IF_RANGE) else { return true };
        let current = render::validators(&self.object, self.choice).etag;
        current.is_some_and(|etag| tag.as_bytes() == format!("\"{etag}\"").as_bytes())
    }
}

impl Resource for Read<'_> {
    fn allow(&self) -> &'static str {
        ALLOW
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        check_type(self.ctx, &self.bucket, Asked::Get)?;
        let options = ObjectParams::parse(self.request)?.get_options()?;
        let request = GetRequest { bucket: self.bucket.clone(), key: self.key.clone(), options };
        match self.request.read(&self.ctx.kv, &request).await {
            Ok(GetReply::Found(object)) => {
                self.choice = Choice::of(&object, self.vtag());
                self.object = object;
                Ok(())
            }
            Ok(GetReply::NotFound { tombstone }) => Err(not_found(tombstone.as_ref())),
            Err(error) => Err(failure::reply_for(&error, Asked::Get)),
        }
    }

    fn offers(&self) -> Offers {
        match self.choice.sibling(&self.object) {
            Some(sibling) => Offers {
                types: vec![metadata::content_type_of(&sibling.meta)],
                gzip: sibling.meta.content_encoding.is_none(),
            },
            None => Offers { types: ["text/plain", "multipart/mixed"].map(Bytes::from).to_vec(), gzip: true },
        }
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let known = |tag: &[u8]| self.object.siblings.iter().any(|s| s.meta.vtag.as_deref() == Some(tag));
        if self.vtag().is_some_and(|tag| !known(tag)) {
            return Ok(Existence::Missing);
        }
        let current: Validators = render::validators(&self.object, self.choice);
        Ok(Existence::Present(current))
    }

    async fn answer(mut self, offer: usize) -> Reply {
        let rendering = Rendering {
            object: std::mem::take(&mut self.object),
            choice: self.choice,
            in_parts: offer > 0,
            bucket: self.bucket.clone(),
            generation: self.generation,
        };
        let (object, reply) = match rendering.make().await {
            Ok(made) => made,
            Err(failed) => return failed,
        };
        self.object = object;
        match self.choice.sibling(&self.object) {
            Some(sibling) => self.part(sibling, reply),
            None => reply,
        }
    }
}

/// 404; a tombstone's clock lets the client write over it.
fn not_found(tombstone: Option<&VectorClock>) -> Reply {
    let mut answer = reply::text(StatusCode::NOT_FOUND, "not found\n");
    if let Some(clock) = tombstone {
        answer.set(name::X_RIAK_DELETED, "true");
        answer.set(name::X_RIAK_VCLOCK, render::clock_text(clock));
    }
    answer
}
