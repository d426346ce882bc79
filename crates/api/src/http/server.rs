//! Listening: accepting connections, bounding them, and letting them finish when the node stops.

use super::client_end::SharedStream;
use super::context::HttpContext;
use super::io::ClientStream;
use super::service;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// What is read beyond a head that is not complete: room in which a head that is too large can be recognised.
const READ_AHEAD_BYTES: usize = 64 * 1024;

/// Serves one listener until `shutdown` holds `true` (or its sender is gone), then until the requests under way are
/// answered, for at most `drain_timeout`.
pub async fn serve(listener: TcpListener, ctx: Arc<HttpContext>, mut shutdown: watch::Receiver<bool>) {
    let connections_max = ctx.limits.connections_max.min(Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut shutdown) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    tokio::spawn(connection(stream, peer, Arc::clone(&ctx), shutdown.clone(), place));
                }
                Err(_) => turn_away(stream).await,
            },
            Err(error) => accept_failed(&error).await,
        }
    }
    drop(listener);
    let everyone = u32::try_from(connections_max).unwrap_or(u32::MAX);
    if tokio::time::timeout(ctx.limits.drain_timeout, places.acquire_many(everyone)).await.is_err() {
        let open = connections_max - places.available_permits();
        tracing::warn!(open, "HTTP connections were still busy when the node stopped");
    }
}

async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone: nobody is left to serve for.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    ctx: Arc<HttpContext>,
    shutdown: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    // Answers are written whole; waiting for more to send only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    serve_stream(SharedStream::new(stream), peer.ip(), ctx, shutdown).await;
}

/// Serves one connection until either side ends it.
async fn serve_stream(stream: SharedStream, peer: IpAddr, ctx: Arc<HttpContext>, mut shutdown: watch::Receiver<bool>) {
    let limits = ctx.limits;
    let end = stream.client_end(limits.half_closed_timeout);
    let mut stream = ClientStream::new(stream, limits.write_timeout);
    let service = service_fn(move |request| {
        let (ctx, end) = (Arc::clone(&ctx), end.clone());
        async move { service::respond(&ctx, peer, &end, request).await }
    });
    let outcome = {
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .title_case_headers(true)
                // A client may say that it sends no more and still wait for its answer.
                .half_close(true)
                .header_read_timeout(limits.head_timeout)
                .max_header_size(limits.head_bytes_max)
                .max_buf_size(limits.head_bytes_max.saturating_add(READ_AHEAD_BYTES))
                .max_headers(limits.headers_max)
                .serve_connection(TokioIo::new(&mut stream), service)
        );
        tokio::select! {
            outcome = connection.as_mut() => outcome,
            () = stopped(&mut shutdown) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%peer, %error, "HTTP connection ended");
    }
    if !*shutdown.borrow() {
        stream.linger().await;
    }
}

/// Tells a client that there is no place for it. What the socket does not take at once is not sent.
async fn turn_away(mut stream: TcpStream) {
    const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let _ = tokio::time::timeout(Duration::from_millis(100), stream.write_all(FULL)).await;
}

/// Accepting fails when a connection broke before it was taken, or when the process has no file left: then only time
/// helps.
async fn accept_failed(error: &io::Error) {
    let broken = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    if !broken.contains(&error.kind()) {
        tracing::error!(%error, "cannot accept HTTP connections");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
