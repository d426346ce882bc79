//! Links in `Link` headers, in the forms of the two URL generations (docs/riak/http-api.md §5.4).
//!
//! A stored link has a bucket, a key and a tag, but no bucket type. Every answer also has a link to
//! the bucket, with `rel="up"`. A client may send that link back, and it is ignored then.

use super::path::Generation;
use super::url;
use bytes::Bytes;
use ombak_types::Link;

/// The header is not a valid list of links for this generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLink;

/// The error text that shows the form of a link, in Riak's words.
pub fn bad_link_text(generation: Generation) -> &'static str {
    match generation {
        Generation::Riak => "Invalid Link header. Links must be of the form\n</riak/BUCKET/KEY>; riaktag=\"TAG\"\n",
        Generation::Buckets | Generation::Types => {
            "Invalid Link header. Links must be of the form\n</buckets/BUCKET/keys/KEY>; riaktag=\"TAG\"\n"
        }
    }
}

/// Parses the `Link` header of an object in `bucket`.
pub fn parse(header: &[u8], bucket: &[u8], generation: Generation) -> Result<Vec<Link>, BadLink> {
    let mut links = Vec::new();
    let mut rest = header.trim_ascii();
    while !rest.is_empty() {
        let (target, after) = enclosed(rest, b'<', b'>').ok_or(BadLink)?;
        let (name, value, after) = parameter(after).ok_or(BadLink)?;
        match (name, address(target, generation).ok_or(BadLink)?) {
            (b"riaktag", (bucket, Some(key))) => links.push(Link { bucket, key, tag: url::unquote(value) }),
            (b"rel", (own, None)) if value == b"up" && own == bucket => {}
            _ => return Err(BadLink),
        }
        rest = match after.trim_ascii_start() {
            [] => &[],
            [b',', more @ ..] => more.trim_ascii(),
            _ => return Err(BadLink),
        };
    }
    Ok(links)
}

/// Splits `; name="value"` into name, value, and the rest.
fn parameter(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let bytes = bytes.trim_ascii_start().strip_prefix(b";")?.trim_ascii_start();
    let (name, after) = bytes.split_at_checked(bytes.iter().position(|&b| b == b'=')?)?;
    let (value, after) = enclosed(after.strip_prefix(b"=")?, b'"', b'"')?;
    Some((name, value, after)).filter(|(_, value, _)| !value.is_empty())
}

fn enclosed(bytes: &[u8], open: u8, close: u8) -> Option<(&[u8], &[u8])> {
    let inside = bytes.strip_prefix(&[open])?;
    let (inside, after) = inside.split_at_checked(inside.iter().position(|&b| b == close)?)?;
    Some((inside, after.strip_prefix(&[close])?))
}

/// The bucket, and the key if there is one, that the address of a link names.
fn address(target: &[u8], generation: Generation) -> Option<(Bytes, Option<Bytes>)> {
    let parts: Vec<&[u8]> = target.strip_prefix(b"/")?.split(|&b| b == b'/').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return None;
    }
    match (generation, parts.as_slice()) {
        (Generation::Riak, [b"riak", bucket, key]) => Some((url::unquote(bucket), Some(url::unquote(key)))),
        (Generation::Riak, [b"riak", bucket]) => Some((url::unquote(bucket), None)),
        (Generation::Buckets | Generation::Types, [b"buckets", bucket, b"keys", key]) => {
            Some((url::unquote(bucket), Some(url::unquote(key))))
        }
        (Generation::Buckets | Generation::Types, [b"buckets", bucket]) => Some((url::unquote(bucket), None)),
        _ => None,
    }
}

/// Appends the value of the `Link` header of an object in `bucket`: its links, and then the link to
/// its bucket.
pub fn write(links: &[Link], bucket: &[u8], generation: Generation, out: &mut Vec<u8>) {
    for link in links {
        write_address(&link.bucket, Some(&link.key), generation, out);
        out.extend_from_slice(b"; riaktag=\"");
        url::quote_into(&link.tag, out);
        out.extend_from_slice(b"\", ");
    }
    // Every object has this link to its bucket.
    write_address(bucket, None, generation, out);
    out.extend_from_slice(b"; rel=\"up\"");
}

