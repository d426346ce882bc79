//! Whether a client is still there while its answer is made and nothing is sent yet: what nobody waits for must not go on.
//!
//! A client that has gone and one that only sends no more look the same, for nothing but the end of what it sends arrives. So
//! the end is believed after a while: who closed one direction gets any answer that does not take long.

use socket2::SockRef;
use std::future::pending;
use std::io::{self, Read};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// A socket of which others may see whether the client is there.
pub struct SharedStream(Arc<TcpStream>);

impl SharedStream {
    /// Shares `stream`.
    pub fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }

    /// Where the end of its client shows, `patience` after it came.
    pub fn client_end(&self, patience: Duration) -> ClientEnd {
        ClientEnd { stream: Arc::clone(&self.0), patience }
    }
}

impl AsyncRead for SharedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            let mut read = None;
            let space = buf.initialize_unfilled();
            let tried = self.0.try_io(Interest::READABLE, || {
                let count = (&*SockRef::from(&*self.0)).read(space)?;
                read = Some(count);
                // All that was there has been read: as without sharing, the next read waits instead of asking the system.
                if count > 0 && count < space.len() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match (read, tried) {
                (Some(count), _) => {
                    buf.advance(count);
                    return Poll::Ready(Ok(()));
                }
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
                (None, _) => {}
            }
        }
    }
}

impl AsyncWrite for SharedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write_vectored(bufs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match SockRef::from(&*self.0).shutdown(Shutdown::Write) {
            // It is as closed as it was to be.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            shut => Poll::Ready(shut),
        }
    }
}

/// The end of a client.
#[derive(Clone)]
pub struct ClientEnd {
    stream: Arc<TcpStream>,
    patience: Duration,
}

impl ClientEnd {
    /// Returns when the client is taken to have gone. Never while something that it sent waits to be read: what comes behind
    /// the next request cannot be seen.
    pub async fn reached(self) {
        match self.stream.peek(&mut [0]).await {
            Ok(0) => sleep(self.patience).await,
            Ok(_) => pending().await,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    const SOON: Duration = Duration::from_secs(20);

    async fn pair() -> (SharedStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (SharedStream::new(listener.accept().await.unwrap().0), theirs)
    }

    #[tokio::test]
    async fn the_end_shows_when_the_client_goes_and_when_it_sends_no_more() {
        for goes in [true, false] {
            let (mut ours, mut theirs) = pair().await;
            let mut end = Box::pin(ours.client_end(Duration::ZERO).reached());
            assert!(timeout(Duration::from_millis(10), end.as_mut()).await.is_err());
            theirs.write_all(b"request").await.unwrap();
            let mut read = [0; 7];
            ours.read_exact(&mut read).await.unwrap();
            let mut end = Box::pin(ours.client_end(Duration::ZERO).reached());
            assert!(timeout(Duration::from_millis(10), end.as_mut()).await.is_err());
            if goes {
                drop(theirs)
            } else {
                theirs.shutdown().await.unwrap()
            }
            timeout(SOON, end).await.unwrap();
        }
    }

    #[tokio::test]
    async fn bytes_go_both_ways_and_the_end_is_told() {
        let (mut ours, mut theirs) = pair().await;
        let sent: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
        let (expected, mut read) = (sent.clone(), Vec::new());
        let writing = tokio::spawn(async move {
            ours.write_all(&sent).await.unwrap();
            ours.shutdown().await.unwrap();
            let mut answer = String::new();
            ours.read_to_string(&mut answer).await.unwrap();
            answer
        });
        timeout(SOON, theirs.read_to_end(&mut read)).await.unwrap().unwrap();
        assert!(read == expected);
        theirs.write_all(b"thanks").await.unwrap();
        drop(theirs);
        assert_eq!(timeout(SOON, writing).await.unwrap().unwrap(), "thanks");
    }
}
