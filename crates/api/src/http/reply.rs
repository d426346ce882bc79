//! Answers and the pages for those that no resource words itself.

use super::client_end::ClientEnd;
use bytes::Bytes;
use futures_util::Stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Body, Frame};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body that is there already, or one that is made while it is sent.
pub type ReplyBody = Either<Full<Bytes>, UnsyncBoxBody<Bytes, StreamAborted>>;

/// An answer.
pub type Reply = Response<ReplyBody>;

/// A streamed body cannot go on; the connection is closed, so that the client does not take it for complete.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut off: {0}")]
pub struct StreamAborted(pub String);

const TEXT: HeaderValue = HeaderValue::from_static("text/plain");
const HTML: HeaderValue = HeaderValue::from_static("text/html");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer without headers. A 404 has Riak's reason phrase.
pub fn bare(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Either::Left(Full::new(body.into())));
    *reply.status_mut() = status;
    if status == StatusCode::NOT_FOUND {
        reply.extensions_mut().insert(ReasonPhrase::from_static(b"Object Not Found"));
    }
    reply
}

/// An answer with a body of some type.
pub fn typed(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Reply {
    let mut reply = bare(status, body);
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

/// A `text/plain` answer.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    typed(status, TEXT, body)
}

/// A JSON answer.
pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    typed(status, JSON, body)
}

/// An HTML answer.
pub fn html(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    typed(status, HTML, body)
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
    content_type: HeaderValue,
    parts: impl Stream<Item = Result<Bytes, StreamAborted>> + Send + 'static,
) -> Reply {
    let frames = futures_util::StreamExt::map(parts, |part| part.map(Frame::data));
    let mut reply = Response::new(Either::Right(StreamBody::new(frames).boxed_unsync()));
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

/// The same answer; a body that is made while it is sent is cut off when its client ends while nothing is there to send.
pub fn until(reply: Reply, client: ClientEnd) -> Reply {
    reply.map(|body| match body {
        Either::Left(whole) => Either::Left(whole),
        Either::Right(parts) => Either::Right(Until { parts, client, end: None }.boxed_unsync()),
    })
}

struct Until {
    parts: UnsyncBoxBody<Bytes, StreamAborted>,
    client: ClientEnd,
    /// From the moment at which nothing is there to send.
    end: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Body for Until {
    type Data = Bytes;
    type Error = StreamAborted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamAborted>>> {
        let part = Pin::new(&mut self.parts).poll_frame(cx);
        if part.is_ready() {
            self.end = None;
            return part;
        }
        let Self { client, end, .. } = &mut *self;
        let end = end.get_or_insert_with(|| Box::pin(client.clone().reached()));
        if end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(StreamAborted("the client has gone".to_owned()))));
        }
        Poll::Pending
    }
}

/// Sets a header; a value that cannot be one is left out.
pub fn set(reply: &mut Reply, name: HeaderName, value: impl TryInto<HeaderValue>) {
    if let Ok(value) = value.try_into() {
        reply.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_titled_with_its_status() {
        let reply = page(StatusCode::PRECONDITION_FAILED);
        let body = match reply.into_body() {
            Either::Left(full) => format!("{full:?}"),
            Either::Right(_) => unreachable!("pages are not streamed"),
        };
        assert!(body.contains("<title>412 Precondition Failed</title>"), "{body}");
    }
}
