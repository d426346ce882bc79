//! Answers and the pages for those that no resource words itself.

use super::wire::headers::{Headers, Name, name};
use bytes::Bytes;
use futures_util::StreamExt;
use http::StatusCode;
use std::pin::Pin;

/// An answer.
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// The headers that its resource gives it.
    pub headers: Headers,
    /// Its body.
    pub body: ReplyBody,
    /// The connection ends with it.
    pub closes: bool,
}

/// A body that is there already, or one that is made while it is sent.
pub enum ReplyBody {
    /// All of it.
    Whole(Bytes),
    /// Its parts.
    Stream(Stream),
}

/// The parts of a body that is made while it is sent. It is dropped when the client goes.
pub type Stream = Pin<Box<dyn futures_util::Stream<Item = Result<Bytes, StreamAborted>> + Send>>;

/// A streamed body cannot go on; the connection is closed, so that the client does not take it for complete.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut off: {0}")]
pub struct StreamAborted(pub String);

impl Reply {
    /// Sets a header; a value that cannot be one is left out.
    pub fn set(&mut self, name: Name, value: impl AsRef<[u8]>) {
        self.headers.set(name, value);
    }

    /// The body, if all of it is there.
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
    Reply { status, headers: Headers::default(), body: ReplyBody::Whole(body.into()), closes: false }
}

/// An answer with a body of some type.
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

/// The small HTML page for an outcome that the decisions of the protocol come to, not a resource: its title is
/// `404 Not Found` and the like (docs/riak/http-api.md §17).
pub fn page(status: StatusCode) -> Reply {
    let name = status.canonical_reason().unwrap_or("Error");
    let code = status.as_u16();
    html(
        status,
        format!("<html><head><title>{code} {name}</title></head><body><h1>{name}</h1><p><hr>Ombak</body></html>"),
    )
}

/// An answer whose body is made while it is sent, as fast as the client takes it. When the client goes, `parts` is
/// dropped.
pub fn stream(
    content_type: &str,
    parts: impl futures_util::Stream<Item = Result<Bytes, StreamAborted>> + Send + 'static,
) -> Reply {
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
