//! Link walking: `/buckets/B/keys/K/BUCKET,TAG,KEEP/…`, and the same below `/riak`
//! (docs/riak/http-api.md §5.4).
//!
//! Each step follows the links of the objects that the step before has found. An object with
//! several links to it counts once in a step. The work is bounded by the number of steps, by the
//! number of objects that one walk may read, by the bytes of these objects with their metadata, and
//! by the bytes of the answer, in which metadata is longer.

mod answer;
mod size;

use crate::JobClass;
use crate::access::{Access, Permission};
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, READ_ONLY, Resource, decide};
use crate::http::error_status::{self, RequestKind};
use crate::http::multipart::{self, Multipart};
use crate::http::path::Part::{Name, Rest, Word};
use crate::http::path::{Call, Generation, Path, Serve};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::url;
use crate::http::wire::headers::name;
use crate::memory::Held;
use answer::{Shown, TooLarge};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_kv::{GetOptions, GetReply, GetRequest};
use ombak_types::{Bucket, Error, Link, Object};
use size::bytes_held;
use smallvec::smallvec;
use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// What Riak says of a link walk while security is on.
const NOT_SECURE: &str = "Link walking is deprecated in Riak 2.0 and is not compatible with\n                                             security.";

/// The paths of this resource. A path without steps is an object's, which the registry finds
/// before.
pub const PATHS: &[Path] = &[
    Path::new(
        "link walk",
        Generation::Buckets,
        &[Word(b"buckets"), Name, Word(b"keys"), Name, Rest],
        Serve::Boxed(run),
    )
    .ends_with_client(),
    Path::new(
        "link walk",
        Generation::Types,
        &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"keys"), Name, Rest],
        Serve::Boxed(run),
    )
    .ends_with_client(),
    Path::new("link walk", Generation::Riak, &[Word(b"riak"), Name, Name, Rest], Serve::Boxed(run)).ends_with_client(),
];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        let (bucket, key, steps) = (call.bucket(), call.key(), call.undecoded_parts_after_key());
        let mut walk = LinkWalk::new(call.ctx, call.request, bucket, key, steps, call.generation());
        decide(call.ctx, &mut walk, call.request).await
    })
}

const STEPS_MAX: usize = 64;
const OBJECTS_MAX: usize = 10_000;
/// The bound on the bytes of all objects that a walk reads, and also on the bytes of its answer.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Objects that take up to this many bytes together are made into an answer on the network thread.
const IN_PLACE_BYTES_MAX: usize = 64 * 1024;

/// How long an answer may be cached, as in Riak.
const FRESH_FOR: Duration = Duration::from_secs(600);

/// One step of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// Follow only links to this bucket; `None` means any bucket.
    bucket: Option<Bytes>,
    /// Follow only links with this tag; `None` means any tag.
    tag: Option<Bytes>,
    /// Whether the answer includes what the step has found.
    keep: bool,
}

/// An object that a walk has found.
struct Found {
    bucket: Bytes,
    key: Bytes,
    object: Object,
}

/// The objects that a step has found, and the memory that they take.
#[derive(Default)]
struct Reached<'a> {
    found: Vec<Found>,
    bytes: usize,
    held: Held<'a>,
}

/// A walk that starts at one object.
pub struct LinkWalk<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    key: Bytes,
    raw_steps: Vec<Bytes>,
    generation: Generation,
    steps: Vec<Step>,
    start: Reached<'a>,
    objects_left: usize,
    read_bytes_left: usize,
}

impl<'a> LinkWalk<'a> {
    /// Creates the resource for one request.
    pub fn new(
        ctx: &'a HttpContext,
        request: &'a Request,
        bucket: Bucket,
        key: Bytes,
        raw_steps: Vec<Bytes>,
        generation: Generation,
    ) -> Self {
        Self {
            ctx,
            request,
            bucket,
            key,
            raw_steps,
            generation,
            steps: Vec::new(),
            start: Reached::default(),
            objects_left: OBJECTS_MAX,
            read_bytes_left: BYTES_MAX,
        }
    }

