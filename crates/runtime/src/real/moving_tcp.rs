//! A socket that follows the task that uses it.

use super::serving_threads::number_of_this_thread;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection whose readiness is watched by the thread that uses it. Otherwise each arrival
/// would wake the thread that made the connection, and that one would wake the other.
pub(super) struct MovingTcp {
    /// `None` only after the socket could not be moved.
    stream: Option<TcpStream>,
    thread_number: usize,
}

impl MovingTcp {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream: Some(stream), thread_number: number_of_this_thread() }
    }

    /// The socket, watched by this thread.
    fn here(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let here = number_of_this_thread();
        if here != self.thread_number {
            self.move_to(here)?;
        }
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    #[cold]
    fn move_to(&mut self, thread_number: usize) -> io::Result<()> {
        let Some(stream) = self.stream.take() else { return Ok(()) };
        self.stream = Some(TcpStream::from_std(stream.into_std()?)?);
        self.thread_number = thread_number;
        Ok(())
    }
}

impl AsyncRead for MovingTcp {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_read(cx, buffer)
    }
}

impl AsyncWrite for MovingTcp {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.here()?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.here()?.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.here()?.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::super::serving_threads::number_this_thread;
    use super::*;
    use std::io::{Read, Write};
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::Builder;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Both ends of a connection.
    fn connection() -> (std::net::TcpStream, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        far.set_read_timeout(Some(PATIENCE)).unwrap();
        (near, far)
    }

    /// The runtime of the first thread lives on, but nobody runs it. So nobody but the second
    /// thread can see that the socket is ready.
    #[test]
    fn the_thread_that_uses_a_connection_watches_it() {
        let (near, mut far) = connection();
        let first = Builder::new_current_thread().enable_all().build().unwrap();
        let mut moving = first.block_on(async {
            let mut moving = MovingTcp::new(TcpStream::from_std(near).unwrap());
            moving.write_all(b"one").await.unwrap();
            moving
        });
        far.read_exact(&mut [0; 3]).unwrap();
        let (tell, told) = sync_channel(1);
        std::thread::spawn(move || {
            number_this_thread(7);
            let echoed = Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let mut heard = [0; 3];
                moving.read_exact(&mut heard).await.unwrap();
                moving.write_all(&heard).await.unwrap();
                heard
            });
            tell.send(echoed).unwrap();
        });
        far.write_all(b"two").unwrap();
        assert_eq!(told.recv_timeout(PATIENCE).as_ref(), Ok(b"two"), "nobody has seen that something arrived");
        let mut heard = [0; 3];
        far.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"two");
    }
}
