//! Connecting and listening.

use super::stream::SimStream;
use super::streams::{EndId, Listening, Streams};
use super::{address_of, host_of};
use crate::world::{HostKey, HostRuntime};
use ombak_runtime::{BoxFuture, Listener, Network, RuntimeExt, Stream};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// The pause before a connection is tried again over a link that does not answer.
const TRIED_AGAIN: Duration = Duration::from_secs(1);
/// How many connections wait for a listener.
const BACKLOG: usize = 1024;

/// The network as one process sees it.
pub struct HostNetwork {
    streams: Arc<Streams>,
    runtime: Arc<HostRuntime>,
    on: HostKey,
}

impl HostNetwork {
    pub(super) const fn new(streams: Arc<Streams>, runtime: Arc<HostRuntime>, on: HostKey) -> Self {
        Self { streams, runtime, on }
    }
}

impl Network for HostNetwork {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let (streams, runtime, on) = (self.streams.clone(), self.runtime.clone(), self.on);
        Box::pin(async move {
            let host = host_of(to).ok_or(io::ErrorKind::AddrNotAvailable)?;
            loop {
                let (there, back) = {
                    let links = streams.links.lock();
                    (links.link(on.host, host), links.link(host, on.host))
                };
                let delay_ns = streams.world.random(|random| there.delay_ns(random) + back.delay_ns(random));
                runtime.sleep(Duration::from_nanos(delay_ns)).await;
                if !there.is_cut && !back.is_cut && streams.has_power(host) {
                    break;
                }
                runtime.sleep(TRIED_AGAIN).await;
            }
            let end = knock(&streams, on, to)?;
            Ok(Box::new(SimStream { streams, end }) as Box<dyn Stream>)
        })
    }

    fn listen(&self, on: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let listening = Listening { on: self.on, waiting: VecDeque::new(), acceptor: None };
        self.streams.with(|state| {
            if state.listeners.contains_key(&on) {
                return Err(io::Error::from(io::ErrorKind::AddrInUse));
            }
            state.listeners.insert(on, listening);
            Ok(())
        })?;
        Ok(Box::new(SimListener { streams: self.streams.clone(), address: on, on: self.on }))
    }
}

/// Brings a connection to the listener of an address.
fn knock(streams: &Streams, from: HostKey, to: SocketAddr) -> io::Result<EndId> {
    let listener = streams.with(|state| state.listeners.get(&to).map(|l| (l.on, l.waiting.len())));
    let Some((on, waiting)) = listener else { return Err(io::ErrorKind::ConnectionRefused.into()) };
    if waiting >= BACKLOG || !streams.world.is_alive(on) {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let (near, far) = streams.open(from, on);
    let acceptor = streams.with(|state| {
        let listener = state.listeners.get_mut(&to)?;
        listener.waiting.push_back((far, address_of(from.host, 0)));
        listener.acceptor.take()
    });
    if let Some(acceptor) = acceptor {
        Waker::wake(acceptor);
    }
    Ok(near)
}

struct SimListener {
    streams: Arc<Streams>,
    address: SocketAddr,
    on: HostKey,
}

impl Listener for SimListener {
    fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, SocketAddr)>> {
        Box::pin(async move {
            let (end, from) = poll_fn(|cx| {
                self.streams.with(|state| {
                    let Some(listener) = state.listeners.get_mut(&self.address) else { return Poll::Pending };
                    match listener.waiting.pop_front() {
                        Some(found) => Poll::Ready(found),
                        None => {
                            listener.acceptor = Some(cx.waker().clone());
                            Poll::Pending
                        }
                    }
                })
            })
            .await;
            Ok((Box::new(SimStream { streams: self.streams.clone(), end }) as Box<dyn Stream>, from))
        })
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let removed = self.streams.with(|state| {
            let is_own = state.listeners.get(&self.address).is_some_and(|listening| listening.on == self.on);
            if is_own { state.listeners.remove(&self.address) } else { None }
        });
        // A connection that nobody has accepted ends.
        for (end, _) in removed.into_iter().flat_map(|listening| listening.waiting) {
            self.streams.drop_end(end);
        }
    }
}
