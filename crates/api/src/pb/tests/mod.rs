//! Tests over real sockets, against a real engine on the memory backend.

mod access;
mod datatypes;
mod expiry;
mod index;
mod limits;
mod listings;
mod login;
mod map_reduce;
mod memory;
mod messages;
mod objects;
mod search;
mod tls;

use super::{PbConfig, PbContext, connection, serve};
use crate::access::Session;
use crate::client_stream::{ClientStream, test_tls};
use crate::security::PlainSessions;
use crate::{MemoryBudget, MemoryLimits, NetworkThreads};
use bytes::BytesMut;
use ombak_jobs::Jobs;
use ombak_kv::hooks::Hooks;
use ombak_kv::{Kv, KvConfig, head_terms};
use ombak_proto::frame::{Frame, next_frame};
use ombak_proto::messages::RpbErrorResp;
use ombak_proto::reply::{write_empty, write_message};
use ombak_proto::{code, lenient};
use ombak_runtime::{Runtime, TokioRuntime};
use ombak_storage::fs::RealFs;
use ombak_storage::{BackendFactory, BitcaskFactory, JournalConfig, MemoryConfig, MemoryFactory, SyncStrategy};
use prost::{Message, Name};
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
const PATIENCE: Duration = Duration::from_secs(20);

/// The name of the listener of a test.
const LISTENER: &str = "listener.protobuf.test";

/// A node that serves on a port of its own.
struct Node {
    address: SocketAddr,
    kv: Kv,
    memory: MemoryBudget,
    ctx: Arc<PbContext>,
    stop: watch::Sender<bool>,
    served: JoinHandle<()>,
    _dir: TempDir,
}

impl Node {
    async fn start() -> Self {
        Self::with(PbConfig::default()).await
    }

    async fn with(config: PbConfig) -> Self {
        let backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        Self::over(backend, tempfile::tempdir().unwrap(), config).await
    }

    /// A node that syncs every write to disk.
    async fn synced() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = JournalConfig { sync: SyncStrategy::OSync, ..JournalConfig::default() };
        let backend = BitcaskFactory::new(Arc::new(RealFs), dir.path().join("bitcask"), config).unwrap();
        Self::over(Arc::new(backend), dir, PbConfig::default()).await
    }

    async fn over(backend: Arc<dyn BackendFactory>, dir: TempDir, config: PbConfig) -> Self {
        Self::timed(backend, dir, config, Arc::new(TokioRuntime)).await
    }

    async fn timed(
        backend: Arc<dyn BackendFactory>,
        dir: TempDir,
        config: PbConfig,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let mut kv_config = KvConfig::new("riak@127.0.0.1", dir.path(), backend);
        (kv_config.ring_size, kv_config.runtime) = (8, runtime);
        kv_config.hooks = Hooks { kinds: ombak_datatypes::kinds(), ..Hooks::default() };
        Self::configured(kv_config, dir, config).await
    }

    async fn configured(kv_config: KvConfig, dir: TempDir, config: PbConfig) -> Self {
        Self::limited(kv_config, dir, config, MemoryLimits::default()).await
    }

    async fn limited(kv_config: KvConfig, dir: TempDir, config: PbConfig, limits: MemoryLimits) -> Self {
        Self::changed(kv_config, dir, config, limits, |ctx| ctx).await
    }

    /// A node whose state `change` may change.
    async fn changed(
        kv_config: KvConfig,
        dir: TempDir,
        config: PbConfig,
        limits: MemoryLimits,
        change: impl FnOnce(PbContext) -> PbContext,
    ) -> Self {
        let memory = MemoryBudget::new(limits);
        let kv = tokio::task::spawn_blocking(move || Kv::open(kv_config)).await.unwrap().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let threads = Arc::new(NetworkThreads::start(2).unwrap());
        let map_reduce = Jobs::alone(kv.clone());
        let key_queues = ombak_key_queues::KeyQueues::new(&kv, Default::default());
        let search = None;
        let ctx = PbContext { kv: kv.clone(), map_reduce, key_queues, search, config, memory: memory.clone(), threads };
        let ctx = Arc::new(change(ctx));
        let listener = test_tls::listener(listener, LISTENER);
        let served = tokio::spawn(serve(listener, ctx.clone(), stopped));
        Self { address, kv, memory, ctx, stop, served, _dir: dir }
    }

    async fn connect(&self) -> Wire {
        Wire { stream: test_tls::connection(self.address).await, inbox: BytesMut::new() }
    }

    /// Sends requests on a new connection that the thread of the test serves. The thread begins to
    /// serve it when the test waits next.
    async fn send_on_this_thread(&self, requests: &[u8]) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (served, peer) = listener.accept().await.unwrap();
        stream.write_all(requests).await.unwrap();
        let ctx = self.ctx.clone();
        tokio::spawn(async move {
            let (_stop, shutdown) = watch::channel(false);
            let (session, end) = (Session::new(peer, LISTENER.into()), PlainSessions::new(None, shutdown, PATIENCE));
            connection::serve(ClientStream::Plain(served), session, &ctx, end.session(false)).await;
        });
        Wire { stream, inbox: BytesMut::new() }
    }

    /// The number of open connections.
    fn connections(&self) -> u64 {
        self.stat("pbc_active")
    }

    /// A number of `/stats`.
    fn stat(&self, name: &str) -> u64 {
        self.kv.stats().numbers().into_iter().find(|(is, _)| is == name).unwrap().1
    }

    /// Creates and activates a bucket type.
    async fn bucket_type(&self, name: &'static str, props: serde_json::Value) {
        let (kv, props) = (self.kv.clone(), props.as_object().unwrap().clone());
        let made = tokio::task::spawn_blocking(move || {
            kv.buckets().create_type(name.as_bytes(), &props)?;
            kv.buckets().activate_type(name.as_bytes())
        });
        made.await.unwrap().unwrap();
    }
}

