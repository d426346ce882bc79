//! Link walking: `/buckets/B/keys/K/BUCKET,TAG,KEEP/…`, and the same below `/riak`
//! (docs/riak/http-api.md §5.4).
//!
//! Each step follows the links of the objects that the step before has found. An object with
//! several links to it counts once in a step. The work is bounded by the number of steps, by the
//! number of objects that one walk may read, by the bytes of these objects with their metadata, and
//! by the bytes of the answer, in which metadata is longer.

use super::object::render;
use crate::JobClass;
use crate::http::context::HttpContext;
use crate::http::failure::{self, Asked};
use crate::http::graph::{Existence, Offers, READ_ONLY, Resource};
use crate::http::multipart::{self, Multipart};
use crate::http::reply::{self, Reply};
use crate::http::route::Generation;
use crate::http::url;
use crate::http::wire::headers::name;
use bytes::Bytes;
use http::StatusCode;
use ombak_kv::{GetOptions, GetReply, GetRequest};
use ombak_types::object::{IndexEntry, IndexTerm};
use ombak_types::{Bucket, Link, Object, Sibling};
use smallvec::smallvec;
use std::collections::HashSet;
use std::time::Duration;

const STEPS_MAX: usize = 64;
const OBJECTS_MAX: usize = 10_000;
/// The bound on the bytes of all objects that a walk reads, and also on the bytes of its answer.
const BYTES_MAX: usize = 64 * 1024 * 1024;

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

/// A walk that starts at one object.
pub struct LinkWalk<'a> {
    ctx: &'a HttpContext,
    bucket: Bucket,
    key: Bytes,
    raw_steps: Vec<Bytes>,
    generation: Generation,
    steps: Vec<Step>,
    start: Option<Object>,
    objects_left: usize,
    read_bytes_left: usize,
    answer_bytes_left: usize,
}

impl<'a> LinkWalk<'a> {
    /// Creates the resource for one request.
    pub fn new(
        ctx: &'a HttpContext,
        bucket: Bucket,
        key: Bytes,
        raw_steps: Vec<Bytes>,
        generation: Generation,
    ) -> Self {
        Self {
            ctx,
            bucket,
            key,
            raw_steps,
            generation,
            steps: Vec::new(),
            start: None,
            objects_left: OBJECTS_MAX,
            read_bytes_left: BYTES_MAX,
            answer_bytes_left: BYTES_MAX,
        }
    }

    async fn read(&mut self, bucket: &Bucket, key: &Bytes) -> Result<Option<Object>, Reply> {
        let left = self.objects_left.checked_sub(1);
        self.objects_left = left.ok_or_else(|| too_much(format!("more than {OBJECTS_MAX} objects")))?;
        let request = GetRequest { bucket: bucket.clone(), key: key.clone(), options: GetOptions::default() };
        let object = match self.ctx.kv.get(request).await {
            Ok(GetReply::Found(object)) => object,
            Ok(GetReply::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failure::reply_for(&error, Asked::Get)),
        };
        spend(&mut self.read_bytes_left, bytes_held(&object))?;
        Ok(Some(object))
    }

