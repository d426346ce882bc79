//! Common parts of index queries over both interfaces: the field and its terms, the regular
//! expression, the continuation (docs/riak/pb-api.md §10, docs/riak/http-api.md §6).
//!
//! A continuation is the position at which a page ended: `{Term, Key}`, or only the key if the
//! query was for keys, in the external term format and base64. Clients send it back unchanged.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use num_bigint::BigInt;
use ombak_kv::{IndexMatch, IndexQuery, QueryRange, compile_pattern};
use ombak_types::etf::{self, BinaryText, StringText, Term};
use ombak_types::object::BadIndexEntry;
use ombak_types::{Bucket, IndexEntry, IndexTerm};
use std::fmt;
use std::ops::Bound;

const KEY_FIELD: &[u8] = b"$key";
const BUCKET_FIELD: &[u8] = b"$bucket";

/// The terms that a query asks for, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span<'a> {
    /// A single term.
    Equal(&'a [u8]),
    /// A range of terms, including both ends.
    Range(&'a [u8], &'a [u8]),
}

impl<'a> Span<'a> {
    fn ends(self) -> (&'a [u8], &'a [u8]) {
        match self {
            Self::Equal(term) => (term, term),
            Self::Range(from, to) => (from, to),
        }
    }
}

/// The options of a query in addition to field and terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryOptions<'a> {
    pub(crate) results_max: Option<usize>,
    pub(crate) continuation: Option<&'a [u8]>,
    pub(crate) pattern: Option<&'a [u8]>,
}

/// Why a query is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadQuery {
    UnknownField(Bytes),
    BadTerm { field: Bytes, text: Bytes },
    PatternOnIntegers,
    BadPattern { pattern: Bytes, why: String },
    BadContinuation(Bytes),
}

/// The first two texts are Riak's. The HTTP interface words the others in its own way.
impl fmt::Display for BadQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField(field) => write!(f, "{{unknown_field_type,{}}}", BinaryText(field)),
            Self::BadTerm { field, text } => {
                write!(f, "{{field_parsing_failed,{{{},{}}}}}", BinaryText(field), BinaryText(text))
            }
            Self::PatternOnIntegers => f.write_str("Can not use term regular expression in integer query"),
            Self::BadPattern { pattern, why } => {
                write!(f, "Invalid term regular expression {} : {}", BinaryText(pattern), StringText(why))
            }
            Self::BadContinuation(text) => write!(f, "{{invalid_continuation,{}}}", BinaryText(text)),
        }
    }
}

/// Builds the query of a request.
pub(crate) fn query(
    bucket: Bucket,
    field: &[u8],
    span: Span<'_>,
    options: &QueryOptions<'_>,
) -> Result<IndexQuery, BadQuery> {
    let range = query_range(field, span)?;
    let pattern = options.pattern.map(|pattern| compile(&range, pattern)).transpose()?;
    let after = options.continuation.map(|text| read_continuation(&range, text)).transpose()?;
    Ok(IndexQuery {
        bucket,
        range,
        after,
        results_max: options.results_max,
        pattern,
        shows_tombstones: field == KEY_FIELD,
    })
}

/// Whether results may include their terms: only those of a range query on an ordinary index.
pub(crate) fn has_terms(range: &QueryRange, span: Span<'_>) -> bool {
    matches!(range, QueryRange::Terms { .. }) && matches!(span, Span::Range(..))
}

fn query_range(field: &[u8], span: Span<'_>) -> Result<QueryRange, BadQuery> {
    let (from, to) = span.ends();
    let copy = Bytes::copy_from_slice;
    if field == BUCKET_FIELD {
        return Ok(QueryRange::Keys { from: Bound::Unbounded, to: Bound::Unbounded });
    }
    if field == KEY_FIELD {
        return Ok(QueryRange::Keys { from: Bound::Included(copy(from)), to: Bound::Included(copy(to)) });
    }
    let term = |text: &[u8]| {
        IndexEntry::parse(field, text).map_err(|bad| match bad {
            BadIndexEntry::UnknownFieldType => BadQuery::UnknownField(copy(field)),
            BadIndexEntry::NotAnInteger => BadQuery::BadTerm { field: copy(field), text: copy(text) },
        })
    };
    let (from, to) = (term(from)?, term(to)?);
    Ok(QueryRange::Terms { field: from.field, from: from.term, to: to.term })
}

