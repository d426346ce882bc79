//! The properties of a bucket type: `/types/T/props` (docs/riak/http-api.md §4).

use super::props_body;
use crate::access::{Access, Permission};
use crate::http::conditional::Validators;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, Resource, decide};
use crate::http::path::Part::{Name, Word};
use crate::http::path::{Call, Generation, Path, Serve};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_kv::buckets::PropsError;
use ombak_types::PropMap;
use ombak_types::etf::BinaryText;

/// The paths of this resource.
pub const PATHS: &[Path] =
    &[Path::new("type props", Generation::Types, &[Word(b"types"), Name, Word(b"props")], Serve::Boxed(run))];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        decide(call.ctx, &mut TypeProps::new(call.ctx, call.request, call.bucket_type()), call.request).await
    })
}

/// The resource for GET and PUT of a bucket type's properties.
pub struct TypeProps<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket_type: Bytes,
    changes: PropMap,
    current: PropMap,
}

impl<'a> TypeProps<'a> {
    /// Creates the resource for one request.
    pub fn new(ctx: &'a HttpContext, request: &'a Request, bucket_type: Bytes) -> Self {
        Self { ctx, request, bucket_type, changes: PropMap::new(), current: PropMap::new() }
    }
}

impl Resource for TypeProps<'_> {
    fn access(&self) -> Option<Access<'_>> {
        let permission = if self.request.is_read() { Permission::GET_BUCKET_TYPE } else { Permission::SET_BUCKET_TYPE };
        Some(Access::to_type(permission, Some(&self.bucket_type)))
    }

    fn allow(&self) -> &'static str {
        "HEAD, GET, PUT"
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        self.changes = props_body::changes(&self.ctx.kv, self.request).await?;
        Ok(())
    }

    fn offers(&self) -> Offers {
        props_body::offers(self.request)
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let Ok(current) = self.ctx.kv.buckets().type_map(&self.bucket_type) else { return Ok(Existence::Missing) };
        self.current = current;
        Ok(Existence::Present(Validators::default()))
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        if self.request.is_read() {
            return reply::json(StatusCode::OK, format!("{{{}}}", props_body::member(&self.current, None)));
        }
        if !props_body::is_json(self.request) {
            return reply::page(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let (kv, bucket_type, changes) =
            (self.ctx.kv.clone(), self.bucket_type.clone(), std::mem::take(&mut self.changes));
        match props_body::change(move || kv.buckets().update_type(&bucket_type, &changes)).await {
            Ok(()) => reply::bare(StatusCode::NO_CONTENT, Bytes::new()),
            Err(PropsError::NoType) => {
                let name = BinaryText(&self.bucket_type);
                reply::text(StatusCode::NOT_FOUND, format!("Cannot modify unknown bucket type: {name}"))
            }
            Err(error) => props_body::refusal(&error),
        }
    }
}
