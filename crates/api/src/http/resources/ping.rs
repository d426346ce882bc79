//! The resource `/ping`: shows that the process answers.

use crate::http::graph::{Offers, READ_ONLY, Resource};
use crate::http::reply::{self, Reply};
use bytes::Bytes;
use http::StatusCode;
use smallvec::smallvec;

/// The resource `GET /ping`.
pub struct Ping;

impl Resource for Ping {
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