fn compile(range: &QueryRange, pattern: &[u8]) -> Result<regex::bytes::Regex, BadQuery> {
    if let QueryRange::Terms { from: IndexTerm::Int(_), .. } = range {
        return Err(BadQuery::PatternOnIntegers);
    }
    let bad = |why: String| BadQuery::BadPattern { pattern: Bytes::copy_from_slice(pattern), why };
    let text = std::str::from_utf8(pattern).map_err(|error| bad(error.to_string()))?;
    if recurses(text) {
        return Err(bad("recursion is not supported".into()));
    }
    compile_pattern(text).map_err(|error| match error {
        regex::Error::Syntax(text) => bad(text.lines().last().unwrap_or_default().trim_start_matches("error: ").into()),
        error => bad(error.to_string()),
    })
}

/// Whether the pattern contains PCRE's recursion `(?R)`, which this library would read as a flag
/// about line ends.
fn recurses(pattern: &str) -> bool {
    pattern.match_indices("(?R").any(|(at, _)| {
        let before = pattern.get(..at).unwrap_or_default();
        let escapes = before.len() - before.trim_end_matches('\\').len();
        escapes % 2 == 0
    })
}

/// The position at which a page ended, for the client to send back.
pub(crate) fn continuation(last: &IndexMatch) -> String {
    let key = Term::Binary(last.key.clone());
    let term = match &last.term {
        None => key,
        Some(IndexTerm::Bin(term)) => Term::pair(Term::Binary(term.clone()), key),
        Some(IndexTerm::Int(term)) => {
            let small = i64::try_from(term).map(Term::Int);
            Term::pair(small.unwrap_or_else(|_| Term::Big(term.clone())), key)
        }
    };
    BASE64.encode(etf::encode(&term))
}

/// Parses the position at which the page before ended, as [`continuation`] has written it.
pub(crate) fn read_continuation(range: &QueryRange, text: &[u8]) -> Result<(Option<IndexTerm>, Bytes), BadQuery> {
    let bad = || BadQuery::BadContinuation(Bytes::copy_from_slice(text));
    let bytes = BASE64.decode(text).map_err(|_| bad())?;
    let place = etf::decode(&bytes).map_err(|_| bad())?;
    match (range, place) {
        (QueryRange::Keys { .. }, Term::Binary(key)) => Ok((None, key)),
        (QueryRange::Terms { from, .. }, place) => {
            let [term, Term::Binary(key)] = place.as_tuple::<2>().ok_or_else(bad)? else { return Err(bad()) };
            let term = match (from, term) {
                (IndexTerm::Bin(_), Term::Binary(term)) => IndexTerm::Bin(term.clone()),
                (IndexTerm::Int(_), Term::Int(term)) => IndexTerm::Int(BigInt::from(*term)),
                (IndexTerm::Int(_), Term::Big(term)) => IndexTerm::Int(term.clone()),
                _ => return Err(bad()),
            };
            Ok((Some(term), key.clone()))
        }
        _ => Err(bad()),
    }
}