    /// Reads an object and adds it to what a step has found; false if there is none. What it takes
    /// in memory is counted.
    async fn read(&mut self, bucket: &Bytes, key: &Bytes, reached: &mut Reached<'a>) -> Result<bool, Reply> {
        let left = self.objects_left.checked_sub(1);
        self.objects_left = left.ok_or_else(|| too_much(format!("more than {OBJECTS_MAX} objects")))?;
        let bucket = Bucket::untyped(bucket.clone());
        let request = GetRequest { bucket, key: key.clone(), options: GetOptions::default() };
        let mut held = self.request.holds();
        let read = self.ctx.kv.read_into(&request, &mut held).await.and_then(|read| read.into_reply());
        let object = match read {
            Ok(GetReply::Found(object)) => object,
            Ok(GetReply::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(refusal(&error)),
        };
        let bytes = bytes_held(&object);
        let left = self.read_bytes_left.checked_sub(bytes);
        self.read_bytes_left = left.ok_or_else(too_many_bytes)?;
        held.resize(bytes as u64).await.map_err(|error| refusal(&error))?;
        reached.held.merge(held);
        reached.bytes += bytes;
        reached.found.push(Found { bucket: request.bucket.name, key: request.key, object });
        Ok(true)
    }

    /// What one step finds from the objects `from`.
    async fn follow(&mut self, step: &Step, from: &[Found]) -> Result<Reached<'a>, Reply> {
        let (mut seen, mut reached) = (HashSet::new(), Reached::default());
        for link in from.iter().flat_map(|f| links_of(&f.object)).filter(|link| step.takes(link)) {
            if seen.insert((&link.bucket, &link.key)) {
                self.read(&link.bucket, &link.key, &mut reached).await?;
            }
        }
        Ok(reached)
    }

    /// Takes all steps. What a step found that is not kept is forgotten as soon as the next step
    /// has been taken.
    async fn walk(&mut self) -> Result<Multipart, Reply> {
        let (mut shown, mut kept) = (Vec::new(), Reached::default());
        let (mut at, mut is_kept) = (mem::take(&mut self.start), false);
        for step in mem::take(&mut self.steps) {
            let next = self.follow(&step, &at.found).await?;
            let last = mem::replace(&mut at, next);
            if mem::replace(&mut is_kept, step.keep) {
                shown.push(kept.take(last));
            }
        }
        if is_kept {
            shown.push(kept.take(at));
        }
        let shown = Shown { steps: shown, key: self.key.clone(), generation: self.generation };
        self.assemble(shown, kept).await
    }

    /// Makes the answer. A large one is made away from the threads that serve connections, once
    /// there is memory for it.
    async fn assemble(&self, shown: Shown, kept: Reached<'a>) -> Result<Multipart, Reply> {
        let shown = Arc::new(shown);
        let measured = shown.clone();
        let bytes = self.run(kept.bytes, move || measured.answer_bytes()).await?;
        let bytes = bytes.map_err(|TooLarge| too_many_bytes())?;
        let mut held = self.request.holds();
        held.resize(bytes as u64).await.map_err(|error| refusal(&error))?;
        let whole = self.run(kept.bytes, move || shown.assemble(bytes)).await?;
        held.keep_for_answer();
        Ok(whole)
    }

    /// Does `work` on so many bytes of objects here, or where large work is done.
    async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Reply> {
        if bytes <= IN_PLACE_BYTES_MAX {
            return Ok(work());
        }
        self.ctx.kv.offload(work).await.map_err(|error| refusal(&error))
    }
}

impl<'a> Reached<'a> {
    /// The objects of another step; what they take is added to what this one holds.
    fn take(&mut self, other: Reached<'a>) -> Vec<Found> {
        self.bytes += other.bytes;
        self.held.merge(other.held);
        other.found
    }
}

