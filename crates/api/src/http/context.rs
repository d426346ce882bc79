//! What the HTTP interface works on and how much it takes.

use super::pages::PageRules;
use super::resources::stats::StatsCache;
use crate::admin::AdminContext;
use crate::{JobSwitches, MemoryBudget, MemoryLimits, NetworkThreads};
use ombak_kv::Kv;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How much the interface takes. What goes beyond is refused or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections open at once on one listener; more are told 503 and closed.
    pub connections_max: usize,
    /// Bytes of a request's start line and headers; more are answered 431.
    pub head_bytes_max: usize,
    /// Header lines of a request; more are answered 431.
    pub headers_max: usize,
    /// Bytes of a request's body; more are answered 413.
    pub body_bytes_max: usize,
    /// How long a client may take to send a head. An idle connection is closed after it, too.
    pub head_timeout: Duration,
    /// How long a client may pause while it sends a body.
    pub body_pause_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a client may leave the connection full before it is closed.
    pub write_timeout: Duration,
    /// How long a client that sends no more is waited for while its listing or query has nothing to send.
    pub half_closed_timeout: Duration,
    /// How long requests under way may take to finish once the server was told to stop.
    pub drain_timeout: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            head_bytes_max: 256 * 1024,
            headers_max: 1024,
            body_bytes_max: 50 * 1024 * 1024,
            head_timeout: Duration::from_secs(60),
            body_pause_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(600),
            write_timeout: Duration::from_secs(60),
            half_closed_timeout: Duration::from_secs(2),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// What `/stats` and `/metrics` say that the engine does not know of itself.
#[derive(Clone, Debug)]
pub struct StatsSource {
    /// The name of the backend: `bitcask`, `memory`.
    pub backend: &'static str,
    /// Directories whose disks matter.
    pub dirs: Vec<PathBuf>,
}

/// What all listeners of the HTTP interface work on.
pub struct HttpContext {
    /// The engine.
    pub kv: Kv,
    /// Which expensive requests are allowed.
    pub jobs: JobSwitches,
    /// How much it takes.
    pub limits: HttpLimits,
    /// What statistics say beside the engine's.
    pub stats_source: StatsSource,
    /// What requests below `/admin` work on; without it there are none.
    pub admin: Option<AdminContext>,
    pub(super) pages: PageRules,
    /// Where connections are served.
    pub threads: Arc<NetworkThreads>,
    /// The memory of requests and answers in flight.
    pub(super) memory: MemoryBudget,
    pub(super) stats: StatsCache,
}

impl HttpContext {
    /// From its parts, with a budget of memory of its own.
    pub fn new(
        kv: Kv,
        jobs: JobSwitches,
        limits: HttpLimits,
        stats_source: StatsSource,
        admin: Option<AdminContext>,
        threads: Arc<NetworkThreads>,
    ) -> Self {
        let memory = MemoryBudget::new(MemoryLimits::default());
        let (pages, stats) = (PageRules::default(), StatsCache::default());
        Self { kv, jobs, limits, stats_source, admin, pages, threads, memory, stats }
    }

    /// The same, with a budget of memory that other interfaces share.
    #[must_use]
    pub fn with_memory(self, memory: MemoryBudget) -> Self {
        Self { memory, ..self }
    }

    /// The same, with these rules for web pages.
    pub fn with_pages(self, pages: PageRules) -> Self {
        Self { pages, ..self }
    }
}
