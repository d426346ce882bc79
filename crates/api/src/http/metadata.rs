//! Converts object metadata to headers and back (docs/riak/http-api.md §5).
//!
//! User metadata is stored under its whole header name, spelled as Riak's header parser spells it
//! (`X-Riak-Meta-Foo`). Names and values that were written over another interface may be invalid in
//! headers or change how an answer is parsed. They are left out of HTTP answers and stay stored.

use super::links;
use super::path::Generation;
use super::reply::{self, Reply};
use super::request::Request;
use super::wire::headers::{is_name, is_value, push_line};
use super::wire::request_lines::line;
use bytes::Bytes;
use http::StatusCode;
use ombak_kv::expiry::TTL_NAME;
use ombak_types::object::{BadIndexEntry, DEFAULT_CONTENT_TYPE};
use ombak_types::{Bucket, IndexEntry, SiblingMeta};

const META_PREFIX: &str = "x-riak-meta-";
const INDEX_PREFIX: &str = "x-riak-index-";

/// Parses the metadata of an object that is written. The error is the answer to the client.
pub fn parse(request: &Request, bucket: &Bucket, generation: Generation) -> Result<SiblingMeta, Reply> {
    let (content_type, charset) = content_type(request)?;
    Ok(SiblingMeta {
        content_type: Some(content_type),
        charset,
        content_encoding: request.lines.joined_bytes(line::CONTENT_ENCODING),
        links: match request.header(line::LINK) {
            None => Vec::new(),
            Some(header) => links::parse(&header, &bucket.name, generation)
                .map_err(|_| reply::text(StatusCode::BAD_REQUEST, links::bad_link_text(generation)))?,
        },
        user_meta: user_meta(request),
        indexes: indexes(request)?,
        ..SiblingMeta::default()
    })
}

/// The media type and the character set of the body. Other parameters stay with the media type.
fn content_type(request: &Request) -> Result<(Bytes, Option<Bytes>), Reply> {
    let Some(header) = request.lines.joined_bytes(line::CONTENT_TYPE).filter(|v| !v.trim_ascii().is_empty()) else {
        return Err(reply::text(StatusCode::BAD_REQUEST, "Missing Content-Type request header"));
    };
    let mut parts = header.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    let media_type = parts.next().unwrap_or_default();
    let mut halves = media_type.split(|&b| b == b'/').map(<[u8]>::is_empty);
    if (halves.next(), halves.next(), halves.next()) != (Some(false), Some(false), None) {
        let text = String::from_utf8_lossy(&header).into_owned();
        let text = format!("\"{text}\" is not a valid media type for the Content-type header.\n");
        return Err(reply::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let mut parameters = parts.filter(|p| !p.is_empty()).peekable();
    if parameters.peek().is_none() {
        return Ok((header.slice_ref(media_type), None));
    }
    let (mut kept, mut charset) = (media_type.to_vec(), None);
    for parameter in parameters {
        match parameter.split_at_checked(8) {
            Some((name, value)) if name.eq_ignore_ascii_case(b"charset=") => {
                charset = Some(Bytes::copy_from_slice(unquoted(value)));
            }
            _ => {
                kept.extend_from_slice(b"; ");
                kept.extend_from_slice(parameter);
            }
        }
    }
    Ok((Bytes::from(kept), charset))
}

fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|v| v.strip_suffix(b"\"")).unwrap_or(value)
}

/// The user metadata, in the order of the names regardless of their case, as Riak stores it.
fn user_meta(request: &Request) -> Vec<(Bytes, Bytes)> {
    let is_user_meta =
        |name: &[u8]| has_prefix(name, META_PREFIX.as_bytes()) || name.eq_ignore_ascii_case(TTL_NAME.as_bytes());
    let mut named = request.lines.wanted(is_user_meta);
    named.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    named.into_iter().map(|(name, value)| (Bytes::from(title_case(&name)), value)).collect()
}

/// Whether a name begins with a prefix, regardless of case.
fn has_prefix(name: &[u8], prefix: &[u8]) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Capitalises a header name: `x-riak-meta-two-words` becomes `X-Riak-Meta-Two-Words`.
fn title_case(name: &str) -> String {
    let mut upper = true;
    name.chars()
        .map(|c| {
            let out = if upper { c.to_ascii_uppercase() } else { c };
            upper = c == '-';
            out
        })
        .collect()
}

