//! The shared state and the limits of the HTTP interface.

use super::pages::PageRules;
use super::resources::stats::StatsCache;
use crate::access::AccessPolicy;
use crate::admin::AdminContext;
use crate::security::NodeSecurity;
use crate::{JobSwitches, MemoryBudget, MemoryLimits, NetworkThreads};
use ombak_jobs::Jobs;
use ombak_key_queues::{KeyQueues, KeyQueuesConfig};
use ombak_kv::Kv;
use ombak_searching::Search;
use ombak_security::AddressRange;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The limits of the interface. Requests and connections beyond them are refused or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// The highest number of open connections on one listener. Further connections are answered
    /// with 503 and closed.
    pub connections_max: usize,
    /// The largest start line and headers of a request, in bytes. A larger head is answered with
    /// 431.
    pub head_bytes_max: usize,
    /// The highest number of header lines of a request. More are answered with 431.
    pub headers_max: usize,
    /// The largest body of a request, in bytes. A larger one is answered with 413.
    pub body_bytes_max: usize,
    /// How long a client may take to send a head. An idle connection is also closed after this
    /// time.
    pub head_timeout: Duration,
    /// How long a client may pause while it sends a body.
    pub body_pause_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a client may leave its connection full before the connection is closed.
    pub write_timeout: Duration,
    /// How long the server keeps working on a listing or query that has nothing to send, for a
    /// client that has closed its sending side.
    pub half_closed_timeout: Duration,
    /// How long requests in progress may take to finish after the server was told to stop.
    pub drain_timeout: Duration,
    /// How long requests in progress on plain connections may take to finish when security is
    /// switched on.
    pub plain_drain_timeout: Duration,
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
            plain_drain_timeout: Duration::from_secs(5),
        }
    }
}

/// Facts for `/stats` and `/metrics` that the engine does not know.
#[derive(Clone, Debug)]
pub struct StatsSource {
    /// The name of the backend, such as `bitcask` or `memory`.
    pub backend: &'static str,
    /// The directories whose disks are reported.
    pub dirs: Vec<PathBuf>,
}

/// The state that all listeners of the HTTP interface share.
pub struct HttpContext {
    /// The engine.
    pub kv: Kv,
    /// Runs MapReduce jobs.
    pub map_reduce: Jobs,
    /// The keys that folds erase, reap and repair.
    pub key_queues: KeyQueues,
    /// The search of the node. Without it there are no resources of search.
    pub search: Option<Arc<Search>>,
    /// The expensive requests that are allowed.
    pub jobs: JobSwitches,
    /// The limits of the interface.
    pub limits: HttpLimits,
    /// Facts for statistics that the engine does not know.
    pub stats_source: StatsSource,
    /// The state for requests below `/admin`. Without it there are no such resources.
    pub admin: Option<AdminContext>,
    pub(super) pages: PageRules,
    /// The security of the node. Without it, no client has to prove who it is.
    pub(super) security: Option<Arc<NodeSecurity>>,
    /// Who may read statistics without being a user.
    pub(super) monitoring: Vec<AddressRange>,
    /// Decides which requests are allowed. Without a policy, all are.
    pub(super) policy: Option<Arc<dyn AccessPolicy>>,
    /// The threads that serve connections.
    pub threads: Arc<NetworkThreads>,
    /// The memory budget of requests and answers in flight.
    pub(super) memory: MemoryBudget,
    pub(super) stats: StatsCache,
}

impl HttpContext {
    /// Creates the state from its parts, with a memory budget of its own.
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
        let map_reduce = Jobs::alone(kv.clone());
        let key_queues = KeyQueues::new(&kv, KeyQueuesConfig::default());
        Self {
            kv,
            map_reduce,
            key_queues,
            search: None,
            jobs,
            limits,
            stats_source,
            admin,
            pages,
            security: None,
            monitoring: Vec::new(),
            policy: None,
            threads,
            memory,
            stats,
        }
    }

    /// The same state with a memory budget that is shared with other interfaces.
    #[must_use]
    pub fn with_memory(self, memory: MemoryBudget) -> Self {
        Self { memory, ..self }
    }

    /// The same state with what runs MapReduce jobs over a cluster.
    #[must_use]
    pub fn with_map_reduce(self, map_reduce: Jobs) -> Self {
        Self { map_reduce, ..self }
    }

    /// The same state with the queues of keys of the node.
    #[must_use]
    pub fn with_key_queues(self, key_queues: KeyQueues) -> Self {
        Self { key_queues, ..self }
    }

    /// The same state with the search of the node.
    #[must_use]
    pub fn with_search(self, search: Arc<Search>) -> Self {
        Self { search: Some(search), ..self }
    }

    /// The same state with a policy that decides which requests are allowed.
    #[must_use]
    pub fn with_policy(self, policy: Arc<dyn AccessPolicy>) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// The same state with security, which decides which requests are allowed. From the addresses
    /// of `monitoring` statistics are read without a user.
    #[must_use]
    pub fn with_security(self, security: Arc<NodeSecurity>, monitoring: Vec<AddressRange>) -> Self {
        Self { security: Some(Arc::clone(&security)), monitoring, ..self.with_policy(security) }
    }

    /// Whether clients have to prove who they are.
    pub(super) fn is_secured(&self) -> bool {
        self.security.as_ref().is_some_and(|security| security.is_on())
    }

    /// The same state with these rules for web pages.
    pub fn with_pages(self, pages: PageRules) -> Self {
        Self { pages, ..self }
    }
}
