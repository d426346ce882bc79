//! Indexes and schemas of search (docs/riak/pb-api.md §12).

use super::context::PbContext;
use super::failure::Failure;
use super::handler::{Exchange, Handler, Immediate, Request, Streaming};
use super::refusal::Refusal;
use crate::access::Access;
use crate::search::{Administered, change};
use bytes::Bytes;
use ombak_proto::code;
use ombak_proto::messages::{
    RpbYokozunaIndex, RpbYokozunaIndexDeleteReq, RpbYokozunaIndexGetReq, RpbYokozunaIndexGetResp,
    RpbYokozunaIndexPutReq, RpbYokozunaSchema, RpbYokozunaSchemaGetReq, RpbYokozunaSchemaGetResp,
    RpbYokozunaSchemaPutReq,
};
use ombak_proto::reply::{write_empty, write_message};
use ombak_searching::{AdminError, IndexInfo, Search};
use std::sync::Arc;

/// The messages of this feature. A schema may be larger than other messages.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::immediate::<RpbYokozunaIndexGetReq>(code::YOKOZUNA_INDEX_GET_REQ).of_search(),
    Handler::streaming::<RpbYokozunaIndexPutReq>(code::YOKOZUNA_INDEX_PUT_REQ).of_search(),
    Handler::streaming::<RpbYokozunaIndexDeleteReq>(code::YOKOZUNA_INDEX_DELETE_REQ).of_search(),
    Handler::immediate::<RpbYokozunaSchemaGetReq>(code::YOKOZUNA_SCHEMA_GET_REQ).of_search(),
    Handler::streaming::<RpbYokozunaSchemaPutReq>(code::YOKOZUNA_SCHEMA_PUT_REQ).of_search().of_any_size(),
];

/// What Riak says of an index or a schema that is not there.
const NOT_FOUND: &str = "notfound";

impl Request for RpbYokozunaIndexGetReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Administered::Indexes.access())
    }
}

impl Immediate for RpbYokozunaIndexGetReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        let search = search_of(exchange.ctx)?;
        let index = match &self.name {
            None => search.indexes(),
            Some(name) => {
                let info = std::str::from_utf8(name).ok().and_then(|name| search.index(name));
                vec![info.ok_or_else(|| Refusal::new(NOT_FOUND))?]
            }
        };
        let answer = RpbYokozunaIndexGetResp { index: index.into_iter().map(index_message).collect() };
        write_message(code::YOKOZUNA_INDEX_GET_RESP, &answer, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbYokozunaIndexPutReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Administered::Indexes.access())
    }
}

impl Streaming for RpbYokozunaIndexPutReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let RpbYokozunaIndex { name, schema, n_val } = self.index;
        let search = search_of(exchange.ctx)?;
        let shown = String::from_utf8_lossy(&name).into_owned();
        let created = async {
            let name = Administered::Indexes.name(&name)?.to_owned();
            let schema = schema.map(|schema| Administered::Schemas.name(&schema).map(str::to_owned)).transpose()?;
            change(search, move |search| search.create_index(&name, schema.as_deref(), n_val)).await
        };
        created.await.map_err(|error: AdminError| match error {
            AdminError::NoSchema(_) => Refusal::new("Schema not found"),
            AdminError::BadName(problem) => Refusal::new(problem.to_string()),
            other => Refusal::new(format!("Error creating index '{shown}': {other}")),
        })?;
        write_empty(code::PUT_RESP, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbYokozunaIndexDeleteReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Administered::Indexes.access())
    }
}

impl Streaming for RpbYokozunaIndexDeleteReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let search = search_of(exchange.ctx)?;
        let deleted = async {
            let name = std::str::from_utf8(&self.name).map_err(|_| AdminError::NotFound)?.to_owned();
            change(search, move |search| search.delete_index(&name)).await
        };
        deleted.await.map_err(|error: AdminError| match error {
            AdminError::NotFound => Refusal::new(NOT_FOUND),
            other => Refusal::new(other.to_string()),
        })?;
        write_empty(code::DEL_RESP, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbYokozunaSchemaGetReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Administered::Schemas.access())
    }
}

impl Immediate for RpbYokozunaSchemaGetReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        let search = search_of(exchange.ctx)?;
        let content = std::str::from_utf8(&self.name).ok().and_then(|name| search.schema(name));
        let content = content.ok_or_else(|| Refusal::new(NOT_FOUND))?;
        let schema = RpbYokozunaSchema { name: self.name, content: Some(content.into()) };
        let answer = RpbYokozunaSchemaGetResp { schema };
        write_message(code::YOKOZUNA_SCHEMA_GET_RESP, &answer, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbYokozunaSchemaPutReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Administered::Schemas.access())
    }
}

impl Streaming for RpbYokozunaSchemaPutReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let RpbYokozunaSchema { name, content } = self.schema;
        let search = search_of(exchange.ctx)?;
        let stored = async {
            let name = Administered::Schemas.name(&name)?.to_owned();
            let content: Bytes = content.unwrap_or_default();
            change(search, move |search| search.put_schema(&name, &content)).await
        };
        stored.await.map_err(|error: AdminError| Refusal::new(format!("Error storing schema {error}")))?;
        write_empty(code::PUT_RESP, &mut exchange.writer.buffer);
        Ok(())
    }
}

fn index_message(info: IndexInfo) -> RpbYokozunaIndex {
    RpbYokozunaIndex { name: info.name.into(), schema: Some(info.schema.into()), n_val: Some(info.n_val) }
}

/// The search of the node. The registry passes no message of search to a node without it.
fn search_of(ctx: &PbContext) -> Result<&Arc<Search>, Refusal> {
    ctx.search.as_ref().ok_or_else(|| Refusal::new("Search component disabled"))
}