/// Appends the path of an object, or of a bucket if there is no key, in angle brackets.
fn write_address(bucket: &[u8], key: Option<&[u8]>, generation: Generation, out: &mut Vec<u8>) {
    let (before, between): (&[u8], &[u8]) = match generation {
        Generation::Riak => (b"</riak/", b"/"),
        Generation::Buckets | Generation::Types => (b"</buckets/", b"/keys/"),
    };
    out.extend_from_slice(before);
    url::quote_into(bucket, out);
    if let Some(key) = key {
        out.extend_from_slice(between);
        url::quote_into(key, out);
    }
    out.push(b'>');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn link(bucket: &str, key: &str, tag: &str) -> Link {
        let copy = |s: &str| Bytes::copy_from_slice(s.as_bytes());
        Link { bucket: copy(bucket), key: copy(key), tag: copy(tag) }
    }

    fn written(links: &[Link], bucket: &[u8], generation: Generation) -> String {
        let mut out = Vec::new();
        write(links, bucket, generation, &mut out);
        String::from_utf8(out).expect("a header is text")
    }

    fn buckets(header: &str) -> Result<Vec<Link>, BadLink> {
        parse(header.as_bytes(), b"b", Generation::Buckets)
    }

    #[test]
    fn links_of_the_newer_form() {
        let two = "</buckets/b/keys/k1>; riaktag=\"friend\", </buckets/b/keys/k2>;riaktag=\"a, b\"";
        assert_eq!(buckets(two), Ok(vec![link("b", "k1", "friend"), link("b", "k2", "a, b")]));
        assert_eq!(buckets("</buckets/b%20c/keys/k%2F1>; riaktag=\"a%20b\""), Ok(vec![link("b c", "k/1", "a b")]));
        assert_eq!(buckets("</buckets/b>; rel=\"up\""), Ok(vec![]));
        assert_eq!(buckets(""), Ok(vec![]));
    }

    #[test]
    fn everything_else_is_refused() {
        for bad in [
            "garbage",
            "</riak/b/k2>; riaktag=\"other\"",
            "</buckets/b/keys/k1>",
            "</buckets/b/keys/k1>; riaktag=\"\"",
            "</buckets/b/keys/k1>; rel=\"up\"",
            "</buckets/other>; rel=\"up\"",
            "</buckets/b>; rel=\"down\"",
            "</types/t/buckets/b/keys/k1>; riaktag=\"x\"",
            "</buckets/b/keys/k1>; riaktag=\"x\" </buckets/b/keys/k1>; riaktag=\"x\"",
            "</buckets/b/keys/>; riaktag=\"x\"",
            "<",
        ] {
            assert_eq!(buckets(bad), Err(BadLink), "{bad}");
        }
    }

    #[test]
    fn links_of_the_older_form() {
        let header = b"</riak/b/k2>; riaktag=\"other\", </riak/b>; rel=\"up\"";
        assert_eq!(parse(header, b"b", Generation::Riak), Ok(vec![link("b", "k2", "other")]));
        assert_eq!(
            written(&[link("b c", "k/1", "a b")], b"b", Generation::Riak),
            "</riak/b+c/k%2F1>; riaktag=\"a+b\", </riak/b>; rel=\"up\""
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            names in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..8), 3), 0..4),
        ) {
            let links: Vec<Link> = names
                .into_iter()
                .map(|n| Link { bucket: n[0].clone().into(), key: n[1].clone().into(), tag: n[2].clone().into() })
                .collect();
            for generation in [Generation::Riak, Generation::Buckets, Generation::Types] {
                let header = written(&links, b"own", generation);
                prop_assert_eq!(parse(header.as_bytes(), b"own", generation), Ok(links.clone()));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(header in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&header, b"b", Generation::Buckets);
        }
    }
}
