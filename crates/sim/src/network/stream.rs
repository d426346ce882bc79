//! One end of a stream.

use super::streams::{EndId, ReadEnd, Streams};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One end of a stream, as the code on a host sees it.
pub(super) struct SimStream {
    pub(super) streams: Arc<Streams>,
    pub(super) end: EndId,
}

impl AsyncRead for SimStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.streams.read(self.end, buffer.remaining(), cx.waker()) {
            ReadEnd::Bytes(bytes) => buffer.put_slice(&bytes),
            ReadEnd::End => {}
            ReadEnd::Reset => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            ReadEnd::Nothing => return Poll::Pending,
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        match self.streams.write(self.end, bytes, cx.waker()) {
            None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Some(0) => Poll::Pending,
            Some(count) => Poll::Ready(Ok(count)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.streams.end(self.end);
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.streams.drop_end(self.end);
    }
}
