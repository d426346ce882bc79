//! A request as the resources see it: decoded once, with its whole body.

use super::url::Parameters;
use super::wire::head::Head;
#[cfg(test)]
use super::wire::head::HeadParser;
use super::wire::request_lines::{LineName, RequestLines, line};
use super::wire::target::Target;
use crate::access::Session;
use crate::memory::{Account, Held, Kept};
use bytes::Bytes;
#[cfg(test)]
use bytes::BytesMut;
use http::Method;
use ombak_kv::{GetReply, GetRequest, Kv, PutReply, PutRequest, Read};
use ombak_runtime::Tenant;
use ombak_types::Error;
use std::borrow::Cow;
use std::sync::Arc;

/// The memory of a link, a metadata pair or an index entry until the request was answered, in
/// bytes.
const PART_BYTES: usize = 256;

/// The memory of an answer that is not counted, in bytes. It is much smaller than a connection's
/// allowance.
const UNCOUNTED_BYTES_MAX: u64 = 4 << 10;

/// A request with its whole body.
pub struct Request {
    /// The method.
    pub method: Method,
    /// The address from the request line, usually a path and a query.
    pub target: Target,
    /// The header lines.
    pub lines: RequestLines,
    /// The body; empty if there was none.
    pub body: Bytes,
    parameters: Parameters,
    /// Counts the memory that answering the request takes.
    account: Option<Arc<Account>>,
    session: Arc<Session>,
}

impl Request {
    /// Creates the request from what the server has read.
    pub fn new(head: Head, body: Bytes, account: Arc<Account>, session: Arc<Session>) -> Self {
        Self { account: Some(account), ..Self::of(head.method, head.target, head.lines, body, session) }
    }

    /// Who has sent the request, from where, and how that was proved.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Who sent the request, where connections and addresses have shares of work.
    pub fn tenant(&self) -> Tenant {
        self.account.as_ref().map_or_else(Tenant::default, |account| account.tenant())
    }

    /// Reads an object to answer the request. A large object is read only when there is memory for
    /// it.
    pub async fn read(&self, kv: &Kv, request: &GetRequest) -> Result<Read, Error> {
        let Some(account) = &self.account else { return kv.read(request).await };
        let read = kv.read_into(request, &mut account.answer_room()).await?;
        // The answer for [`Read::Single`] copies neither the value nor metadata pairs, so nothing
        // is counted for it.
        if let Read::Reply(reply) = &read {
            self.hold(reply).await?;
        }
        Ok(read)
    }

    /// Writes an object for the request. The memory for reading before the write and for the answer
    /// is counted.
    pub async fn write(&self, kv: &Kv, request: PutRequest) -> Result<PutReply, Error> {
        match &self.account {
            Some(account) => kv.put_into(request, &mut account.answer_room()).await,
            None => kv.put(request).await,
        }
    }

    /// Memory for what is read and made to answer the request; it holds none yet.
    pub fn holds(&self) -> Held<'_> {
        Held::new(self.account.as_deref().map(Account::lease))
    }

    /// Keeps memory for a part of the answer that is sent after the request was worked on.
    pub fn keeps(&self, held: Held<'_>) -> Option<Kept> {
        self.account.as_ref().and_then(|account| held.keep_beyond(account))
    }

    /// Counts the memory of the answer about an object: its metadata, and its values once more,
    /// unless there is a single value that is sent without a copy.
    async fn hold(&self, reply: &GetReply) -> Result<(), Error> {
        let (Some(account), GetReply::Found(object)) = (&self.account, reply) else { return Ok(()) };
        let copied = if object.siblings.len() > 1 { object.value_bytes() } else { 0 };
        let bytes = copied + (object.part_count() * PART_BYTES) as u64;
        if bytes > UNCOUNTED_BYTES_MAX {
            account.hold_answer(bytes).await.map_err(|_| Error::Overload)?;
        }
        Ok(())
    }

    fn of(method: Method, target: Target, lines: RequestLines, body: Bytes, session: Arc<Session>) -> Self {
        let parameters = target.query_bytes().map(Parameters::read).unwrap_or_default();
        Self { method, target, lines, body, parameters, account: None, session }
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

    /// The value of a header. Several lines with the same name are joined with `, ` (RFC 9110
    /// §5.2).
    pub fn header(&self, name: LineName) -> Option<Cow<'_, [u8]>> {
        self.lines.joined(name)
    }

    /// Whether the method is GET or HEAD.
    pub fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Whether the request has any of the conditions of RFC 9110 §13.
    pub fn is_conditional(&self) -> bool {
        const CONDITIONS: [LineName; 4] =
            [line::IF_MATCH, line::IF_NONE_MATCH, line::IF_MODIFIED_SINCE, line::IF_UNMODIFIED_SINCE];
        CONDITIONS.iter().any(|name| self.lines.contains(*name))
    }
}

#[cfg(test)]
impl Request {
    /// Creates a request from its start line and headers.
    pub fn sample(method: Method, uri: &str, headers: &[(&str, &str)]) -> Self {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = format!("{method} {uri} HTTP/1.1\r\n{lines}\r\n");
        let mut parser = HeadParser::new(text.len(), headers.len().max(1));
        let head = parser.next(&mut BytesMut::from(&text[..])).expect("a well-formed head").expect("a whole head");
        Self::of(head.method, head.target, head.lines, Bytes::new(), Session::sample())
    }

    /// The same request over a connection with TLS.
    pub fn over_tls(self) -> Self {
        let session = Session { is_encrypted: true, ..Session::clone(&self.session) };
        Self { session: Arc::new(session), ..self }
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
