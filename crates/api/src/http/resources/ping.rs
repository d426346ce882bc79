//! The resource `/ping`: shows that the process answers.

use crate::access::Access;
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
    Box::pin(async move { decide(call.ctx, &mut Ping, call.request).await })
}

/// The resource `GET /ping`.
pub struct Ping;

impl Resource for Ping {
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
        reply::html(StatusCode::OK, "OK")
    }
}
