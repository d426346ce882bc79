//! The Protocol Buffers listener: accepts connections.

use super::connection;
use super::context::PbContext;
use crate::client_stream::{ClientListener, ClientStream, Terms};
use crate::security::{PlainSessions, SessionEnd};
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The highest number of connections that are refused with an answer at the same time. Further
/// connections are closed without one.
const REFUSALS_MAX: usize = 64;

/// How long to wait if the operating system cannot provide more connections (open files, memory).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for connections that were aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves connections until `shutdown` becomes true or its sender is dropped. Then open connections
/// may finish their requests in progress, for at most `drain_timeout`.
pub async fn serve(listener: ClientListener, ctx: Arc<PbContext>, mut shutdown: watch::Receiver<bool>) {
    let (mut connections, mut refusals) = (JoinSet::new(), JoinSet::new());
    let (security, plain_drain) = (ctx.config.security.as_deref(), ctx.config.plain_drain_timeout);
    let mut plain = PlainSessions::new(security, shutdown.clone(), plain_drain);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = plain.must_end() => {
                plain.end();
                continue;
            }
            Some(_) = connections.join_next() => continue,
            Some(_) = refusals.join_next() => continue,
            _ = shutdown.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, peer)) if connections.len() < ctx.config.connections_max => match stream.into_std() {
                Ok(stream) => {
                    let end = plain.session(listener.terms().are_plain());
                    let served = run(stream, peer, listener.terms().clone(), Arc::clone(&ctx), end);
                    connections.spawn_on(served, ctx.threads.next());
                }
                Err(error) => tracing::debug!(%peer, %error, "a connection was lost before it was served"),
            },
            Ok((stream, peer)) => {
                tracing::warn!(%peer, max = ctx.config.connections_max, "too many Protocol Buffers connections");
                if refusals.len() < REFUSALS_MAX && listener.terms().are_plain() {
                    let stream = ClientStream::Plain(stream);
                    refusals.spawn(connection::refuse_connection(stream, ctx.config.connections_max));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a Protocol Buffers connection");
                if !is_about_one_connection(&error) {
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    plain.end();
    let drained = timeout(ctx.config.drain_timeout, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::info!(left = connections.len(), "closing Protocol Buffers connections that are still busy");
        // A thread that is busy with a connection must not delay the end of the node.
        drop(timeout(ABORT_TIMEOUT, connections.shutdown()).await);
    }
}

async fn run(stream: std::net::TcpStream, peer: SocketAddr, terms: Terms, ctx: Arc<PbContext>, end: SessionEnd) {
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%peer, %error, "a connection cannot be served"),
    };
    let _counted = ctx.kv.stats().pbc_connected();
    if let Err(error) = set_options(&stream, &ctx) {
        tracing::debug!(%peer, %error, "cannot set the options of a connection");
    }
    match terms.begin(stream, peer, end.signal()).await {
        Ok((stream, session)) => connection::serve(stream, session, &ctx, end).await,
        Err(error) => tracing::debug!(%peer, %error, "a Protocol Buffers connection did not begin TLS"),
    }
}

fn set_options(stream: &TcpStream, ctx: &PbContext) -> io::Result<()> {
    stream.set_nodelay(!ctx.config.nagle)?;
    SockRef::from(stream).set_keepalive(ctx.config.keepalive)
}

/// Whether the error concerns a single connection, whose peer closed it before it was accepted. The
/// next connection may work.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
