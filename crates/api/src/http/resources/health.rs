//! The resources `/health/live`, `/health/ready` and `/health/listeners`, for programs that
//! supervise the process or look for its ports.

use crate::access::Access;
use crate::admin::known_losses;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Offers, READ_ONLY, Resource, decide};
use crate::http::path::Part::Word;
use crate::http::path::{Call, Path, PathGuard};
use crate::http::reply::{self, Reply};
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_kv::NoPart;
use serde_json::json;

/// The paths of these resources.
pub const PATHS: &[Path] = &[
    Path::plain("live", &[Word(b"health"), Word(b"live")], live).guarded(PathGuard::Anybody),
    Path::plain("ready", &[Word(b"health"), Word(b"ready")], ready).guarded(PathGuard::Anybody),
    Path::plain("listeners", &[Word(b"health"), Word(b"listeners")], listeners).guarded(PathGuard::Anybody),
];

fn live(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move { decide(call.ctx, &mut Live, call.request).await })
}

fn ready(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move { decide(call.ctx, &mut Ready::new(call.ctx), call.request).await })
}

fn listeners(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move { decide(call.ctx, &mut Listeners::new(call.ctx), call.request).await })
}

/// The resource `GET /health/live`: the process answers, so a restart would not help.
pub struct Live;

impl Resource for Live {
    fn access(&self) -> Option<Access<'_>> {
        None
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    fn offers(&self) -> Offers {
        Offers::default()
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        reply::json(StatusCode::OK, "{\"live\":true}")
    }
}

/// The resource `GET /health/ready`: whether requests should be sent to this node. If not, the
/// answer is 503 with the reasons.
pub struct Ready<'a> {
    ctx: &'a HttpContext,
}

impl<'a> Ready<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext) -> Self {
        Self { ctx }
    }
}

impl Resource for Ready<'_> {
    fn access(&self) -> Option<Access<'_>> {
        None
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    fn offers(&self) -> Offers {
        Offers::default()
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let health = self.ctx.kv.health();
        let poisoned: Vec<_> =
            health.poisoned.iter().map(|(partition, why)| json!({"partition": partition, "reason": why})).collect();
        let ready = health.ready && poisoned.is_empty() && !health.disk_full;
        let body = json!({
            "ready": ready,
            "poisoned": poisoned,
            "disk_full": health.disk_full,
            "may_lack_decisions": self.ctx.security.as_ref().is_some_and(|security| security.is_behind()),
            "takes_no_part": self.ctx.kv.no_part().map(NoPart::text),
            "known_losses": known_losses(&health),
        });
        reply::json(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body.to_string())
    }
}

/// The resource `GET /health/listeners`: the addresses of the node for each protocol, so that one
/// address is enough to find the others. The answer says nothing that a client could not find out
/// by connecting.
pub struct Listeners<'a> {
    ctx: &'a HttpContext,
}

impl<'a> Listeners<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext) -> Self {
        Self { ctx }
    }
}

impl Resource for Listeners<'_> {
    fn access(&self) -> Option<Access<'_>> {
        None
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    fn offers(&self) -> Offers {
        Offers::default()
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let node = self.ctx.admin.as_ref().map(|admin| &admin.node);
        let body = json!({
            "http": node.map(|n| &n.http),
            "https": node.map(|n| &n.https),
            "pb": node.map(|n| &n.pb),
        });
        reply::json(StatusCode::OK, body.to_string())
    }
}
