//! A connection that waits neither for a client that does not read nor on one that still sends.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

/// How long a client is given to notice that the connection ends.
const LINGER: Duration = Duration::from_secs(2);

/// Wraps a stream: a write that makes no progress for `timeout` fails, and the end can be made gentle.
pub struct ClientStream<S> {
    stream: S,
    timeout: Duration,
    /// Runs while the stream takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// The client has said that it sends no more.
    read_to_end: bool,
}

impl<S> ClientStream<S> {
    /// Wraps `stream`.
    pub fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, stalled: None, read_to_end: false }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let timeout = self.timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(timeout)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientStream<S> {
    /// Ends the connection so that the last answer arrives: closing it while the client still sends would make its
    /// system throw away what it has not read yet. What still comes is dropped, for a moment.
    pub async fn linger(mut self) {
        let drain = async {
            self.shutdown().await?;
            let mut dropped = [0; 4096];
            while !self.read_to_end && self.read(&mut dropped).await? > 0 {}
            io::Result::Ok(())
        };
        // Whatever happens: there is nothing more to do for this client.
        let _ = timeout(LINGER, drain).await;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.remaining();
        let progress = Pin::new(&mut self.stream).poll_read(cx, buf);
        if matches!(progress, Poll::Ready(Ok(()))) && before > 0 && buf.remaining() == before {
            self.read_to_end = true;
        }
        progress
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(cx, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_cut_off() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut stream = ClientStream::new(ours, Duration::from_millis(20));
        let result = stream.write_all(&[0; 64]).await;
        assert_eq!(result.map_err(|e| e.kind()), Err(io::ErrorKind::TimedOut));
    }
}
