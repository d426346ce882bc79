//! How objects appear in answers: headers, the list of siblings, multipart bodies.

use crate::http::conditional::Validators;
use crate::http::multipart::{self, Multipart};
use crate::http::path::Generation;
use crate::http::reply::{self, Reply};
use crate::http::wire::headers::{is_value, name};
use crate::http::{base62, links, metadata, offload};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use ombak_types::object::DEFAULT_CONTENT_TYPE;
use ombak_types::stored_object::SingleSibling;
use ombak_types::{Bucket, Object, Sibling, VectorClock, stored_object};

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
    STANDARD.encode(stored_object::encode_clock(clock))
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

/// The validators of an object in its stored form.
pub fn single_validators(single: &SingleSibling) -> Validators {
    let etag = single.vtag().map(|tag| String::from_utf8_lossy(tag).into_owned());
    Validators { etag, last_modified: single.last_modified() }
}

/// The content type of an object in its stored form.
pub fn single_content_type(single: &SingleSibling) -> Bytes {
    single.content_type().map_or(Bytes::from_static(DEFAULT_CONTENT_TYPE.as_bytes()), Bytes::copy_from_slice)
}

/// The answer with an object in its stored form. It equals the answer of [`one`], but nothing is
/// decoded for it. This is on the hot path.
pub fn single(single: &SingleSibling, bucket: &Bucket, generation: Generation) -> Reply {
    let mut answer = reply::bare(StatusCode::OK, single.value().clone());
    let headers = &mut answer.headers;
    headers.write(name::X_RIAK_VCLOCK, |out| write_base64(single.clock_bytes(), out));
    // A tag that is not a valid header value is left out.
    if let Some(tag) = single.vtag().map(String::from_utf8_lossy).filter(|tag| is_value(tag.as_bytes())) {
        headers.write(name::ETAG, |out| {
            out.push(b'"');
            out.extend_from_slice(tag.as_bytes());
            out.push(b'"');
        });
    }
    if let Some(at) = single.last_modified() {
        headers.write(name::LAST_MODIFIED, |out| multipart::write_http_date(at, out));
    }
    let content_type = single.content_type().unwrap_or(DEFAULT_CONTENT_TYPE.as_bytes());
    headers.write(name::CONTENT_TYPE, |out| out.extend_from_slice(header_value(content_type)));
    headers.write(name::LINK, |out| links::write(&[], &bucket.name, generation, out));
    if single.is_deleted() {
        answer.set(name::X_RIAK_DELETED, "true");
    }
    answer
}

