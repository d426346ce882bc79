//! The two sides of a client's stream. Hot.

use super::tls_stream::TlsStream;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::tcp;

/// The receiving side of a client's stream.
pub(crate) enum ReadHalf<'s> {
    Plain(tcp::ReadHalf<'s>),
    Tls(&'s TlsStream),
}

/// The sending side of a client's stream. With TLS, bytes that were written have left the node only
/// after a flush.
pub(crate) enum WriteHalf<'s> {
    Plain(tcp::WriteHalf<'s>),
    Tls(&'s TlsStream),
}

impl ReadHalf<'_> {
    /// Waits until there are bytes to read or no more will come, and says whether there are any. It
    /// takes none.
    pub(crate) async fn has_more(&self) -> io::Result<bool> {
        match self {
            Self::Plain(half) => Ok(half.as_ref().peek(&mut [0]).await? > 0),
            Self::Tls(stream) => poll_fn(|cx| stream.poll_has_more(cx)).await,
        }
    }

    /// Waits until there are bytes to read or no more will come, and says whether the end of the
    /// bytes has been received. A plain stream sees the end even behind bytes that were not read.
    pub(crate) async fn has_ended(&self) -> io::Result<bool> {
        match self {
            Self::Plain(half) => Ok(half.ready(Interest::READABLE).await?.is_read_closed()),
            Self::Tls(stream) => Ok(!poll_fn(|cx| stream.poll_has_more(cx)).await?),
        }
    }
}

impl AsyncRead for ReadHalf<'_> {
    #[inline]
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(half) => Pin::new(half).poll_read(cx, into),
            Self::Tls(stream) => stream.poll_read(cx, into),
        }
    }
}

impl AsyncWrite for WriteHalf<'_> {
    #[inline]
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(half) => Pin::new(half).poll_write(cx, bytes),
            Self::Tls(stream) => stream.poll_write(cx, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(half) => Pin::new(half).poll_write_vectored(cx, parts),
            Self::Tls(stream) => stream.poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            // A socket keeps nothing back.
            Self::Plain(half) => Pin::new(half).poll_flush(cx),
            Self::Tls(stream) => stream.poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(half) => Pin::new(half).poll_shutdown(cx),
            Self::Tls(stream) => stream.poll_shutdown(cx),
        }
    }
}
