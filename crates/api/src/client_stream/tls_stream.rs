//! A client's socket with TLS, shared by its two halves.

use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream as Established;

/// The highest number of bytes of answers that wait in a stream until its client takes them.
pub(super) const UNSENT_BYTES_MAX: usize = 64 << 10;

/// A client's socket after the handshake of TLS.
///
/// Reading and writing both change the state of TLS, so the halves take turns at a lock. One task
/// polls both halves, so nobody ever waits for it.
pub(crate) struct TlsStream(Mutex<Established<TcpStream>>);

impl TlsStream {
    pub(super) fn new(mut stream: Established<TcpStream>) -> Self {
        stream.get_mut().1.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        Self(Mutex::new(stream))
    }

    /// The certificate that the client has proved to own; `None` if it was not asked for one.
    pub(super) fn certificate(&self) -> Option<CertificateDer<'static>> {
        let stream = self.0.lock();
        stream.get_ref().1.peer_certificates()?.first().map(|certificate| certificate.clone().into_owned())
    }

    /// Whether there are bytes to read; false if no more will come.
    pub(super) fn poll_has_more(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut stream = self.0.lock();
        match Pin::new(&mut *stream).poll_fill_buf(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(end_or_error(error).map(|()| false)),
            Poll::Ready(Ok(bytes)) => Poll::Ready(Ok(!bytes.is_empty())),
            Poll::Pending => {
                answer_records(&mut stream, cx);
                Poll::Pending
            }
        }
    }

    pub(super) fn poll_read(&self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.0.lock();
        match Pin::new(&mut *stream).poll_read(cx, into) {
            Poll::Ready(Err(error)) => Poll::Ready(end_or_error(error)),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Pending => {
                answer_records(&mut stream, cx);
                Poll::Pending
            }
        }
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write(cx, bytes)
    }

    pub(super) fn poll_write_vectored(&self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write_vectored(cx, parts)
    }

    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_flush(cx)
    }

    pub(super) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_shutdown(cx)
    }
}

/// A client that is killed ends the connection without the goodbye of TLS. That is an end like any
/// other here: frames and requests have their lengths, so nothing shortened is taken for whole.
fn end_or_error(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::UnexpectedEof { Ok(()) } else { Err(error) }
}

/// Sends what TLS answers by itself to what was read, such as the refusal of a renegotiation. A
/// client that asks for one and sends no request would wait for that until the node writes.
fn answer_records(stream: &mut Established<TcpStream>, cx: &mut Context<'_>) {
    if stream.get_ref().1.wants_write() {
        // What the socket does not take now goes with the next write. An error is found there, too.
        let _ = Pin::new(stream).poll_flush(cx);
    }
}
