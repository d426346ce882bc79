//! Tests of the interface as clients see it: real sockets, and a real engine on the memory backend.

mod access;
pub(crate) mod administration;
mod data_types;
mod deadlines;
mod expiry;
mod index;
mod limits;
mod link_walk;
mod listings;
mod login;
mod map_reduce;
mod memory;
mod node;
mod noise;
mod objects;
mod pages;
mod properties;
mod search;
mod search_administration;
mod tls;
mod unread_answers;
mod wire;

use super::context::{HttpContext, HttpLimits, StatsSource};
use super::pages::PageRules;
use super::wire::connection;
use crate::access::{AccessPolicy, Session};
use crate::client_stream::{ClientStream, test_tls};
use crate::stop::Stop;
use crate::{JobSwitches, MemoryBudget, MemoryLimits, NetworkThreads};
use ombak_kv::hooks::Hooks;
use ombak_kv::{Kv, KvConfig, head_terms};
use ombak_runtime::{Runtime, TokioRuntime};
use ombak_storage::{MemoryConfig, MemoryFactory};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A time limit that no correct test reaches.
const DEADLINE: Duration = Duration::from_secs(20);

/// The name of the listener of a test.
const LISTENER: &str = "listener.http.test";

/// A running HTTP interface.
struct Server {
    addr: SocketAddr,
    kv: Kv,
    memory: MemoryBudget,
    ctx: Arc<HttpContext>,
    shutdown: watch::Sender<bool>,
    task: JoinHandle<()>,
    _dir: TempDir,
}

