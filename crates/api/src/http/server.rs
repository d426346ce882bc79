//! The HTTP listener: accepts connections, bounds their number, and lets them finish when the node
//! stops.

use super::context::HttpContext;
use super::wire::connection;
use crate::client_stream::{ClientListener, ClientStream, Terms};
use crate::security::{PlainSessions, SessionEnd};
use crate::stop::Stop;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The highest number of connections that are refused with an answer at the same time. Further
/// connections are closed without one.
const REFUSALS_MAX: usize = 64;

/// How long to wait if the operating system cannot provide more connections (open files, memory).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for connections that were aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves one listener until `shutdown` holds `true` or its sender is dropped. Then waits until the
/// requests in progress are answered, for at most `drain_timeout`.
pub async fn serve(listener: ClientListener, ctx: Arc<HttpContext>, mut shutdown: watch::Receiver<bool>) {
    let (mut connections, mut refusals) = (JoinSet::new(), JoinSet::new());
    let (security, plain_drain) = (ctx.security.as_deref(), ctx.limits.plain_drain_timeout);
    let mut plain = PlainSessions::new(security, shutdown.clone(), plain_drain);
    loop {
        let accepted = tokio::select! {
            biased;
            // An error means that the sender was dropped, which also ends the server.
            _ = shutdown.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            Some(_) = refusals.join_next() => continue,
            () = plain.must_end() => {
                plain.end();
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) if connections.len() < ctx.limits.connections_max => match stream.into_std() {
                Ok(stream) => {
                    let end = plain.session(listener.terms().are_plain());
                    let served = serve_one(stream, peer, listener.terms().clone(), Arc::clone(&ctx), end);
                    connections.spawn_on(served, ctx.threads.next());
                }
                Err(error) => tracing::debug!(%peer, %error, "a connection was lost before it was served"),
            },
            Ok((stream, _)) if refusals.len() < REFUSALS_MAX && listener.terms().are_plain() => {
                refusals.spawn(turn_away(stream));
            }
            Ok(_) => {}
            Err(error) => accept_failed(&error).await,
        }
    }
    drop(listener);
    plain.end();
    let drained =
        tokio::time::timeout(ctx.limits.drain_timeout, async { while connections.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::warn!(open = connections.len(), "HTTP connections were still busy when the node stopped");
        // A thread that is busy with a connection must not delay the end of the node.
        drop(tokio::time::timeout(ABORT_TIMEOUT, connections.shutdown()).await);
    }
}

async fn serve_one(
    stream: std::net::TcpStream,
    peer: SocketAddr,
    terms: Terms,
    ctx: Arc<HttpContext>,
    end: SessionEnd,
) {
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%peer, %error, "a connection cannot be served"),
    };
    // Answers are written as a whole, so waiting for more data would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    match terms.begin(stream, peer, end.signal()).await {
        Ok((stream, session)) => {
            let serving = connection::serve(stream, session, ctx, Stop::new(end.signal()));
            if end.serve(serving).await.is_none() {
                tracing::debug!(%peer, "a plain HTTP connection was not finished in time when security was switched on");
            }
        }
        Err(error) => tracing::debug!(%peer, %error, "an HTTP connection did not begin TLS"),
    }
}

/// Answers that there are too many connections. Bytes that the socket does not accept soon are not
/// sent.
async fn turn_away(mut stream: TcpStream) {
    const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let told = tokio::time::timeout(Duration::from_millis(100), stream.write_all(FULL)).await;
    if let Ok(Ok(())) = told {
        connection::linger(ClientStream::Plain(stream)).await;
    }
}

/// Handles an error of `accept`. Either the connection broke before it was accepted, or the process
/// has no free file descriptor. In the second case, only waiting helps.
async fn accept_failed(error: &io::Error) {
    let broken = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    if !broken.contains(&error.kind()) {
        tracing::error!(%error, "cannot accept HTTP connections");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}
