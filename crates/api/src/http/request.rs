//! A request as the resources see it: decoded once, read to its end.

use super::url::{self, Parameters};
use super::wire::head::Head;
use bytes::Bytes;
use http::header::{AsHeaderName, HeaderMap};
use http::{Method, Uri};
use std::borrow::Cow;

/// A request with its whole body.
pub struct Request {
    /// What to do.
    pub method: Method,
    /// The address as it came.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; empty if there was none.
    pub body: Bytes,
    parameters: Parameters,
}

impl Request {
    /// From what the server read.
    pub fn new(head: Head, body: Bytes) -> Self {
        Self::of(head.method, head.uri, head.headers, body)
    }

    fn of(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Self {
        let parameters = uri.query().map(url::parameters).unwrap_or_default();
        Self { method, uri, headers, body, parameters }
    }

    /// Whether there are query parameters.
    pub fn has_parameters(&self) -> bool {
        !self.parameters.is_empty()
    }

    /// The first value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        self.parameters.iter().find(|(n, _)| n == name.as_bytes()).map(|(_, v)| &v[..])
    }

    /// Whether a query parameter has exactly this value.
    pub fn parameter_is(&self, name: &str, value: &str) -> bool {
        self.parameter(name) == Some(value.as_bytes())
    }

    /// A header; several lines of one name read as one, joined with `, ` (RFC 9110 §5.2).
    pub fn header(&self, name: impl AsHeaderName) -> Option<Cow<'_, [u8]>> {
        let mut lines = self.headers.get_all(name).iter();
        let first = lines.next()?;
        let mut joined = Cow::Borrowed(first.as_bytes());
        for line in lines {
            let joined = joined.to_mut();
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(line.as_bytes());
        }
        Some(joined)
    }

    /// Whether it asks for a representation: GET or HEAD.
    pub fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Whether any of the conditions of RFC 9110 §13 is attached.
    pub fn is_conditional(&self) -> bool {
        use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
        [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE].iter().any(|n| self.headers.contains_key(n))
    }
}

#[cfg(test)]
impl Request {
    /// A request from its start line and headers.
    pub fn sample(method: Method, uri: &str, headers: &[(&str, &str)]) -> Self {
        let mut builder = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let (parts, ()) = builder.body(()).expect("a well-formed request").into_parts();
        Self::of(parts.method, parts.uri, parts.headers, Bytes::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_headers_read_as_one() {
        let request = Request::sample(Method::GET, "/x?r=1&r=2&e", &[("link", "a"), ("link", "b")]);
        assert_eq!(request.header("link").as_deref(), Some(&b"a, b"[..]));
        assert_eq!(request.header("x-none"), None);
        assert_eq!(request.parameter("r"), Some(&b"1"[..]));
        assert_eq!(request.parameter("e"), Some(&b""[..]));
    }
}
