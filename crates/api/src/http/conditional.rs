//! Conditional requests (RFC 9110 §13). The conditions are checked in the order of Riak's web
//! server.
//!
//! What it is not: it does not make a conditional write atomic; the engine does. Here a condition
//! is compared with what was read.

use super::request::Request;
use super::wire::request_lines::{LineName, line};
use ombak_types::time::UnixMicros;
use std::time::{SystemTime, UNIX_EPOCH};

/// The validators of a representation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag, without its quotes.
    pub etag: Option<String>,
    /// The time of the last change.
    pub last_modified: Option<UnixMicros>,
}

/// The result of checking the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request may be executed.
    Proceed,
    /// The client already has this version: the answer is 304.
    NotModified,
    /// A condition failed: the answer is 412.
    Failed,
}

/// Checks the conditions for a resource that exists.
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

/// Whether the conditions fail because the resource does not exist.
pub fn fails_when_missing(request: &Request) -> bool {
    request.lines.contains(line::IF_MATCH)
}

/// The tags of a list such as `"a", W/"b", c`, without their quotes and the mark of weak tags.
fn tags(list: &[u8]) -> impl Iterator<Item = String> {
    list.split(|&b| b == b',').map(|tag| {
        let tag = tag.trim_ascii();
        let tag = tag.strip_prefix(b"W/").unwrap_or(tag);
        let tag = tag.strip_prefix(b"\"").unwrap_or(tag);
        String::from_utf8_lossy(tag.strip_suffix(b"\"").unwrap_or(tag)).into_owned()
    })
}

/// The seconds since the Unix epoch in a date header. An invalid date is ignored.
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
            // The time lies half a second after the full second that clients see.
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
