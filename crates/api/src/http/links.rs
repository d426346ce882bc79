//! Links in `Link` headers, in the forms of the two URL generations (docs/riak/http-api.md §5.4).
//!
//! A stored link has a bucket, a key and a tag, but no bucket type. Every answer also has a link to
//! the bucket, with `rel="up"`. A client may send that link back, and it is ignored then.

use super::route::Generation;
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

/// Writes the `Link` header of an object in `bucket`: its links, and then the link to its bucket.
pub fn format(links: &[Link], bucket: &[u8], generation: Generation) -> String {
    let mut out = String::new();
    for link in links {
        let (bucket, key, tag) = (url::quote(&link.bucket), url::quote(&link.key), url::quote(&link.tag));
        out += &match generation {
            Generation::Riak => format!("</riak/{bucket}/{key}>; riaktag=\"{tag}\", "),
            Generation::Buckets | Generation::Types => {
                format!("</buckets/{bucket}/keys/{key}>; riaktag=\"{tag}\", ")
            }
        };
    }
    // Every object has this link to its bucket.
    out.push_str(if generation == Generation::Riak { "</riak/" } else { "</buckets/" });
    out.push_str(&url::quote(bucket));
    out.push_str(">; rel=\"up\"");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn link(bucket: &str, key: &str, tag: &str) -> Link {
        let copy = |s: &str| Bytes::copy_from_slice(s.as_bytes());
        Link { bucket: copy(bucket), key: copy(key), tag: copy(tag) }
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
            format(&[link("b c", "k/1", "a b")], b"b", Generation::Riak),
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
                let header = format(&links, b"own", generation);
                prop_assert_eq!(parse(header.as_bytes(), b"own", generation), Ok(links.clone()));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(header in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&header, b"b", Generation::Buckets);
        }
    }
}
