//! A request as the resources see it: decoded once, read to its end.

use super::url::Parameters;
use super::wire::head::Head;
#[cfg(test)]
use super::wire::head::HeadParser;
use super::wire::request_lines::{LineName, RequestLines, line};
use super::wire::target::Target;
use crate::memory::Account;
use bytes::Bytes;
#[cfg(test)]
use bytes::BytesMut;
use http::Method;
use ombak_kv::{GetReply, GetRequest, Kv, PutReply, PutRequest, Read};
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
    /// Its address.
    pub target: Target,
    /// The header lines.
    pub lines: RequestLines,
    /// The body; empty if there was none.
    pub body: Bytes,
    parameters: Parameters,
    /// Counts what answering it takes in memory.
    account: Option<Arc<Account>>,
}

impl Request {
    /// From what the server read.
    pub fn new(head: Head, body: Bytes, account: Arc<Account>) -> Self {
        Self { account: Some(account), ..Self::of(head.method, head.target, head.lines, body) }
    }

    /// Reads an object to answer the request. A large one is read once there is memory for it.
    pub async fn read(&self, kv: &Kv, request: &GetRequest) -> Result<Read, Error> {
        let Some(account) = &self.account else { return kv.read(request).await };
        let read = kv.read_into(request, &mut account.answer_room()).await?;
        // A single value is sent as it is, and has no metadata that is copied for each pair.
        if let Read::Reply(reply) = &read {
            self.hold(reply).await?;
        }
        Ok(read)
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

    fn of(method: Method, target: Target, lines: RequestLines, body: Bytes) -> Self {
        let parameters = target.query_bytes().map(Parameters::read).unwrap_or_default();
        Self { method, target, lines, body, parameters, account: None }
    }

    /// Whether there are query parameters.
    pub fn has_parameters(&self) -> bool {
        !self.parameters.is_empty()
    }

    /// The first value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        self.parameters.get(name.as_bytes())
    }

    /// Whether a query parameter has exactly this value.
    pub fn parameter_is(&self, name: &str, value: &str) -> bool {
        self.parameter(name) == Some(value.as_bytes())
    }

    /// A header; several lines of one name read as one, joined with `, ` (RFC 9110 §5.2).
    pub fn header(&self, name: LineName) -> Option<Cow<'_, [u8]>> {
        self.lines.joined(name)
    }

    /// Whether it asks for a representation: GET or HEAD.
    pub fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Whether any of the conditions of RFC 9110 §13 is attached.
    pub fn is_conditional(&self) -> bool {
        const CONDITIONS: [LineName; 4] =
            [line::IF_MATCH, line::IF_NONE_MATCH, line::IF_MODIFIED_SINCE, line::IF_UNMODIFIED_SINCE];
        CONDITIONS.iter().any(|name| self.lines.contains(*name))
    }
}

#[cfg(test)]
impl Request {
    /// A request from its start line and headers.
    pub fn sample(method: Method, uri: &str, headers: &[(&str, &str)]) -> Self {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = format!("{method} {uri} HTTP/1.1\r\n{lines}\r\n");
        let mut parser = HeadParser::new(text.len(), headers.len().max(1));
        let head = parser.next(&mut BytesMut::from(&text[..])).expect("a well-formed head").expect("a whole head");
        Self::of(head.method, head.target, head.lines, Bytes::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_headers_read_as_one() {
        let request = Request::sample(Method::GET, "/x?r=1&r=2&e", &[("link", "a"), ("link", "b")]);
        assert_eq!(request.header(line::LINK).as_deref(), Some(&b"a, b"[..]));
        assert_eq!(request.header(LineName::new("x-none")), None);
        assert_eq!(request.parameter("r"), Some(&b"1"[..]));
        assert_eq!(request.parameter("e"), Some(&b""[..]));
    }
}