/// A term as clients see it: its bytes, or the number in decimal.
pub(crate) fn term_text(term: &IndexTerm) -> Bytes {
    match term {
        IndexTerm::Bin(term) => term.clone(),
        IndexTerm::Int(term) => term.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(field: &[u8], span: Span<'_>, options: &QueryOptions<'_>) -> Result<IndexQuery, BadQuery> {
        query(Bucket::untyped("b"), field, span, options)
    }

    fn refused(field: &[u8], span: Span<'_>, options: &QueryOptions<'_>) -> String {
        made(field, span, options).unwrap_err().to_string()
    }

    #[test]
    fn fields_and_terms_are_riaks() {
        let none = QueryOptions::default();
        let int = |n: i64| IndexTerm::Int(n.into());
        let range = made(b"AGE_int", Span::Range(b"-5", b"10"), &none).unwrap().range;
        assert_eq!(range, QueryRange::Terms { field: "age_int".into(), from: int(-5), to: int(10) });
        assert!(has_terms(&range, Span::Range(b"", b"")) && !has_terms(&range, Span::Equal(b"")));
        let range = made(b"$key", Span::Equal(b"k"), &none).unwrap().range;
        assert_eq!(range, QueryRange::Keys { from: Bound::Included("k".into()), to: Bound::Included("k".into()) });
        let range = made(b"$bucket", Span::Equal(b"ignored"), &none).unwrap().range;
        assert_eq!(range, QueryRange::Keys { from: Bound::Unbounded, to: Bound::Unbounded });
        assert_eq!(refused(b"zork", Span::Equal(b"1"), &none), "{unknown_field_type,<<\"zork\">>}");
        let text = refused(b"num_int", Span::Equal(b"zork"), &none);
        assert_eq!(text, "{field_parsing_failed,{<<\"num_int\">>,<<\"zork\">>}}");
    }

    #[test]
    fn continuations_come_back_and_others_are_refused() {
        let key = Bytes::from("k");
        let big: BigInt = "123456789012345678901234567890".parse().unwrap();
        for (field, from, term) in [
            (&b"f_bin"[..], &b"a"[..], Some(IndexTerm::Bin("x\0y".into()))),
            (b"f_int", b"1", Some(IndexTerm::Int((-7).into()))),
            (b"f_int", b"1", Some(IndexTerm::Int(big))),
            (b"$key", b"a", None),
            (b"$bucket", b"", None),
        ] {
            let text = continuation(&IndexMatch { term: term.clone(), key: key.clone() });
            let options = QueryOptions { continuation: Some(text.as_bytes()), ..QueryOptions::default() };
            assert_eq!(made(field, Span::Equal(from), &options).unwrap().after, Some((term, key.clone())));
        }
        let of_keys = continuation(&IndexMatch { term: None, key });
        for text in [&b"zork"[..], b"", b"g2EB", of_keys.as_bytes()] {
            let options = QueryOptions { continuation: Some(text), ..QueryOptions::default() };
            assert!(refused(b"f_bin", Span::Equal(b"a"), &options).starts_with("{invalid_continuation,"));
        }
    }

    #[test]
    fn patterns_match_bytes() {
        let options = |pattern: &'static [u8]| QueryOptions { pattern: Some(pattern), ..QueryOptions::default() };
        let query = made(b"f_bin", Span::Range(b"a", b"z"), &options(b"^a.*z$")).unwrap();
        assert!(query.pattern.unwrap().is_match(b"a\xff\xfez"));
        let text = refused(b"f_int", Span::Equal(b"1"), &options(b"a"));
        assert_eq!(text, "Can not use term regular expression in integer query");
        assert!(
            refused(b"f_bin", Span::Equal(b"a"), &options(b"("))
                .starts_with("Invalid term regular expression <<\"(\">> : ")
        );
        let perls = [&b"(?=a)"[..], b"(?<!a)", b"(a)\\1", b"(?>a)", b"(?R)", b"(?R)(?1)", b"\\\\(?R)", b"\\Qa\\E"];
        for perls in perls {
            let text =
                refused(b"f_bin", Span::Equal(b"a"), &QueryOptions { pattern: Some(perls), ..QueryOptions::default() });
            assert!(text.len() > "Invalid term regular expression <<\"\">> : \"\"".len() + perls.len(), "{text}");
        }
        assert!(made(b"f_bin", Span::Equal(b"a"), &options(b"\\((?:\\(?R)")).is_ok(), "an escaped parenthesis");
        let bomb = b"((((a{1,1000}){1,1000}){1,1000}){1,1000})";
        assert!(made(b"f_bin", Span::Equal(b"a"), &options(bomb)).is_err());
    }
}
