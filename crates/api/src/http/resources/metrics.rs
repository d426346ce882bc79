//! The resource `/metrics`: statistics for Prometheus.

use super::stats;
use crate::access::Access;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Offers, READ_ONLY, Resource, decide};
use crate::http::path::Part::Word;
use crate::http::path::{Call, Path, PathGuard};
use crate::http::reply::{self, Reply};
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_monitoring::{PROMETHEUS_CONTENT_TYPE, prometheus_text};
use std::sync::Arc;

/// The paths of this resource.
pub const PATHS: &[Path] = &[Path::plain("metrics", &[Word(b"metrics")], run).guarded(PathGuard::Monitoring)];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move { decide(call.ctx, &mut Metrics::new(call.ctx), call.request).await })
}

/// The resource `GET /metrics`.
pub struct Metrics {
    ctx: Arc<HttpContext>,
}

impl Metrics {
    /// Creates the resource for one request.
    pub fn new(ctx: &Arc<HttpContext>) -> Self {
        Self { ctx: Arc::clone(ctx) }
    }
}

impl Resource for Metrics {
    fn access(&self) -> Option<Access<'_>> {
        None
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    /// Offers nothing to negotiate: a scraper asks for one of several formats and accepts the one
    /// it gets.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let ctx = self.ctx.clone();
        let body = tokio::task::spawn_blocking(move || {
            let facts = stats::facts(&ctx.kv, &ctx.stats_source);
            let engine = prometheus_text(ctx.kv.stats(), &facts, &ctx.kv.vnode_status());
            engine + &ctx.memory.status().to_prometheus()
        });
        match body.await {
            Ok(body) => reply::typed(StatusCode::OK, PROMETHEUS_CONTENT_TYPE, body),
            Err(_) => reply::page(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}
