//! The resource `/ping`: shows that the node serves.

use crate::access::Access;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Offers, READ_ONLY, Resource, decide};
use crate::http::path::Part::Word;
use crate::http::path::{Call, Path};
use crate::http::reply::{self, Reply};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use smallvec::smallvec;

/// The paths of this resource.
pub const PATHS: &[Path] = &[Path::plain("ping", &[Word(b"ping")], run)];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move { decide(call.ctx, &mut Ping::new(call.ctx), call.request).await })
}

/// The resource `GET /ping`. A node that takes no part in its cluster answers everything else with
/// an error, so it answers this with 503 and the reason: programs that spread requests over nodes
/// ask for it.
pub struct Ping<'a> {
    ctx: &'a HttpContext,
}

impl<'a> Ping<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext) -> Self {
        Self { ctx }
    }
}

impl Resource for Ping<'_> {
    fn access(&self) -> Option<Access<'_>> {
        None
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    fn offers(&self) -> Offers {
        Offers { types: smallvec![Bytes::from_static(b"text/html")], gzip: false }
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        match self.ctx.kv.no_part() {
            None => reply::html(StatusCode::OK, "OK"),
            Some(why) => reply::html(StatusCode::SERVICE_UNAVAILABLE, why.text()),
        }
    }
}
