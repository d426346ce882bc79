//! Indexes: `/search/index` and `/search/index/INDEX`.

use super::{media_type, refusal, search_of};
use crate::access::Access;
use crate::http::conditional::Validators;
use crate::http::decision_graph::{Existence, Offers, READ_ONLY, Resource, Types, decide};
use crate::http::path::Call;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::search::{Administered, change};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use ombak_searching::{AdminError, IndexInfo, Search};
use serde_json::Value;
use std::sync::Arc;

/// The largest body, in bytes. Two names and a number need less.
const BODY_BYTES_MAX: usize = 4 << 10;

const BODY_FORM: &str = "The body is empty, or a JSON object such as {\"schema\":\"_yz_default\",\"n_val\":3}\n";

pub(super) fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        let search = match search_of(&call) {
            Ok(search) => search,
            Err(refusal) => return refusal,
        };
        let name = call.parts.names().get(2).map(|name| Bytes::copy_from_slice(name));
        decide(call.ctx, &mut Indexes { search, request: call.request, name, wanted: Wanted::default() }, call.request)
            .await
    })
}

/// What the body of a put says of an index.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    schema: Option<String>,
    n_val: Option<u32>,
}

/// The resource for all indexes, or for the one with a name.
struct Indexes<'a> {
    search: &'a Arc<Search>,
    request: &'a Request,
    name: Option<Bytes>,
    wanted: Wanted,
}

impl Resource for Indexes<'_> {
    fn access(&self) -> Option<Access<'_>> {
        Some(Administered::Indexes.access())
    }

    fn allow(&self) -> &'static str {
        if self.name.is_some() { "HEAD, GET, PUT, DELETE" } else { READ_ONLY }
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        if self.request.method == Method::PUT && !self.request.body.is_empty() {
            if media_type(self.request) != "application/json" {
                return Err(reply::page(StatusCode::UNSUPPORTED_MEDIA_TYPE));
            }
            self.wanted = wanted(&self.request.body)?;
        }
        Ok(())
    }

    fn offers(&self) -> Offers {
        if self.request.is_read() { Offers::json() } else { Offers { types: Types::new(), gzip: true } }
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        match &self.name {
            Some(name) if self.info(name).is_none() && self.request.method == Method::PUT => Ok(Existence::Missing),
            Some(name) if self.info(name).is_none() => Err(refusal(&AdminError::NotFound)),
            _ => Ok(Existence::Present(Validators::default())),
        }
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let changed = match (&self.request.method, &self.name) {
            (&Method::PUT, Some(name)) => self.create(name).await,
            (&Method::DELETE, Some(name)) => self.delete(name).await,
            (_, Some(name)) => {
                let found = self.info(name).ok_or(AdminError::NotFound);
                return found.map_or_else(|error| refusal(&error), |info| reply::json(StatusCode::OK, json(&info)));
            }
            (_, None) => {
                let all: Vec<String> = self.search.indexes().iter().map(json).collect();
                return reply::json(StatusCode::OK, format!("[{}]", all.join(",")));
            }
        };
        match changed {
            Ok(()) => reply::bare(StatusCode::NO_CONTENT, Bytes::new()),
            Err(error) => refusal(&error),
        }
    }
}

impl Indexes<'_> {
    fn info(&self, name: &[u8]) -> Option<IndexInfo> {
        std::str::from_utf8(name).ok().and_then(|name| self.search.index(name))
    }

    async fn create(&self, name: &[u8]) -> Result<(), AdminError> {
        let name = Administered::Indexes.name(name)?.to_owned();
        let (schema, n_val) = (self.wanted.schema.clone(), self.wanted.n_val);
        change(self.search, move |search| search.create_index(&name, schema.as_deref(), n_val)).await
    }

    async fn delete(&self, name: &[u8]) -> Result<(), AdminError> {
        let name = Administered::Indexes.name(name)?.to_owned();
        change(self.search, move |search| search.delete_index(&name)).await
    }
}

/// Reads the body of a put. Members that it does not know are passed over.
fn wanted(body: &[u8]) -> Result<Wanted, Reply> {
    if body.len() > BODY_BYTES_MAX {
        let text = format!("The description of an index has at most {BODY_BYTES_MAX} bytes\n");
        return Err(reply::text(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    let malformed = || reply::text(StatusCode::BAD_REQUEST, BODY_FORM);
    let Ok(Value::Object(members)) = serde_json::from_slice(body) else { return Err(malformed()) };
    let schema = match members.get("schema") {
        None => None,
        Some(Value::String(schema)) => Some(schema.clone()),
        Some(_) => return Err(malformed()),
    };
    let n_val = members.get("n_val").map(|n_val| n_val.as_u64().and_then(|n| u32::try_from(n).ok()));
    if n_val == Some(None) {
        return Err(refusal(&AdminError::BadNVal));
    }
    Ok(Wanted { schema, n_val: n_val.flatten() })
}

fn json(info: &IndexInfo) -> String {
    let text = |text: &str| Value::from(text).to_string();
    format!("{{\"name\":{},\"n_val\":{},\"schema\":{}}}", text(&info.name), info.n_val, text(&info.schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_a_put_names_a_schema_and_a_number() {
        let read = |body: &str| wanted(body.as_bytes()).map_err(|reply| reply.status.as_u16());
        let both = Wanted { schema: Some("s".into()), n_val: Some(5) };
        assert_eq!(read(r#"{"schema":"s","n_val":5,"name":"i"}"#), Ok(both));
        assert_eq!(read("{}"), Ok(Wanted::default()));
        for wrong in ["[]", "{", r#"{"schema":7}"#, r#"{"n_val":"3"}"#, r#"{"n_val":-1}"#, r#"{"n_val":4294967296}"#] {
            assert_eq!(read(wrong), Err(400), "{wrong}");
        }
        assert_eq!(read(&" ".repeat(BODY_BYTES_MAX + 1)), Err(413));
    }

    #[test]
    fn an_index_has_riaks_members_in_riaks_order() {
        let info = IndexInfo { name: "a\"b".into(), schema: "_yz_default".into(), n_val: 3 };
        assert_eq!(json(&info), r#"{"name":"a\"b","n_val":3,"schema":"_yz_default"}"#);
    }
}
