//! A stream of bytes with TLS.

use crate::failure;
use ombak_runtime::Stream;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::Accept;
use tokio_rustls::{TlsStream as Established, client};

type Below = Box<dyn Stream>;

/// A stream of bytes with TLS. If it was accepted, the first read or write runs the handshake.
pub(crate) struct TlsStream {
    state: State,
}

enum State {
    Accepting(Accept<Below>),
    Established(Box<Established<Below>>),
    /// The handshake has failed. The connection is closed.
    Failed,
}

impl TlsStream {
    pub(crate) fn connected(stream: client::TlsStream<Below>) -> Self {
        Self { state: State::Established(Box::new(stream.into())) }
    }

    pub(crate) fn accepting(accept: Accept<Below>) -> Self {
        Self { state: State::Accepting(accept) }
    }

    fn poll_established(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut Established<Below>>>> {
        if let State::Accepting(accept) = &mut self.state {
            match ready!(Pin::new(accept).poll(cx)) {
                Ok(stream) => self.state = State::Established(Box::new(stream.into())),
                Err(why) => {
                    // An alert of TLS has been written as far as that needed no waiting.
                    self.state = State::Failed;
                    return Poll::Ready(Err(failure::of_connection(why)));
                }
            }
        }
        Poll::Ready(match &mut self.state {
            State::Established(stream) => Ok(Pin::new(stream)),
            State::Accepting(_) | State::Failed => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match ready!(ready!(self.poll_established(cx))?.poll_read(cx, into)) {
            // The peer ended the connection without a goodbye of TLS, as a process does that is
            // killed. Frames above have their lengths, so nothing shortened is taken for whole.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            read => Poll::Ready(read.map_err(failure::of_connection)),
        }
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_established(cx))?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_established(cx))?.poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_established(cx))?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Established(stream) => Pin::new(stream).poll_shutdown(cx),
            // There is nothing to say goodbye to.
            _ => Poll::Ready(Ok(())),
        }
    }
}
