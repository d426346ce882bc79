//! A client's bytes on the HTTP port of a running interface, with an engine on the memory backend.
//! They get an answer or a closed connection, and the next client is served.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ombak_api::http::{self, HttpContext, HttpLimits, PageRules, StatsSource};
use ombak_api::{JobSwitches, NetworkThreads};
use ombak_kv::{Kv, KvConfig};
use ombak_storage::MemoryFactory;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::timeout;

/// No request takes nearly this long.
const DEADLINE: Duration = Duration::from_secs(10);

struct Server {
    runtime: Runtime,
    addr: SocketAddr,
    _shutdown: watch::Sender<bool>,
    _dir: TempDir,
}

fn start() -> Server {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let dir = TempDir::new().expect("a directory");
    let config = KvConfig { ring_size: 8, ..KvConfig::new("fuzz@127.0.0.1", dir.path(), Arc::new(MemoryFactory::default())) };
    let kv = Kv::open(config).expect("the engine opens");
    kv.buckets().create_type(b"t", &Default::default()).expect("a type is created");
    kv.buckets().activate_type(b"t").expect("a type is activated");
    let limits = HttpLimits { body_bytes_max: 1 << 20, ..HttpLimits::default() };
    let threads = Arc::new(NetworkThreads::start(1).expect("a thread"));
    let source = StatsSource { backend: "memory", dirs: Vec::new() };
    let context = HttpContext::new(kv, JobSwitches::default(), limits, source, None, threads);
    // These rules accept every host name, so that requests reach a resource.
    let pages = PageRules::new(&[], &[], [SocketAddr::from(([0, 0, 0, 0], 0))]);
    let context = Arc::new(context.with_pages(pages));
    let (shutdown, stopped) = watch::channel(false);
    let addr = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        tokio::spawn(http::serve(listener, context, stopped));
        addr
    });
    Server { runtime, addr, _shutdown: shutdown, _dir: dir }
}

async fn exchange(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).await.expect("a connection");
    // The server may have closed the connection before everything was sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    timeout(DEADLINE, stream.read_to_end(&mut answer)).await.expect("the server ends the connection").ok();
    answer
}

fuzz_target!(|bytes: &[u8]| {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let server = SERVER.get_or_init(start);
    server.runtime.block_on(async {
        let answer = exchange(server.addr, bytes).await;
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{}", answer.escape_ascii());
        let ping = exchange(server.addr, b"GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(ping.starts_with(b"HTTP/1.1 200"), "{}", ping.escape_ascii());
    });
});