/// Appends the base 64 text of `bytes`.
fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + base64::encoded_len(bytes.len(), true).unwrap_or(0), 0);
    // This cannot fail: the slice has the length of the text.
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
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
    let clock = stored_object::encode_clock(&object.clock);
    answer.headers.write(name::X_RIAK_VCLOCK, |out| write_base64(&clock, out));
    if let Some(etag) = etag {
        answer.set(name::ETAG, ["\"", &etag, "\""].concat());
    }
    if let Some(at) = last_modified {
        answer.headers.write(name::LAST_MODIFIED, |out| multipart::write_http_date(at, out));
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
        offload::run(self.cost_bytes(), move || {
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
    if !meta.user_meta.is_empty() || !meta.indexes.is_empty() {
        answer.headers.append_lines(&metadata::user_lines(meta));
    }
    set_common(&mut answer, object, choice);
    answer.set(name::CONTENT_TYPE, header_value(&metadata::content_type_of(meta)));
    if let Some(encoding) = &meta.content_encoding {
        // `set` leaves an encoding out that is not a valid header value. No client could decode the
        // body under a substitute name.
        answer.set(name::CONTENT_ENCODING, encoding);
    }
    answer.headers.write(name::LINK, |out| links::write(&meta.links, &bucket.name, generation, out));
    if meta.deleted {
        answer.set(name::X_RIAK_DELETED, "true");
    }
    answer
}

/// The value of a header. A value that was stored over another interface may not be valid in a
/// header; it is replaced, so that the header is not missing.
fn header_value(bytes: &[u8]) -> &[u8] {
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
    let mut parts = Multipart::new(&stored_object::encode_clock(&object.clock));
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
    use crate::http::reply::ReplyBody;
    use ombak_types::SiblingMeta;
    use ombak_types::time::UnixMicros;
    use proptest::option;
    use proptest::prelude::*;

    fn object(vtag: Vec<u8>, content_type: Option<Vec<u8>>, last_modified: Option<u64>, value: Vec<u8>) -> Object {
        let meta = SiblingMeta {
            vtag: Some(vtag.into()),
            content_type: content_type.map(Bytes::from),
            last_modified: last_modified.map(UnixMicros),
            ..SiblingMeta::default()
        };
        Object { clock: VectorClock::new(), siblings: vec![Sibling { value: value.into(), meta }] }
    }

    fn body(reply: &Reply) -> Option<&Bytes> {
        match &reply.body {
            ReplyBody::Whole(bytes) => Some(bytes),
            ReplyBody::Stream(_) => None,
        }
    }

    proptest! {
        #[test]
        fn an_object_as_it_lies_in_the_store_looks_as_the_decoded_one(
            vtag in prop_oneof![proptest::collection::vec(any::<u8>(), 0..8), "[a-zA-Z0-9]{22}".prop_map(String::into_bytes)],
            content_type in option::of(prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..8), "[a-z]{1,5}/[a-z]{1,5}".prop_map(String::into_bytes)
            ]),
            last_modified in option::of(any::<u64>()),
            value in proptest::collection::vec(any::<u8>(), 0..20),
            bucket in proptest::collection::vec(any::<u8>(), 1..8),
        ) {
            let object = object(vtag, content_type, last_modified, value);
            let (mut head, bucket) = (Vec::new(), Bucket::untyped(bucket));
            stored_object::encode_head(&object, &mut head);
            let read = SingleSibling::read(&head.into(), &object.siblings[0].value).expect("what was written");
            let stored = read.expect("one sibling without rare parts");
            for generation in [Generation::Riak, Generation::Buckets, Generation::Types] {
                let shown = single(&stored, &bucket, generation);
                let decoded = one(&object, &object.siblings[0], Choice::One(0), &bucket, generation);
                prop_assert_eq!(shown.headers.as_bytes(), decoded.headers.as_bytes());
                prop_assert_eq!((shown.status, body(&shown)), (decoded.status, body(&decoded)));
            }
            prop_assert_eq!(single_validators(&stored), validators(&object, Choice::One(0)));
            prop_assert_eq!(single_content_type(&stored), metadata::content_type_of(&object.siblings[0].meta));
        }
    }

    #[test]
    fn clocks_of_any_length_are_written() {
        for bytes in [0, 1, 36, 383, 384, 385, 1000] {
            let (clock, mut out) = (vec![7; bytes], Vec::new());
            write_base64(&clock, &mut out);
            assert_eq!(out, STANDARD.encode(&clock).into_bytes());
        }
    }

    #[test]
    fn an_encoding_that_cannot_be_a_header_is_left_out() {
        let shown = |encoding: &'static [u8]| {
            let meta = SiblingMeta { content_encoding: Some(Bytes::from_static(encoding)), ..SiblingMeta::default() };
            let sibling = Sibling { value: Bytes::from_static(b"value"), meta };
            let object = Object { clock: VectorClock::default(), siblings: vec![sibling] };
            let answer = one(&object, &object.siblings[0], Choice::One(0), &Bucket::untyped("b"), Generation::Buckets);
            answer.headers.get(name::CONTENT_ENCODING).map(<[u8]>::to_vec)
        };
        assert_eq!(shown(b"gzip").as_deref(), Some(&b"gzip"[..]));
        assert_eq!(shown(b"gzip\r\nX-Other: 1"), None);
    }
}
