//! Schemas: `/search/schema/SCHEMA`. They are read as they were stored, byte for byte.

use super::{media_type, refusal, search_of, status_of};
use crate::access::Access;
use crate::http::conditional::Validators;
use crate::http::decision_graph::{Existence, Offers, Resource, Types, decide};
use crate::http::path::Call;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::search::{Administered, change};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use ombak_searching::{AdminError, Search};
use smallvec::smallvec;
use std::sync::Arc;

const XML: &str = "application/xml";

pub(super) fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        let search = match search_of(&call) {
            Ok(search) => search,
            Err(refusal) => return refusal,
        };
        let name = call.parts.part(2);
        decide(call.ctx, &mut Schema { search, request: call.request, name, present: None }, call.request).await
    })
}

/// The resource for one schema.
struct Schema<'a> {
    search: &'a Arc<Search>,
    request: &'a Request,
    name: Bytes,
    /// What a read has found.
    present: Option<Vec<u8>>,
}

impl Resource for Schema<'_> {
    fn access(&self) -> Option<Access<'_>> {
        Some(Administered::Schemas.access())
    }

    fn allow(&self) -> &'static str {
        "HEAD, GET, PUT"
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        match self.request.method == Method::PUT && media_type(self.request) != XML {
            true => Err(reply::page(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
            false => Ok(()),
        }
    }

    fn offers(&self) -> Offers {
        let types = if self.request.is_read() { smallvec![Bytes::from_static(XML.as_bytes())] } else { Types::new() };
        Offers { types, gzip: true }
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        if self.request.is_read() {
            self.present = std::str::from_utf8(&self.name).ok().and_then(|name| self.search.schema(name));
            if self.present.is_none() {
                return Err(refusal(&AdminError::NotFound));
            }
        }
        Ok(Existence::Present(Validators::default()))
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        if let Some(present) = self.present.take() {
            return reply::typed(StatusCode::OK, XML, present);
        }
        match self.put().await {
            Ok(()) => reply::bare(StatusCode::NO_CONTENT, Bytes::new()),
            Err(error) => reply::text(status_of(&error), format!("Error storing schema: {error}\n")),
        }
    }
}

impl Schema<'_> {
    async fn put(&self) -> Result<(), AdminError> {
        let (name, xml) = (Administered::Schemas.name(&self.name)?.to_owned(), self.request.body.clone());
        change(self.search, move |search| search.put_schema(&name, &xml).map(drop)).await
    }
}