impl Resource for LinkWalk<'_> {
    /// The permission for the first object only. While security is on there are no link walks,
    /// whatever is granted (docs/riak/semantics.md §11).
    fn access(&self) -> Option<Access<'_>> {
        (!self.ctx.is_secured()).then_some(Access::to_bucket(
            Permission::GET,
            Some(&self.bucket.bucket_type),
            &self.bucket.name,
        ))
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        self.ctx.jobs.check(JobClass::MapReduce).map_err(|e| error_status::reply_for(&e, RequestKind::Other))?;
        if !self.bucket.is_default_type() {
            let text = "Link-walking is not allowed on keys stored in bucket-types.";
            return Err(reply::text(StatusCode::FORBIDDEN, text));
        }
        self.steps = parse_steps(&self.raw_steps).ok_or_else(bad_walk)?;
        match self.ctx.is_secured() {
            true => Err(reply::text(StatusCode::FORBIDDEN, NOT_SECURE)),
            false => Ok(()),
        }
    }

    fn offers(&self) -> Offers {
        Offers { types: smallvec![Bytes::from_static(b"multipart/mixed")], gzip: false }
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let (bucket, key, mut start) = (self.bucket.name.clone(), self.key.clone(), Reached::default());
        let found = self.read(&bucket, &key, &mut start).await?;
        self.start = start;
        Ok(if found { Existence::Present(Default::default()) } else { Existence::Missing })
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let whole = match self.walk().await {
            Ok(whole) => whole,
            Err(refusal) => return refusal,
        };
        let content_type = whole.content_type();
        let mut answer = reply::bare(StatusCode::OK, whole.finish());
        answer.set(name::CONTENT_TYPE, content_type);
        answer.set(name::EXPIRES, multipart::http_date_in(FRESH_FOR));
        answer
    }
}

impl Step {
    fn takes(&self, link: &Link) -> bool {
        self.bucket.as_ref().is_none_or(|b| *b == link.bucket) && self.tag.as_ref().is_none_or(|t| *t == link.tag)
    }
}

/// The links of all siblings.
fn links_of(object: &Object) -> impl Iterator<Item = &Link> {
    object.siblings.iter().flat_map(|sibling| &sibling.meta.links)
}

/// Parses steps of the form `BUCKET,TAG,KEEP`. `None` if one is invalid or if there are too many.
fn parse_steps(raw: &[Bytes]) -> Option<Vec<Step>> {
    if raw.is_empty() || raw.len() > STEPS_MAX {
        return None;
    }
    let last = raw.len() - 1;
    raw.iter()
        .enumerate()
        .map(|(i, text)| {
            let fields: Vec<&[u8]> = text.split(|&b| b == b',').collect();
            let [bucket, tag, keep] = fields.as_slice() else { return None };
            let name = |field: &[u8]| (field != b"_").then(|| url::unquote(field));
            let keep = match *keep {
                b"1" => true,
                b"_" => i == last,
                // A walk of a single step always shows what it has found.
                b"0" => last == 0,
                _ => return None,
            };
            let named = !bucket.is_empty() && !tag.is_empty();
            named.then(|| Step { bucket: name(bucket), tag: name(tag), keep })
        })
        .collect()
}

fn bad_walk() -> Reply {
    reply::text(
        StatusCode::BAD_REQUEST,
        "Invalid link walk query submitted. Valid link walk query format is: \
         /riak/some_bucket/some_key/<bucket>,<riaktag>,0|1/...",
    )
}

fn refusal(error: &Error) -> Reply {
    error_status::reply_for(error, RequestKind::Get)
}

fn too_many_bytes() -> Reply {
    too_much(format!("more than {BYTES_MAX} bytes"))
}

fn too_much(what: String) -> Reply {
    let text = format!("The walk leads to {what}; take fewer or narrower steps\n");
    reply::text(StatusCode::BAD_REQUEST, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(texts: &[&str]) -> Option<Vec<Step>> {
        parse_steps(&texts.iter().map(|t| Bytes::copy_from_slice(t.as_bytes())).collect::<Vec<_>>())
    }

    #[test]
    fn the_last_step_is_kept_by_default() {
        let step = |keep| Step { bucket: None, tag: Some("a,b".into()), keep };
        assert_eq!(steps(&["_,a%2Cb,_", "_,a%2Cb,_"]), Some(vec![step(false), step(true)]));
        assert_eq!(steps(&["_,a%2Cb,1", "_,a%2Cb,0"]), Some(vec![step(true), step(false)]));
        assert_eq!(steps(&["_,a%2Cb,0"]), Some(vec![step(true)]));
    }

    #[test]
    fn everything_else_is_no_step() {
        for bad in ["x", "_,_", "_,_,2", "_,_,1,1", ",_,1", ""] {
            assert_eq!(steps(&[bad]), None, "{bad}");
        }
        assert_eq!(steps(&["_,_,1"; STEPS_MAX + 1]), None);
    }
}