/// An answer of the server.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Server {
    async fn start() -> Self {
        Self::with(HttpLimits::default(), JobSwitches::default()).await
    }

    async fn with(limits: HttpLimits, jobs: JobSwitches) -> Self {
        Self::timed(limits, jobs, Arc::new(TokioRuntime)).await
    }

    async fn timed(limits: HttpLimits, jobs: JobSwitches, runtime: Arc<dyn Runtime>) -> Self {
        Self::within(MemoryLimits::default(), limits, jobs, runtime).await
    }

    async fn within(memory: MemoryLimits, limits: HttpLimits, jobs: JobSwitches, runtime: Arc<dyn Runtime>) -> Self {
        let dir = TempDir::new().expect("a directory");
        let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let hooks = Hooks { kinds: ombak_datatypes::kinds(), ..Hooks::default() };
        let config = KvConfig { ring_size: 8, runtime, hooks, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
        Self::over(config, dir, memory, limits, jobs).await
    }

    /// Starts a server over an engine with this configuration. The engine's files are in `dir`.
    async fn over(config: KvConfig, dir: TempDir, memory: MemoryLimits, limits: HttpLimits, jobs: JobSwitches) -> Self {
        Self::changed(config, dir, memory, limits, jobs, |ctx| ctx).await
    }

    /// Starts a server whose state `change` may change.
    async fn changed(
        config: KvConfig,
        dir: TempDir,
        memory: MemoryLimits,
        limits: HttpLimits,
        jobs: JobSwitches,
        change: impl FnOnce(HttpContext) -> HttpContext,
    ) -> Self {
        let memory = MemoryBudget::new(memory);
        let kv = tokio::task::spawn_blocking(move || Kv::open(config)).await.expect("no panic").expect("opens");
        let threads = Arc::new(NetworkThreads::start(2).expect("threads"));
        let source = StatsSource { backend: "memory", dirs: vec![dir.path().to_owned()] };
        // The requests that tests write out in full call the server by these names.
        let pages = PageRules::new(&[], &["h".to_owned(), "x".to_owned()], []);
        let ctx = HttpContext::new(kv.clone(), jobs, limits, source, None, threads);
        let ctx = Arc::new(change(ctx.with_pages(pages).with_memory(memory.clone())));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let (shutdown, stopped) = watch::channel(false);
        let listener = test_tls::listener(listener, LISTENER);
        let task = tokio::spawn(super::serve(listener, ctx.clone(), stopped));
        Self { addr, kv, memory, ctx, shutdown, task, _dir: dir }
    }

    /// Creates and activates a bucket type with Riak's defaults for new types, which keep siblings.
    fn create_type(&self, name: &str) {
        let buckets = self.kv.buckets();
        buckets.create_type(name.as_bytes(), &Default::default()).expect("created");
        buckets.activate_type(name.as_bytes()).expect("activated");
    }

    /// A number of `/stats`.
    fn stat(&self, name: &str) -> u64 {
        self.kv.stats().numbers().into_iter().find(|(is, _)| is == name).expect("a number of that name").1
    }

    /// Waits until a number of `/stats` is zero.
    async fn until_none(&self, name: &str) {
        let none = timeout(DEADLINE, async {
            while self.stat(name) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        none.await.unwrap_or_else(|_| panic!("{name} stays above zero"));
    }

    /// Sends requests on a new connection that the thread of the test serves. The thread begins to
    /// serve it when the test waits next.
    async fn send_on_this_thread(&self, requests: &[u8]) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let stream = TcpStream::connect(addr).await.expect("a connection");
        self.send_and_serve(stream, listener, requests).await
    }

    /// Does the same on a connection to this listener.
    async fn send_and_serve(&self, mut stream: TcpStream, listener: TcpListener, requests: &[u8]) -> TcpStream {
        let (served, peer) = listener.accept().await.expect("the connection");
        stream.write_all(requests).await.expect("sent");
        let stop = Stop::new(&self.shutdown.subscribe());
        let session = Session::new(peer, LISTENER.into());
        tokio::spawn(connection::serve(ClientStream::Plain(served), session, self.ctx.clone(), stop));
        stream
    }

    /// Starts a server with a policy that decides which requests are allowed.
    async fn guarded(policy: Arc<dyn AccessPolicy>) -> Self {
        let dir = TempDir::new().expect("a directory");
        let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let config = KvConfig { ring_size: 8, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
        let (limits, jobs) = (HttpLimits::default(), JobSwitches::default());
        Self::changed(config, dir, MemoryLimits::default(), limits, jobs, |ctx| ctx.with_policy(policy)).await
    }

    async fn connect(&self) -> TcpStream {
        test_tls::connection(self.addr).await
    }

    /// Sends bytes on a new connection, and returns everything that the server sends until it
    /// closes the connection.
    async fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.expect("sent");
        let mut out = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut out)).await.expect("the server ends the connection").ok();
        out
    }

    /// Does the same as [`Self::exchange`], but closes the sending side after the bytes.
    async fn shut_exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        // The server may have closed the connection before everything was sent.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut out = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut out)).await.expect("the server ends the connection").ok();
        out
    }

    /// Sends one request. `headers` consists of whole lines, each with its line end.
    async fn request(&self, method: &str, path: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let mut bytes = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            self.addr,
            body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        Answer::parse(&self.exchange(&bytes).await)
    }

    async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "", "").await
    }

    async fn put(&self, path: &str, headers: &str, body: &str) -> Answer {
        self.request("PUT", path, &format!("Content-Type: text/plain\r\n{headers}"), body).await
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head[9..12].parse().expect("a status");
        let answer = Self { status, head, body: bytes[end + 4..].to_vec() };
        match answer.header("transfer-encoding") {
            Some("chunked") => Self { body: unchunked(&answer.body), ..answer },
            _ => answer,
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    fn clock(&self) -> String {
        self.header("x-riak-vclock").unwrap_or_else(|| panic!("no clock: {}", self.head)).to_owned()
    }
}

/// The content of a chunked body. This fails if the body was cut off and has no end.
fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let line = body.windows(2).position(|w| w == b"\r\n").expect("a chunk's size");
        let size = std::str::from_utf8(&body[..line]).ok().and_then(|s| usize::from_str_radix(s, 16).ok());
        let size = size.expect("a number");
        body = &body[line + 2..];
        out.extend_from_slice(&body[..size]);
        if size == 0 {
            return out;
        }
        body = &body[size + 2..];
    }
}
