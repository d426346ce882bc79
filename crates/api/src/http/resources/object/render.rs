//! How objects look in answers: headers, the list of siblings, multipart bodies.

use crate::http::conditional::Validators;
use crate::http::multipart::{self, Multipart};
use crate::http::reply::{self, Reply};
use crate::http::route::Generation;
use crate::http::wire::headers::{is_value, name};
use crate::http::{base62, beside, links, metadata};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use ombak_types::{Bucket, Object, Sibling, VectorClock, stored};

/// Which of an object's siblings an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one at this place.
    One(usize),
    /// There are several and the client has to choose.
    Several,
}

impl Choice {
    /// The only sibling, or the one that `vtag` names.
    pub fn of(object: &Object, vtag: Option<&[u8]>) -> Self {
        if let [_] = object.siblings.as_slice() {
            return Self::One(0);
        }
        let named = vtag.and_then(|tag| object.siblings.iter().position(|s| s.meta.vtag.as_deref() == Some(tag)));
        named.map_or(Self::Several, Self::One)
    }

    /// The sibling that is shown alone.
    pub fn sibling(self, object: &Object) -> Option<&Sibling> {
        match self {
            Self::One(at) => object.siblings.get(at),
            Self::Several => None,
        }
    }
}

/// A clock as clients carry it in headers.
pub fn clock_text(clock: &VectorClock) -> String {
    STANDARD.encode(stored::encode_clock(clock))
}

/// What the shown sibling, or the object as a whole, is recognised by.
pub fn validators(object: &Object, choice: Choice) -> Validators {
    match choice.sibling(object) {
        Some(sibling) => {
            let vtag = sibling.meta.vtag.as_deref().map(|tag| String::from_utf8_lossy(tag).into_owned());
            let etag = vtag.unwrap_or_else(|| clock_tag(&object.clock));
            Validators { etag: Some(etag), last_modified: sibling.meta.last_modified }
        }
        None => Validators { etag: Some(clock_tag(&object.clock)), last_modified: object.last_modified() },
    }
}

/// A tag for all siblings together: the same for copies that have seen the same.
fn clock_tag(clock: &VectorClock) -> String {
    let mut events: Vec<_> = clock.entries().iter().map(|e| (e.actor.as_bytes(), e.counter)).collect();
    events.sort_unstable();
    let mut bytes = Vec::new();
    for (actor, counter) in events {
        bytes.extend_from_slice(&(actor.len() as u64).to_be_bytes());
        bytes.extend_from_slice(actor);
        bytes.extend_from_slice(&counter.to_be_bytes());
    }
    base62::md5_text(&bytes)
}

/// Sets the headers that every answer with an object has.
fn set_common(answer: &mut Reply, object: &Object, choice: Choice) {
    let Validators { etag, last_modified } = validators(object, choice);
    answer.set(name::X_RIAK_VCLOCK, clock_text(&object.clock));
    if let Some(etag) = etag {
        answer.set(name::ETAG, ["\"", &etag, "\""].concat());
    }
    if let Some(at) = last_modified {
        answer.set(name::LAST_MODIFIED, multipart::http_date(at));
    }
}

/// An object and how an answer shows it.
pub struct Rendering {
    /// The object.
    pub object: Object,
    /// Which of its siblings.
    pub choice: Choice,
    /// Several siblings are shown as parts with their values, not as a list of their tags.
    pub in_parts: bool,
    /// Where it is stored.
    pub bucket: Bucket,
    /// How it was asked for.
    pub generation: Generation,
}

impl Rendering {
    /// Makes the answer, and gives the object back. Much metadata, or many values that have to be put together, take long:
    /// that is done beside the network threads.
    pub async fn make(self) -> Result<(Object, Reply), Reply> {
        beside::run(self.cost_bytes(), move || {
            let reply = match self.choice.sibling(&self.object) {
                Some(sibling) => one(&self.object, sibling, self.choice, &self.bucket, self.generation),
                None if self.in_parts => sibling_parts(&self.object, &self.bucket, self.generation),
                None => sibling_list(&self.object),
            };
            (self.object, reply)
        })
        .await
    }

    /// About how many bytes have to be gone over. A single value is not one of them.
    fn cost_bytes(&self) -> usize {
        /// What a pair of metadata costs beside its bytes, more or less.
        const PAIR_BYTES: usize = 256;
        let of_meta = |sibling: &Sibling| {
            let meta = &sibling.meta;
            PAIR_BYTES * (meta.user_meta.len() + meta.indexes.len() + meta.links.len())
        };
        match self.choice.sibling(&self.object) {
            Some(sibling) => of_meta(sibling),
            None => self.object.siblings.iter().map(|sibling| of_meta(sibling) + sibling.value.len()).sum(),
        }
    }
}

/// An answer with one sibling's value and all that belongs to it.
fn one(object: &Object, sibling: &Sibling, choice: Choice, bucket: &Bucket, generation: Generation) -> Reply {
    let meta = &sibling.meta;
    let mut answer = reply::bare(StatusCode::OK, sibling.value.clone());
    answer.headers.append_lines(&metadata::user_lines(meta));
    set_common(&mut answer, object, choice);
    answer.set(name::CONTENT_TYPE, header_value(&metadata::content_type_of(meta)));
    if let Some(encoding) = &meta.content_encoding {
        answer.set(name::CONTENT_ENCODING, header_value(encoding));
    }
    answer.set(name::LINK, links::format(&meta.links, &bucket.name, generation));
    if meta.deleted {
        answer.set(name::X_RIAK_DELETED, "true");
    }
    answer
}

/// What was stored over another interface need not be a header value; an answer says something all the same.
fn header_value(bytes: &Bytes) -> &[u8] {
    if is_value(bytes) { bytes } else { b"application/octet-stream" }
}

/// 300: the tags of all siblings, one a line.
fn sibling_list(object: &Object) -> Reply {
    let mut body = String::from("Siblings:\n");
    for sibling in &object.siblings {
        body += &String::from_utf8_lossy(sibling.meta.vtag.as_deref().unwrap_or_default());
        body.push('\n');
    }
    let mut answer = reply::text(StatusCode::MULTIPLE_CHOICES, body);
    set_common(&mut answer, object, Choice::Several);
    answer
}

/// 300: all siblings, one a part.
fn sibling_parts(object: &Object, bucket: &Bucket, generation: Generation) -> Reply {
    let mut parts = Multipart::new(&stored::encode_clock(&object.clock));
    for sibling in &object.siblings {
        parts.push(&multipart::sibling_headers(sibling, bucket, generation), &sibling.value);
    }
    let content_type = parts.content_type();
    let mut answer = reply::bare(StatusCode::MULTIPLE_CHOICES, parts.finish());
    answer.set(name::CONTENT_TYPE, content_type);
    set_common(&mut answer, object, Choice::Several);
    answer
}
