//! Bodies of the type `multipart/mixed`: the siblings of an object, or the results of a link walk
//! (docs/riak/http-api.md §5.1, §5.4).

use super::path::Generation;
use super::{base62, links, metadata};
use bytes::Bytes;
use httpdate::HttpDate;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Sibling};
use std::io::Write;
use std::mem;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A multipart body under construction.
pub struct Multipart {
    boundary: String,
    body: Vec<u8>,
}

impl Multipart {
    /// Creates an empty body. `salt` is data that differs from one content to another, for example
    /// a vector clock.
    pub fn new(salt: &[u8]) -> Self {
        Self { boundary: base62::boundary(salt), body: Vec::new() }
    }

    /// Creates an empty body with room for so many bytes.
    pub fn with_capacity(salt: &[u8], bytes: usize) -> Self {
        Self { body: Vec::with_capacity(bytes), ..Self::new(salt) }
    }

    /// The bytes that it has room for.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.body.capacity()
    }

    /// The content type with the boundary.
    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.boundary)
    }

    /// Adds a part. `headers` are its header lines, each with its line end.
    pub fn push(&mut self, headers: &[u8], content: &[u8]) {
        self.begin_part(headers);
        self.body.extend_from_slice(content);
    }

    /// Adds a part that is a multipart body itself. `fill` adds the parts of that body.
    pub fn push_nested(&mut self, salt: &[u8], fill: impl FnOnce(&mut Self)) {
        let mut nested = Self::new(salt);
        self.begin_part(format!("Content-Type: {}\r\n", nested.content_type()).as_bytes());
        // The nested body is written to its final place, so that it is not copied.
        nested.body = mem::take(&mut self.body);
        fill(&mut nested);
        nested.end();
        self.body = nested.body;
    }

    fn begin_part(&mut self, headers: &[u8]) {
        self.body.extend_from_slice(format!("\r\n--{}\r\n", self.boundary).as_bytes());
        self.body.extend_from_slice(headers);
        self.body.extend_from_slice(b"\r\n");
    }

    fn end(&mut self) {
        self.body.extend_from_slice(format!("\r\n--{}--\r\n", self.boundary).as_bytes());
    }

    /// Returns the complete body.
    pub fn finish(mut self) -> Bytes {
        self.end();
        Bytes::from(self.body)
    }
}

/// The header lines of a part that is a sibling.
pub fn sibling_headers(sibling: &Sibling, bucket: &Bucket, generation: Generation) -> Vec<u8> {
    let meta = &sibling.meta;
    let mut out = Vec::new();
    let mut line = |name: &str, value: &[u8]| {
        // A value with a line end can only have been written over another interface. Such a value
        // is left out, because it would end its line.
        if !name.bytes().chain(value.iter().copied()).any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    };
    line("Content-Type", &metadata::content_type_of(meta));
    if let Some(encoding) = &meta.content_encoding {
        line("Content-Encoding", encoding);
    }
    let mut link = Vec::new();
    links::write(&meta.links, &bucket.name, generation, &mut link);
    line("Link", &link);
    if let Some(vtag) = &meta.vtag {
        line("Etag", vtag);
    }
    if let Some(at) = meta.last_modified {
        line("Last-Modified", http_date(at).to_string().as_bytes());
    }
    if meta.deleted {
        line("X-Riak-Deleted", b"true");
    }
    for (name, value) in &meta.user_meta {
        if let Some(name) = metadata::header_name(name) {
            line(name, value);
        }
    }
    for entry in &meta.indexes {
        if let Ok(field) = std::str::from_utf8(&entry.field) {
            line(&format!("x-riak-index-{field}"), &entry.term.to_text());
        }
    }
    out
}

/// A time in the form of a date header, in whole seconds.
fn http_date(at: UnixMicros) -> HttpDate {
    // The form does not exist for years after 9999.
    const LATEST: Duration = Duration::from_secs(253_402_300_799);
    (UNIX_EPOCH + Duration::from_secs(at.secs()).min(LATEST)).into()
}

/// Appends a time in the form of a date header.
pub fn write_http_date(at: UnixMicros, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(out, "{}", http_date(at));
}

/// The date that lies `ahead` from now.
#[expect(clippy::disallowed_methods, reason = "Expires is a date of the wall clock")]
pub fn http_date_in(ahead: Duration) -> String {
    httpdate::fmt_http_date(SystemTime::now() + ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::{Link, SiblingMeta};

    #[test]
    fn parts_are_laid_out_as_riaks() {
        let mut body = Multipart::new(b"salt");
        let boundary = body.boundary.clone();
        assert_eq!(body.content_type(), format!("multipart/mixed; boundary={boundary}"));
        body.push(b"Content-Type: text/plain\r\n", b"v1");
        body.push(b"", b"");
        let expected = format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain\r\n\r\nv1\r\n--{boundary}\r\n\r\n\r\n--{boundary}--\r\n"
        );
        assert_eq!(body.finish(), expected.as_bytes());
    }

    #[test]
    fn a_sibling_carries_all_its_metadata() {
        let link = Link { bucket: "b".into(), key: "k".into(), tag: "t".into() };
        let sibling = Sibling {
            value: Bytes::new(),
            meta: SiblingMeta {
                vtag: Some("tag".into()),
                last_modified: Some(UnixMicros::from_secs(1_795_209_089)),
                links: vec![link],
                user_meta: vec![("X-Riak-Meta-W".into(), "one".into())],
                indexes: vec![ombak_types::IndexEntry::parse(b"a_bin", b"1").expect("an entry")],
                deleted: true,
                ..SiblingMeta::default()
            },
        };
        let headers = sibling_headers(&sibling, &Bucket::typed("t", "s"), Generation::Types);
        assert_eq!(
            String::from_utf8_lossy(&headers),
            "Content-Type: application/octet-stream\r\n\
             Link: </buckets/b/keys/k>; riaktag=\"t\", </buckets/s>; rel=\"up\"\r\n\
             Etag: tag\r\nLast-Modified: Fri, 20 Nov 2026 21:11:29 GMT\r\nX-Riak-Deleted: true\r\n\
             X-Riak-Meta-W: one\r\nx-riak-index-a_bin: 1\r\n"
        );
    }

    #[test]
    fn any_instant_has_a_date() {
        assert!(http_date(UnixMicros(u64::MAX)).to_string().ends_with("GMT"));
    }
}
