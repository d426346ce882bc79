//! How objects appear in answers: headers, the list of siblings, multipart bodies.

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

/// The siblings of an object that an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The sibling with this index.
    One(usize),
    /// There are several siblings, and the client has to choose one.
    Several,
}

impl Choice {
    /// The only sibling, or the one with this `vtag`.
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

/// A vector clock in the form of a header value.
pub fn clock_text(clock: &VectorClock) -> String {
    STANDARD.encode(stored::encode_clock(clock))
}

/// The validators of the shown sibling, or of the object as a whole.
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

/// An entity tag for all siblings together. It is the same for copies that have seen the same
/// events.
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

/// Sets the headers of every answer with an object.
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

/// An object, and how an answer shows it.
pub struct Rendering {
    /// The object.
    pub object: Object,
    /// The siblings to show.
    pub choice: Choice,
    /// Whether several siblings are shown as parts with their values, instead of a list of their
    /// vtags.
    pub in_parts: bool,
    /// The bucket of the object.
    pub bucket: Bucket,
    /// The URL generation of the request.
    pub generation: Generation,
}

impl Rendering {
    /// Makes the answer and returns the object with it. If there is much metadata, or if many
    /// values have to be combined, this work takes long and does not run on a network thread.
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

    /// The approximate number of bytes to process. A single value does not count, because it is not
    /// copied.
    fn cost_bytes(&self) -> usize {
        /// The approximate cost of a metadata pair in addition to its bytes.
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

/// An answer with the value of one sibling and all its headers.
fn one(object: &Object, sibling: &Sibling, choice: Choice, bucket: &Bucket, generation: Generation) -> Reply {
    let meta = &sibling.meta;
    let mut answer = reply::bare(StatusCode::OK, sibling.value.clone());
    answer.headers.append_lines(&metadata::user_lines(meta));
    set_common(&mut answer, object, choice);
    answer.set(name::CONTENT_TYPE, header_value(&metadata::content_type_of(meta)));
    if let Some(encoding) = &meta.content_encoding {
        // Left out where it cannot be a header: no client could decode an encoding of another name.
        answer.set(name::CONTENT_ENCODING, encoding);
    }
    answer.set(name::LINK, links::format(&meta.links, &bucket.name, generation));
    if meta.deleted {
        answer.set(name::X_RIAK_DELETED, "true");
    }
    answer
}

/// The value of a header. A value that was stored over another interface may not be valid in a
/// header; it is replaced, so that the header is not missing.
fn header_value(bytes: &Bytes) -> &[u8] {
    if is_value(bytes) { bytes } else { b"application/octet-stream" }
}

/// The answer 300 with the vtags of all siblings, one per line.
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

/// The answer 300 with all siblings, one per part.
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

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::Metadata;

    #[test]
    fn an_encoding_that_cannot_be_a_header_is_left_out() {
        let shown = |encoding: &'static [u8]| {
            let meta = Metadata { content_encoding: Some(Bytes::from_static(encoding)), ..Metadata::default() };
            let sibling = Sibling { value: Bytes::from_static(b"value"), meta };
            let object = Object { clock: VectorClock::default(), siblings: vec![sibling] };
            let answer = one(&object, &object.siblings[0], Choice::One(0), &Bucket::untyped("b"), Generation::Buckets);
            answer.headers.get(name::CONTENT_ENCODING).map(<[u8]>::to_vec)
        };
        assert_eq!(shown(b"gzip").as_deref(), Some(&b"gzip"[..]));
        assert_eq!(shown(b"gzip\r\nX-Other: 1"), None);
    }
}
