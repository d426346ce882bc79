//! The counters of Riak 1.4: `/buckets/B/counters/K` (docs/riak/http-api.md §8).

use crate::access::{Access, Permission};
use crate::data_types;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Offers, Resource, decide};
use crate::http::error_status::{self, RequestKind};
use crate::http::params::ObjectParams;
use crate::http::path::Part::{Name, Word};
use crate::http::path::{Call, Generation, Path, Serve};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_datatypes::legacy_put;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::{Bucket, Error};
use smallvec::smallvec;

/// The paths of this resource.
pub const PATHS: &[Path] = &[
    Path::plain("counter", &[Word(b"buckets"), Name, Word(b"counters"), Name], run),
    Path::new(
        "counter",
        Generation::Types,
        &[Word(b"types"), Word(DEFAULT_TYPE), Word(b"buckets"), Name, Word(b"counters"), Name],
        Serve::Boxed(run),
    ),
];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        let mut counter = Counter {
            ctx: call.ctx,
            request: call.request,
            bucket: call.bucket(),
            key: call.key(),
            params: ObjectParams::default(),
        };
        decide(call.ctx, &mut counter, call.request).await
    })
}

struct Counter<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    key: Bytes,
    params: ObjectParams,
}

impl Counter<'_> {
    /// The amount in the body: an integer with or without a sign.
    fn amount(&self) -> Result<i64, Reply> {
        let text = std::str::from_utf8(&self.request.body).unwrap_or_default();
        text.parse().map_err(|_| reply::page(StatusCode::BAD_REQUEST))
    }

    async fn read(&self) -> Result<Reply, Reply> {
        let (bucket, key, options) = (self.bucket.clone(), self.key.clone(), self.params.get_options()?);
        let read = self.request.read(&self.ctx.kv, &data_types::fetch(bucket, key, options)).await;
        match read.and_then(data_types::fetched_counter) {
            Ok(Some(sum)) => Ok(reply::text(StatusCode::OK, sum.to_string())),
            Ok(None) => Err(error_status::reply_for(&Error::NotFound, RequestKind::Other)),
            Err(error) => Err(error_status::reply_for(&error, RequestKind::Other)),
        }
    }

    async fn count(&self) -> Result<Reply, Reply> {
        let failed = |error| error_status::reply_for(&error, RequestKind::Other);
        let amount = self.amount()?;
        let mut options = self.params.put_options()?;
        options.return_body = self.request.parameter_is("returnvalue", "true");
        let (bucket, key) = (self.bucket.clone(), self.key.clone());
        let put = legacy_put(bucket, key, amount, options);
        let reply = self.request.write(&self.ctx.kv, put).await.map_err(failed)?;
        Ok(match data_types::updated_counter(&reply) {
            Some(sum) => reply::text(StatusCode::OK, sum.to_string()),
            None => reply::text(StatusCode::NO_CONTENT, Bytes::new()),
        })
    }
}

impl Resource for Counter<'_> {
    fn access(&self) -> Option<Access<'_>> {
        let permission = if self.request.is_read() { Permission::GET } else { Permission::PUT };
        Some(Access::to_bucket(permission, None, &self.bucket.name))
    }

    fn allow(&self) -> &'static str {
        "GET, POST"
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        self.params = ObjectParams::parse(self.request)?;
        let props = self.ctx.kv.buckets().props(&self.bucket);
        let props = props.map_err(|error| error_status::reply_for(&error, RequestKind::Other))?;
        if props.allow_mult {
            Ok(())
        } else {
            Err(reply::text(StatusCode::CONFLICT, data_types::COUNTERS_NEED_SIBLINGS))
        }
    }

    fn offers(&self) -> Offers {
        Offers { types: smallvec![Bytes::from_static(b"text/plain")], gzip: false }
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let answer = if self.request.is_read() { self.read().await } else { self.count().await };
        answer.unwrap_or_else(|refusal| refusal)
    }
}