    /// The objects that one step finds from the objects `from`.
    async fn follow(&mut self, step: &Step, from: &[Found]) -> Result<Vec<Found>, Reply> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for link in from.iter().flat_map(|f| links_of(&f.object)).filter(|link| step.takes(link)) {
            if !seen.insert((&link.bucket, &link.key)) {
                continue;
            }
            if let Some(object) = self.read(&Bucket::untyped(link.bucket.clone()), &link.key).await? {
                found.push(Found { bucket: link.bucket.clone(), key: link.key.clone(), object });
            }
        }
        Ok(found)
    }

    async fn walk(&mut self) -> Result<Multipart, Reply> {
        let mut whole = Multipart::new(&self.key);
        let start = self.start.take().into_iter();
        let mut at: Vec<Found> =
            start.map(|object| Found { bucket: self.bucket.name.clone(), key: self.key.clone(), object }).collect();
        for step in std::mem::take(&mut self.steps) {
            at = self.follow(&step, &at).await?;
            if step.keep {
                let mut phase = Multipart::new(&self.key);
                for found in &at {
                    self.push(found, &mut phase)?;
                }
                let content_type = format!("Content-Type: {}\r\n", phase.content_type());
                whole.push(content_type.as_bytes(), &phase.finish());
            }
        }
        Ok(whole)
    }

    /// Adds an object as a part. If it has siblings, the part shows the first one and names the
    /// others.
    fn push(&mut self, found: &Found, phase: &mut Multipart) -> Result<(), Reply> {
        let Some(sibling) = found.object.siblings.first() else { return Ok(()) };
        let bucket = Bucket::untyped(found.bucket.clone());
        let mut location = match self.generation {
            Generation::Riak => format!("/riak/{}/{}", url::quote(&found.bucket), url::quote(&found.key)),
            _ => format!("/buckets/{}/keys/{}", url::quote(&found.bucket), url::quote(&found.key)),
        };
        let tags: Vec<_> = found
            .object
            .siblings
            .iter()
            .map(|s| String::from_utf8_lossy(s.meta.vtag.as_deref().unwrap_or_default()).into_owned())
            .collect();
        let mut headers = format!("X-Riak-Vclock: {}\r\n", render::clock_text(&found.object.clock));
        if let [first, _, ..] = tags.as_slice() {
            location = format!("{location}?vtag={first}");
            headers += &format!("X-Riak-Sibling-VTags: {}\r\n", tags.join(","));
        }
        headers += &format!("Location: {location}\r\n");
        let mut headers = headers.into_bytes();
        headers.extend_from_slice(&multipart::sibling_headers(sibling, &bucket, self.generation));
        spend(&mut self.answer_bytes_left, headers.len() + sibling.value.len())?;
        phase.push(&headers, &sibling.value);
        Ok(())
    }
}

impl Resource for LinkWalk<'_> {
    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        self.ctx.jobs.check(JobClass::MapReduce).map_err(|e| failure::reply_for(&e, Asked::Other))?;
        if !self.bucket.is_default_type() {
            let text = "Link-walking is not allowed on keys stored in bucket-types.";
            return Err(reply::text(StatusCode::FORBIDDEN, text));
        }
        self.steps = parse_steps(&self.raw_steps).ok_or_else(bad_walk)?;
        Ok(())
    }

    fn offers(&self) -> Offers {
        Offers { types: smallvec![Bytes::from_static(b"multipart/mixed")], gzip: false }
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let (bucket, key) = (self.bucket.clone(), self.key.clone());
        self.start = self.read(&bucket, &key).await?;
        Ok(if self.start.is_some() { Existence::Present(Default::default()) } else { Existence::Missing })
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

/// Takes `bytes` from the rest of a bound. The error is the refusal of the walk.
fn spend(left: &mut usize, bytes: usize) -> Result<(), Reply> {
    *left = left.checked_sub(bytes).ok_or_else(|| too_much(format!("more than {BYTES_MAX} bytes")))?;
    Ok(())
}

/// The memory of an object: its values, its metadata, and the structures that describe each piece.
/// For short pieces, these structures are the larger share.
fn bytes_held(object: &Object) -> usize {
    size_of_val(object.clock.entries()) + object.siblings.iter().map(sibling_bytes_held).sum::<usize>()
}

fn sibling_bytes_held(sibling: &Sibling) -> usize {
    let meta = &sibling.meta;
    let links: usize = meta.links.iter().map(|link| link.bucket.len() + link.key.len() + link.tag.len()).sum();
    let pairs = meta.user_meta.iter().chain(&meta.extra).map(|(name, value)| name.len() + value.len());
    let terms = meta.indexes.iter().map(|entry| entry.field.len() + term_bytes(entry));
    let described = size_of_val(&meta.links[..])
        + size_of_val(&meta.user_meta[..])
        + size_of_val(&meta.extra[..])
        + size_of_val(&meta.indexes[..]);
    size_of_val(sibling) + sibling.value.len() + links + pairs.sum::<usize>() + terms.sum::<usize>() + described
}

fn term_bytes(entry: &IndexEntry) -> usize {
    match &entry.term {
        IndexTerm::Bin(text) => text.len(),
        IndexTerm::Int(number) => usize::try_from(number.bits() / 8).unwrap_or(usize::MAX),
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
