//! A request as the resources see it: decoded once, read to its end.

use super::url::{self, Parameters};
use super::wire::head::Head;
use crate::memory::Account;
use bytes::Bytes;
use http::header::{AsHeaderName, HeaderMap};
use http::{Method, Uri};
use ombak_kv::{GetReply, GetRequest, Kv, PutReply, PutRequest};
use ombak_types::Error;
use std::borrow::Cow;
use std::sync::Arc;

/// What a link, a metadata pair or an index entry takes in memory until it has been answered, in bytes.
const PART_BYTES: usize = 256;

/// What an answer may take in memory without being counted: much less than a connection's allowance.
const UNCOUNTED_BYTES_MAX: u64 = 4 << 10;

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
    /// Counts what answering it takes in memory.
    account: Option<Arc<Account>>,
}

impl Request {
    /// From what the server read.
    pub fn new(head: Head, body: Bytes, account: Arc<Account>) -> Self {
        Self { account: Some(account), ..Self::of(head.method, head.uri, head.headers, body) }
    }

    /// Reads an object to answer the request. A large one is read once there is memory for it.
    pub async fn read(&self, kv: &Kv, request: &GetRequest) -> Result<GetReply, Error> {
        let Some(account) = &self.account else { return kv.get(request.clone()).await };
        let reply = kv.read_into(request, &mut account.answer_room()).await?.into_reply()?;
        self.hold(&reply).await?;
        Ok(reply)
    }

    /// Writes an object for the request. What is read to do so, and what it answers, is counted.
    pub async fn write(&self, kv: &Kv, request: PutRequest) -> Result<PutReply, Error> {
        match &self.account {
            Some(account) => kv.put_into(request, &mut account.answer_room()).await,
            None => kv.put(request).await,
        }
    }

    /// Counts the answer that will be made of an object: its values once more, unless it has one that is sent as it is, and
    /// its metadata.
    async fn hold(&self, reply: &GetReply) -> Result<(), Error> {
        let (Some(account), GetReply::Found(object)) = (&self.account, reply) else { return Ok(()) };
        let copied = if object.siblings.len() > 1 { object.value_bytes() } else { 0 };
        let bytes = copied + (object.part_count() * PART_BYTES) as u64;
        if bytes > UNCOUNTED_BYTES_MAX {
            account.hold_answer(bytes).await.map_err(|_| Error::Overload)?;
        }
        Ok(())
    }

    fn of(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Self {
        let parameters = uri.query().map(url::parameters).unwrap_or_default();
        Self { method, uri, headers, body, parameters, account: None }
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
