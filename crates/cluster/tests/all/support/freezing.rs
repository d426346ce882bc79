//! A network of one node that can stand still, as if the process were stopped: what was sent stays
//! in the buffers of the system, and the others see silence.

use ombak_runtime::{BoxFuture, Listener, Network, Stream, TcpNetwork};
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[derive(Default)]
struct State {
    is_frozen: bool,
    wakers: Vec<Waker>,
}

/// Lets the sockets of a node stand still.
#[derive(Clone, Default)]
pub struct Frost(Arc<Mutex<State>>);

impl Frost {
    pub fn set(&self, is_frozen: bool) {
        let wakers = {
            let mut state = self.0.lock();
            state.is_frozen = is_frozen;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn is_on(&self, cx: &Context<'_>) -> bool {
        let mut state = self.0.lock();
        if state.is_frozen {
            state.wakers.push(cx.waker().clone());
        }
        state.is_frozen
    }
}

/// TCP with a frost.
pub struct FreezingNetwork(pub Frost);

impl Network for FreezingNetwork {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let frost = self.0.clone();
        let connected = TcpNetwork::default().connect(to);
        Box::pin(async move { Ok(Box::new(Freezing { inner: connected.await?, frost }) as Box<dyn Stream>) })
    }

    fn listen(&self, on: SocketAddr) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(FreezingListener { inner: TcpNetwork::default().listen(on)?, frost: self.0.clone() }))
    }
}

struct FreezingListener {
    inner: Box<dyn Listener>,
    frost: Frost,
}

impl Listener for FreezingListener {
    fn local_address(&self) -> io::Result<SocketAddr> {
        self.inner.local_address()
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>> {
        Box::pin(async move {
            let (inner, from) = self.inner.accept().await?;
            Ok((Box::new(Freezing { inner, frost: self.frost.clone() }) as Box<dyn Stream>, from))
        })
    }
}

struct Freezing {
    inner: Box<dyn Stream>,
    frost: Frost,
}

impl AsyncRead for Freezing {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.frost.is_on(cx) { Poll::Pending } else { Pin::new(&mut self.inner).poll_read(cx, buf) }
    }
}

impl AsyncWrite for Freezing {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.frost.is_on(cx) { Poll::Pending } else { Pin::new(&mut self.inner).poll_write(cx, buf) }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
