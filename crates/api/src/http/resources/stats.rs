//! The resource `/stats`: Riak's statistics, as compact JSON or spread over lines for people
//! (docs/riak/http-api.md §1).

use crate::access::Access;
use crate::http::context::{HttpContext, StatsSource};
use crate::http::decision_graph::{Offers, READ_ONLY, Resource, decide};
use crate::http::path::Part::Word;
use crate::http::path::{Call, Path, PathGuard};
use crate::http::reply::{self, Reply};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_kv::Kv;
use ombak_monitoring::{NodeFacts, SystemFacts, riak_stats};
use ombak_repair::Repair;
use serde_json::{Map, Value};
use std::path::Path as FsPath;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The paths of this resource.
pub const PATHS: &[Path] = &[Path::plain("stats", &[Word(b"stats")], run).guarded(PathGuard::Monitoring)];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move { decide(call.ctx, &mut Stats::new(call.ctx), call.request).await })
}

/// How long an answer is reused before it is computed again.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The last answer. It is shared, so that many simultaneous requests cause only one computation.
#[derive(Default)]
pub struct StatsCache {
    last: Mutex<Option<Answer>>,
}

struct Answer {
    computed: Instant,
    stats: Arc<Map<String, Value>>,
}

impl StatsCache {
    /// The last answer if it is fresh, otherwise a new one. This reads small files of the operating
    /// system, so it must not run on a network thread.
    fn get(&self, kv: &Kv, source: &StatsSource) -> Arc<Map<String, Value>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = last.as_ref().filter(|answer| answer.computed.elapsed() < FRESH_FOR) {
            return Arc::clone(&answer.stats);
        }
        let mut stats = riak_stats(kv.stats(), &facts(kv, source));
        // This member is not one of Riak's: the number of places in this node where something is
        // known to be missing.
        let known_losses: u64 = kv.health().known_losses.iter().map(|(_, places)| places).sum();
        stats.insert("ombak_known_losses".into(), known_losses.into());
        let stats = Arc::new(stats);
        *last = Some(Answer { computed: Instant::now(), stats: Arc::clone(&stats) });
        stats
    }
}

/// The facts that statistics need in addition to the counters. This reads small files of the
/// operating system, so it must not run on a network thread.
pub fn facts(kv: &Kv, source: &StatsSource) -> NodeFacts {
    let dirs: Vec<&FsPath> = source.dirs.iter().map(|dir| dir.as_path()).collect();
    NodeFacts {
        node_id: kv.identity().node_id,
        node_names: kv.node_names(),
        ring: kv.ring(),
        backend: source.backend,
        cluster: Repair::of(kv).cluster_figures(),
        system: SystemFacts::read(&dirs),
    }
}

/// The resource `GET /stats`.
pub struct Stats {
    ctx: Arc<HttpContext>,
}

impl Stats {
    /// Creates the resource for one request.
    pub fn new(ctx: &Arc<HttpContext>) -> Self {
        Self { ctx: Arc::clone(ctx) }
    }
}

impl Resource for Stats {
    fn access(&self) -> Option<Access<'_>> {
        None
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    fn offers(&self) -> Offers {
        let types = ["application/json", "text/plain"].map(Bytes::from);
        Offers { types: types.into_iter().collect(), gzip: true }
    }

    async fn answer(&mut self, offer: usize) -> Reply {
        let ctx = self.ctx.clone();
        let body = tokio::task::spawn_blocking(move || {
            let stats = ctx.stats.get(&ctx.kv, &ctx.stats_source);
            if offer == 0 { serde_json::to_vec(&*stats) } else { serde_json::to_vec_pretty(&*stats) }
        });
        match (body.await, offer) {
            (Ok(Ok(body)), 0) => reply::json(StatusCode::OK, body),
            (Ok(Ok(body)), _) => reply::text(StatusCode::OK, body),
            _ => reply::page(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}
