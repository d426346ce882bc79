//! A stream that holds back what was written until it is flushed, as TLS may.

use super::*;
use ombak_runtime::{BoxFuture, Listener, Network, Stream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Holds back all that is written. A flush needs to be polled several times.
struct Reluctant {
    below: Box<dyn Stream>,
    held: Vec<u8>,
    refused_flushes: u32,
}

impl Reluctant {
    fn around(below: Box<dyn Stream>) -> Box<dyn Stream> {
        Box::new(Self { below, held: Vec::new(), refused_flushes: 0 })
    }
}

impl AsyncRead for Reluctant {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.below).poll_read(cx, into)
    }
}

impl AsyncWrite for Reluctant {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.held.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.refused_flushes += 1;
        if !self.refused_flushes.is_multiple_of(3) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let this = &mut *self;
        while !this.held.is_empty() {
            let written = ready!(Pin::new(&mut this.below).poll_write(cx, &this.held))?;
            this.held.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.below).poll_shutdown(cx)
    }
}

struct ReluctantNetwork;

impl Network for ReluctantNetwork {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let connecting = TcpNetwork::default().connect(to);
        Box::pin(async move { Ok(Reluctant::around(connecting.await?)) })
    }

    fn listen(&self, on: SocketAddr) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(ReluctantListener(TcpNetwork::default().listen(on)?)))
    }
}

struct ReluctantListener(Box<dyn Listener>);

impl Listener for ReluctantListener {
    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_address()
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>> {
        Box::pin(async move {
            let (stream, from) = self.0.accept().await?;
            Ok((Reluctant::around(stream), from))
        })
    }
}

#[tokio::test]
async fn what_the_stream_holds_back_is_flushed_and_the_goodbye_too() {
    let node = |number| {
        let parts: (Arc<dyn Runtime>, Arc<dyn Network>) = (Arc::new(TokioRuntime), Arc::new(ReluctantNetwork));
        start_in(parts, &Who::node(number), services(|_| {}), PeersConfig::default(), any_port())
    };
    let ((one, _), (two_, address)) = (node(1), node(2));
    one.set_address(two(), address);
    for bytes in [0, 10, 500_000] {
        assert_eq!(soon(one.call(two(), outgoing(ECHO, vec![3; bytes]))).await, Ok(vec![3; bytes].into()));
    }
    // A connection whose peer never got the goodbye would be closed after seconds of silence.
    let started = Instant::now();
    two_.stop();
    until(|| one.live_session(two()).is_none()).await;
    assert!(
        started.elapsed() < Duration::from_millis(u64::try_from(one.inner.config.mux.silence_max_us / 1_000).unwrap())
    );
}
