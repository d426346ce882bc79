//! Answers to requests, and the HTML pages for outcomes that are not the answer of a resource.

use super::wire::headers::{Headers, Name, name};
use bytes::Bytes;
use futures_util::StreamExt;
use http::StatusCode;
use std::pin::Pin;

/// The answer to a request.
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers that the resource has set.
    pub headers: Headers,
    /// The body.
    pub body: ReplyBody,
    /// Whether the connection is closed after this answer.
    pub close_connection: bool,
}

/// A complete body, or one that is made while it is sent.
pub enum ReplyBody {
    /// The complete body.
    Whole(Bytes),
    /// The parts of a body that is made while it is sent.
    Stream(Stream),
}

/// The parts of a body that is made while it is sent. The stream is dropped if the client closes
/// the connection.
pub type Stream = Pin<Box<dyn futures_util::Stream<Item = Bytes> + Send>>;

impl Reply {
    /// Sets a header. A value that cannot be a header value is left out.
    pub fn set(&mut self, name: Name, value: impl AsRef<[u8]>) {
        self.headers.set(name, value);
    }

    /// The body, if it is complete.
    #[cfg(test)]
    pub fn whole_body(&self) -> Option<&Bytes> {
        match &self.body {
            ReplyBody::Whole(bytes) => Some(bytes),
            ReplyBody::Stream(_) => None,
        }
    }
}

/// An answer without headers.
pub fn bare(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    Reply { status, headers: Headers::default(), body: ReplyBody::Whole(body.into()), close_connection: false }
}

/// An answer with a body of this content type.
pub fn typed(status: StatusCode, content_type: &str, body: impl Into<Bytes>) -> Reply {
    let mut reply = bare(status, body);
    reply.set(name::CONTENT_TYPE, content_type);
    reply
}

/// A `text/plain` answer.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    typed(status, "text/plain", body)
}

/// A JSON answer.
pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    typed(status, "application/json", body)
}

/// An HTML answer.
pub fn html(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    typed(status, "text/html", body)
}

/// The small HTML page for an outcome that the protocol decides and not a resource. Its title is
/// the status, such as `404 Not Found` (docs/riak/http-api.md §17).
pub fn page(status: StatusCode) -> Reply {
    let name = status.canonical_reason().unwrap_or("Error");
    let code = status.as_u16();
    html(
        status,
        format!("<html><head><title>{code} {name}</title></head><body><h1>{name}</h1><p><hr>Ombak</body></html>"),
    )
}

/// An answer whose body is made while it is sent, as fast as the client reads it. `parts` is
/// dropped if the client closes the connection.
pub fn stream(content_type: &str, parts: impl futures_util::Stream<Item = Bytes> + Send + 'static) -> Reply {
    let mut reply = bare(StatusCode::OK, Bytes::new());
    reply.body = ReplyBody::Stream(parts.boxed());
    reply.set(name::CONTENT_TYPE, content_type);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_titled_with_its_status() {
        let reply = page(StatusCode::PRECONDITION_FAILED);
        let body = String::from_utf8_lossy(reply.whole_body().expect("pages are not streamed")).into_owned();
        assert!(body.contains("<title>412 Precondition Failed</title>"), "{body}");
    }
}
