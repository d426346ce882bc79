//! Conditional requests (RFC 9110 §13), in the order in which Riak's web server takes the conditions.
//!
//! What it is not: the place where a condition on a write is made atomic. That is the engine's; here a condition is
//! held against what was read.

use super::request::Request;
use super::wire::request_lines::{LineName, line};
use ombak_types::time::UnixMicros;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a representation is recognised by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag without its quotes.
    pub etag: Option<String>,
    /// When it last changed.
    pub last_modified: Option<UnixMicros>,
}

/// How the conditions of a request came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Proceed,
    /// The client has it already: 304.
    NotModified,
    /// 412.
    Failed,
}

/// Holds the conditions against something that is there.
pub fn check(request: &Request, current: &Validators) -> Verdict {
    let has_tag =
        |list: &[u8]| list.trim_ascii() == b"*" || tags(list).any(|tag| current.etag.as_deref() == Some(tag.as_str()));
    if request.header(line::IF_MATCH).is_some_and(|list| !has_tag(&list)) {
        return Verdict::Failed;
    }
    let modified_secs = current.last_modified.map(UnixMicros::secs);
    if let (Some(limit), Some(modified)) = (date_secs(request, line::IF_UNMODIFIED_SINCE), modified_secs)
        && modified > limit
    {
        return Verdict::Failed;
    }
    if let Some(list) = request.header(line::IF_NONE_MATCH) {
        return match (has_tag(&list), request.is_read()) {
            (false, _) => Verdict::Proceed,
            (true, true) => Verdict::NotModified,
            (true, false) => Verdict::Failed,
        };
    }
    if let (true, Some(limit), Some(modified)) =
        (request.is_read(), date_secs(request, line::IF_MODIFIED_SINCE), modified_secs)
        && modified <= limit
    {
        return Verdict::NotModified;
    }
    Verdict::Proceed
}

/// Whether the conditions of a request fail because nothing is there.
pub fn fails_when_missing(request: &Request) -> bool {
    request.lines.contains(line::IF_MATCH)
}

/// The tags of a list such as `"a", W/"b", c`, without quotes and marks.
fn tags(list: &[u8]) -> impl Iterator<Item = String> {
    list.split(|&b| b == b',').map(|tag| {
        let tag = tag.trim_ascii();
        let tag = tag.strip_prefix(b"W/").unwrap_or(tag);
        let tag = tag.strip_prefix(b"\"").unwrap_or(tag);
        String::from_utf8_lossy(tag.strip_suffix(b"\"").unwrap_or(tag)).into_owned()
    })
}

/// Seconds since the Unix epoch of a date header; one that is no date does not count.
fn date_secs(request: &Request, name: LineName) -> Option<u64> {
    let date: SystemTime = httpdate::parse_http_date(request.lines.get_text(name)?).ok()?;
    Some(date.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    const OLD: &str = "Thu, 01 Jan 2015 00:00:00 GMT";
    const THEN: &str = "Fri, 20 Nov 2026 21:11:29 GMT";

    fn verdict(method: Method, headers: &[(&str, &str)]) -> Verdict {
        let modified =
            date_secs(&Request::sample(Method::GET, "/", &[("if-modified-since", THEN)]), line::IF_MODIFIED_SINCE);
        let current = Validators {
            etag: Some("tag".into()),
            // Half a second past the full second that clients see.
            last_modified: modified.map(|s| UnixMicros(s * 1_000_000 + 500_000)),
        };
        check(&Request::sample(method, "/", headers), &current)
    }

    #[test]
    fn reads_are_not_repeated_and_not_of_the_wrong_version() {
        let get = |name, value| verdict(Method::GET, &[(name, value)]);
        assert_eq!(get("if-none-match", "\"tag\""), Verdict::NotModified);
        assert_eq!(get("if-none-match", "\"x\", W/\"tag\""), Verdict::NotModified);
        assert_eq!(get("if-none-match", "*"), Verdict::NotModified);
        assert_eq!(get("if-none-match", "\"zork\""), Verdict::Proceed);
        assert_eq!(get("if-match", "\"zork\""), Verdict::Failed);
        assert_eq!(get("if-match", "\"tag\""), Verdict::Proceed);
        assert_eq!(get("if-match", "*"), Verdict::Proceed);
        assert_eq!(get("if-modified-since", THEN), Verdict::NotModified);
        assert_eq!(get("if-modified-since", OLD), Verdict::Proceed);
        assert_eq!(get("if-modified-since", "zork"), Verdict::Proceed);
        assert_eq!(get("if-unmodified-since", OLD), Verdict::Failed);
        assert_eq!(get("if-unmodified-since", THEN), Verdict::Proceed);
    }

    #[test]
    fn writes_fail_instead() {
        let put = |name, value| verdict(Method::PUT, &[(name, value)]);
        assert_eq!(put("if-none-match", "*"), Verdict::Failed);
        assert_eq!(put("if-match", "\"zork\""), Verdict::Failed);
        assert_eq!(put("if-match", "\"tag\""), Verdict::Proceed);
        assert_eq!(put("if-modified-since", THEN), Verdict::Proceed);
        assert_eq!(put("if-unmodified-since", OLD), Verdict::Failed);
    }
}