/// The client's end of a connection. It makes no assumptions about the answers of the server.
struct Wire {
    stream: TcpStream,
    inbox: BytesMut,
}

impl Wire {
    async fn send<M: Message>(&mut self, code: u8, message: &M) {
        let mut out = Vec::new();
        write_message(code, message, &mut out);
        self.send_bytes(&out).await;
    }

    async fn send_bytes(&mut self, bytes: &[u8]) {
        timeout(PATIENCE, self.stream.write_all(bytes)).await.expect("the server reads").unwrap();
    }

    /// The next frame; `None` if the server has closed the connection.
    async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = next_frame(&mut self.inbox, usize::MAX).unwrap() {
                return Some(frame);
            }
            match timeout(PATIENCE, self.stream.read_buf(&mut self.inbox)).await.expect("an answer in time") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next frame, which must have this message code.
    async fn expect<M: Message + Name + Default>(&mut self, code: u8) -> M {
        let frame = self.frame().await.expect("the connection is open");
        assert_eq!(frame.code, code, "{:?}", error_text(&frame));
        lenient::decode(&frame.body).unwrap()
    }

    async fn expect_empty(&mut self, code: u8) {
        let frame = self.frame().await.expect("the connection is open");
        assert_eq!((frame.code, frame.body.len()), (code, 0), "{:?}", error_text(&frame));
    }

    async fn expect_error(&mut self) -> String {
        let frame = self.frame().await.expect("the connection is open");
        error_text(&frame).unwrap_or_else(|| panic!("code {} instead of an error", frame.code))
    }

    async fn ask<M: Message, A: Message + Name + Default>(&mut self, code: u8, message: &M, answer: u8) -> A {
        self.send(code, message).await;
        self.expect(answer).await
    }

    async fn ask_refused<M: Message>(&mut self, code: u8, message: &M) -> String {
        self.send(code, message).await;
        self.expect_error().await
    }

    async fn ping(&mut self) {
        let mut out = Vec::new();
        write_empty(code::PING_REQ, &mut out);
        self.send_bytes(&out).await;
        self.expect_empty(code::PING_RESP).await;
    }
}

fn error_text(frame: &Frame) -> Option<String> {
    let error: RpbErrorResp = lenient::decode(&frame.body).ok().filter(|_| frame.code == code::ERROR_RESP)?;
    assert_eq!(error.errcode, 0);
    Some(String::from_utf8_lossy(&error.errmsg).into_owned())
}

/// Waits until `reached` returns true.
async fn until(what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !reached().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never reached: {what}"));
}
