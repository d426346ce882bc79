//! The floor for HTTP: a server that consists only of hyper. It reads whole requests, and answers
//! with as many bytes as Ombak. No server that leaves HTTP to hyper can use less processor time.
//!
//! Its runtime is that of the other echo server.

use crate::workload::VALUE_BYTES;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use tokio::net::TcpListener;

pub fn run(port: u16) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start threads: {e}"))?;
    runtime.block_on(serve(port)).map_err(|e| format!("HTTP echo server on port {port}: {e}"))
}

async fn serve(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let (headers, value) = (get_headers(), Bytes::from(vec![b'e'; VALUE_BYTES]));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (headers, value) = (headers.clone(), value.clone());
        let service = service_fn(move |request| answer(request, headers.clone(), value.clone()));
        tokio::spawn(async move {
            // With the time limit for heads that a server on an open network needs.
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .title_case_headers(true)
                .half_close(true)
                .serve_connection(TokioIo::new(stream), service);
            if let Err(error) = served.await {
                eprintln!("HTTP echo: {error}");
            }
        });
    }
}

async fn answer(request: Request<Incoming>, headers: HeaderMap, value: Bytes) -> hyper::Result<Response<Full<Bytes>>> {
    let is_get = request.method() == Method::GET;
    request.into_body().collect().await?;
    let mut response = Response::new(Full::new(if is_get { value } else { Bytes::new() }));
    if is_get {
        *response.headers_mut() = headers;
    } else {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    Ok(response)
}

/// The headers of an answer with an object, except those that hyper writes itself.
fn get_headers() -> HeaderMap {
    let pairs = [
        ("server", "Ombak/0.1.0"),
        ("x-riak-vclock", "AQEIAAAAAAAAAAAAAAABAQAAAAAAAAAB"),
        ("etag", "\"5bnavV3rrubcxLI8EvFXhB\""),
        ("last-modified", "Fri, 20 Nov 2026 21:11:29 GMT"),
        ("content-type", "application/octet-stream"),
        ("link", "</buckets/test>; rel=\"up\""),
        ("vary", "Accept-Encoding"),
    ];
    pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).into_iter().collect()
}