fn indexes(request: &Request) -> Result<Vec<IndexEntry>, Reply> {
    let mut entries = Vec::new();
    for (name, values) in request.lines.wanted(|name| has_prefix(name, INDEX_PREFIX.as_bytes())) {
        let field = name.get(INDEX_PREFIX.len()..).unwrap_or_default();
        for value in index_values(&values) {
            let entry = IndexEntry::parse(field.as_bytes(), value).map_err(|bad| bad_index(bad, field, value))?;
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// The values of an index header. A comma with white space after it separates two values.
fn index_values(header: &[u8]) -> Vec<&[u8]> {
    let (mut values, mut start) = (Vec::new(), 0);
    for (at, pair) in header.windows(2).enumerate() {
        if at >= start && pair[0] == b',' && pair[1].is_ascii_whitespace() {
            values.push(&header[start..at]);
            let white = header[at + 1..].iter().take_while(|b| b.is_ascii_whitespace()).count();
            start = at + 1 + white;
        }
    }
    values.push(&header[start..]);
    values
}

fn bad_index(bad: BadIndexEntry, field: &str, value: &[u8]) -> Reply {
    let text = match bad {
        BadIndexEntry::UnknownFieldType => format!("Unknown field type for field: '{field}'.\n"),
        BadIndexEntry::NotAnInteger => {
            format!("Could not parse field '{field}', value '{}'.\n", String::from_utf8_lossy(value))
        }
    };
    reply::text(StatusCode::BAD_REQUEST, text)
}

/// The content type of a stored value, with its character set.
pub fn content_type_of(meta: &SiblingMeta) -> Bytes {
    let media_type = meta.served_content_type().cloned();
    let media_type = media_type.unwrap_or(Bytes::from_static(DEFAULT_CONTENT_TYPE.as_bytes()));
    match &meta.charset {
        None => media_type,
        Some(charset) => Bytes::from([&media_type[..], b"; charset=", charset].concat()),
    }
}

/// The header lines of user metadata and index entries that are valid headers. There is one line
/// for each name, regardless of case, with its values in their stored order. A name of user
/// metadata is spelled as it was stored; the field of an index has a prefix in lower case
/// (docs/riak/http-api.md §5).
pub fn user_lines(meta: &SiblingMeta) -> Vec<u8> {
    let indexed = meta.indexes.iter().map(|entry| {
        let name = Bytes::from([INDEX_PREFIX.as_bytes(), &entry.field].concat());
        (name, entry.term.to_text())
    });
    let stored = meta.user_meta.iter().filter(|(name, _)| header_name(name).is_some()).cloned();
    let is_header = |(name, value): &(Bytes, Bytes)| is_name(name) && is_value(value);
    let mut pairs: Vec<(Bytes, Bytes)> = stored.chain(indexed).filter(is_header).collect();
    // The sort is stable, so the values of one name keep their order. Sorting also keeps the time
    // for many pairs from growing with their square.
    pairs.sort_by_cached_key(|(name, _)| name.to_ascii_lowercase());
    let mut lines = Vec::new();
    for same in pairs.chunk_by(|(one, _), (other, _)| one.eq_ignore_ascii_case(other)) {
        let values: Vec<&[u8]> = same.iter().map(|(_, value)| &value[..]).collect();
        push_line(&mut lines, &same[0].0, &values.join(&b", "[..]));
    }
    lines
}

/// The stored name of user metadata, if it is valid as a header name.
pub fn header_name(name: &[u8]) -> Option<&str> {
    if !is_name(name) || is_reserved(name) {
        return None;
    }
    std::str::from_utf8(name).ok()
}

/// Whether a name is reserved, because the header says how an answer is framed or what the object
/// is. User metadata must not imitate such a header.
fn is_reserved(name: &[u8]) -> bool {
    const RESERVED: [&str; 27] = [
        "accept-ranges",
        "allow",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "date",
        "etag",
        "expires",
        "keep-alive",
        "last-modified",
        "link",
        "location",
        "proxy-authenticate",
        "proxy-connection",
        "server",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "vary",
        "www-authenticate",
        "x-riak-deleted",
        "x-riak-vclock",
    ];
    RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use ombak_types::IndexTerm;
    use ombak_types::object::VAL_ENCODING_TERM;

    fn parsed(headers: &[(&str, &str)]) -> Result<SiblingMeta, u16> {
        let request = Request::sample(Method::PUT, "/buckets/b/keys/k", headers);
        parse(&request, &Bucket::untyped("b"), Generation::Buckets).map_err(|r| r.status.as_u16())
    }

    #[test]
    fn the_character_set_is_kept_apart() {
        let meta = parsed(&[("content-type", "application/json; Charset=\"utf-8\"; v=1")]).expect("readable");
        assert_eq!(meta.content_type.as_deref(), Some(&b"application/json; v=1"[..]));
        assert_eq!(meta.charset.as_deref(), Some(&b"utf-8"[..]));
        assert_eq!(&content_type_of(&meta)[..], b"application/json; v=1; charset=utf-8");
    }

    #[test]
    fn a_value_that_riak_stored_as_a_term_is_served_as_one() {
        let content_type = Some("text/plain".into());
        let meta = SiblingMeta { content_type, val_encoding: VAL_ENCODING_TERM, ..SiblingMeta::default() };
        assert_eq!(&content_type_of(&meta)[..], b"application/x-erlang-binary");
    }

    #[test]
    fn a_content_type_is_needed() {
        assert_eq!(parsed(&[]), Err(400));
        assert_eq!(parsed(&[("content-type", "text")]), Err(415));
        assert_eq!(parsed(&[("content-type", "/plain")]), Err(415));
    }

    #[test]
    fn user_metadata_keeps_its_whole_name() {
        let meta = parsed(&[
            ("content-type", "text/plain"),
            ("x-riak-meta-two-words", "b c"),
            ("X-Riak-Meta-Foo", "Bar"),
            ("X-Riak-Meta-Foo", "Dup"),
        ]);
        let mut pairs = meta.expect("readable").user_meta;
        pairs.sort();
        assert_eq!(
            pairs,
            [("X-Riak-Meta-Foo", "Bar, Dup"), ("X-Riak-Meta-Two-Words", "b c")]
                .map(|(n, v)| (Bytes::from(n), Bytes::from(v)))
        );
    }

    #[test]
    fn index_values_are_separated_by_comma_and_space() {
        let meta = parsed(&[
            ("content-type", "text/plain"),
            ("X-Riak-Index-Num_int", "100,  -101"),
            ("x-riak-index-name_bin", "a,b, c"),
        ]);
        let mut entries = meta.expect("readable").indexes;
        entries.sort();
        let bin = |t| IndexEntry { field: "name_bin".into(), term: IndexTerm::Bin(t) };
        let int = |text: &str| IndexEntry::parse(b"num_int", text.as_bytes()).expect("an integer");
        assert_eq!(entries, [bin("a,b".into()), bin("c".into()), int("-101"), int("100")]);
        assert_eq!(parsed(&[("content-type", "text/plain"), ("x-riak-index-num_int", "zork")]), Err(400));
        assert_eq!(parsed(&[("content-type", "text/plain"), ("x-riak-index-zork", "1")]), Err(400));
    }

    #[test]
    fn metadata_of_other_interfaces_cannot_forge_headers() {
        let pair = |n: &'static str, v: &'static str| (Bytes::from(n), Bytes::from(v));
        let meta = SiblingMeta {
            user_meta: vec![
                pair("foo", "bar"),
                pair("Content-Length", "0"),
                pair("no header", "x"),
                pair("x", "a\r\nX-Evil: 1"),
                pair("transfer-encoding", "chunked"),
                pair("X-Riak-Vclock", "forged"),
            ],
            ..SiblingMeta::default()
        };
        assert_eq!(user_lines(&meta), b"foo: bar\r\n");
    }

    #[test]
    fn one_name_has_one_line_and_keeps_its_spelling() {
        let pair = |n: &'static str, v: &'static str| (Bytes::from(n), Bytes::from(v));
        let entry = |field: &[u8], value: &[u8]| IndexEntry::parse(field, value).expect("an entry");
        let meta = SiblingMeta {
            user_meta: vec![pair("X-Riak-Meta-b", "2"), pair("X-Riak-Meta-A", "1"), pair("x-riak-meta-B", "3")],
            indexes: vec![entry(b"n_int", b"5"), entry(b"name_bin", b"z"), entry(b"name_bin", b"a")],
            ..SiblingMeta::default()
        };
        assert_eq!(
            String::from_utf8_lossy(&user_lines(&meta)),
            "x-riak-index-n_int: 5\r\nx-riak-index-name_bin: z, a\r\nX-Riak-Meta-A: 1\r\nX-Riak-Meta-b: 2, 3\r\n"
        );
    }
}
