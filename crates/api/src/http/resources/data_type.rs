//! Data types of bucket types: `/types/T/buckets/B/datatypes/K` (docs/riak/http-api.md §9).

use crate::access::{Access, Permission};
use crate::data_types::{self, Fetched};
use crate::decoding::{self, DecodeError};
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Offers, Resource, decide};
use crate::http::error_status::{self, RequestKind};
use crate::http::params::{self, ObjectParams};
use crate::http::path::Part::{Name, Word};
use crate::http::path::{Call, Generation, Path, Serve};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::url;
use crate::http::wire::headers::name;
use crate::http::wire::request_lines::line;
use crate::memory::Held;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use ombak_crdt::{Change, State, bytes_as_request, request_from_json, value_to_json};
use ombak_datatypes::typed_put;
use ombak_types::json::{BadJson, BadJsonKind, Json};
use ombak_types::props::DataType;
use ombak_types::{Bucket, BucketProps, Error, TooLarge};
use std::sync::Arc;

/// The paths of this resource.
pub const PATHS: &[Path] = &[
    Path::new(
        "data type",
        Generation::Types,
        &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"datatypes")],
        Serve::Boxed(create),
    ),
    Path::new(
        "data type",
        Generation::Types,
        &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"datatypes"), Name],
        Serve::Boxed(run),
    ),
];

fn create(call: Call<'_>) -> BoxFuture<'_, Reply> {
    serve(call, None)
}

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    let key = call.key();
    serve(call, Some(key))
}

fn serve(call: Call<'_>, key: Option<Bytes>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        let mut resource = Typed {
            ctx: call.ctx,
            request: call.request,
            bucket: call.bucket(),
            key,
            params: ObjectParams::default(),
            with_context: true,
            props: Arc::default(),
            kind: DataType::Counter,
        };
        decide(call.ctx, &mut resource, call.request).await
    })
}

/// A value of a bucket with a data type. Without a key, the engine chooses one.
struct Typed<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    key: Option<Bytes>,
    params: ObjectParams,
    /// Whether answers have the context of the value.
    with_context: bool,
    /// Known after [`Resource::prepare`], as is the type.
    props: Arc<BucketProps>,
    kind: DataType,
}

impl Typed<'_> {
    fn path_of(&self, key: &[u8]) -> String {
        let [bucket_type, bucket, key] = [&self.bucket.bucket_type, &self.bucket.name, key].map(url::quote);
        format!("/types/{bucket_type}/buckets/{bucket}/datatypes/{key}")
    }

    /// Counters in the default type have another address.
    fn moved(&self) -> Reply {
        let text = "Counters in the default bucket-type should use the legacy URL\n";
        let mut answer = reply::text(StatusCode::MOVED_PERMANENTLY, text);
        if let Some(key) = &self.key {
            let [bucket, key] = [&self.bucket.name[..], key].map(url::quote);
            answer.set(name::LOCATION, format!("/buckets/{bucket}/counters/{key}"));
        }
        answer
    }

    /// The JSON form of a value.
    fn shown(&self, state: &State) -> String {
        let context = state.context().filter(|_| self.with_context);
        value_to_json(&state.value(), context).to_string()
    }

    async fn read(&self, key: Bytes) -> Result<Reply, Reply> {
        let (bucket, options) = (self.bucket.clone(), self.params.get_options()?);
        let read = self.request.read(&self.ctx.kv, &data_types::fetch(bucket, key, options)).await;
        match read.and_then(|read| data_types::fetched(&self.props, read)) {
            Ok(Fetched::Value(state)) => Ok(reply::json(StatusCode::OK, self.shown(&state))),
            Ok(Fetched::Absent { is_deleted }) => {
                let text = format!("{{\"type\":\"{}\",\"error\":\"notfound\"}}", self.kind.name());
                let mut answer = reply::json(StatusCode::NOT_FOUND, text);
                if is_deleted {
                    answer.set(name::X_RIAK_DELETED, "true");
                }
                Err(answer)
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// The change that a request asks for. `held` has what it takes.
    async fn change(&self, held: &mut Held<'_>) -> Result<Change, Reply> {
        let bad = |text: String| reply::text(StatusCode::BAD_REQUEST, text);
        let (kind, now) = (self.kind, self.ctx.kv.wall_clock());
        let read = decoding::decode(&self.ctx.kv, held, &self.request.body, move |body, budget| {
            let json = Json::read_within(body, budget).map_err(NoChange::NotJson)?;
            budget.take(bytes_as_request(&json)).map_err(NoChange::TooLarge)?;
            request_from_json(kind, json, now.0).map_err(NoChange::Bad)
        });
        let (request, context) = read.await.map_err(|error| failed(&error))?.map_err(|why| match why {
            NoChange::NotJson(why) => match why.kind {
                BadJsonKind::NotUtf8 => bad("Malformed JSON submitted, invalid UTF-8\n".into()),
                BadJsonKind::TooLarge { bytes_max } => too_large(bytes_max),
                _ => bad(format!("Couldn't decode JSON: {why}\n")),
            },
            NoChange::TooLarge(why) => too_large(why.bytes_max),
            NoChange::Bad(why) => bad(format!("{why}\n")),
        })?;
        Ok(Change::Request { request, context })
    }

    async fn update(&self) -> Result<Reply, Reply> {
        let mut held = self.request.holds();
        let (change, options) = (self.change(&mut held).await?, self.params.put_options()?);
        let put = typed_put(self.bucket.clone(), self.key.clone(), &change, options);
        let reply = self.request.write(&self.ctx.kv, put).await.map_err(|error| failed(&error))?;
        let state = data_types::updated(&self.props, &reply).map_err(|error| failed(&error))?;
        let mut answer = match &state {
            Some(state) => reply::json(StatusCode::OK, self.shown(state)),
            None => reply::json(StatusCode::NO_CONTENT, Bytes::new()),
        };
        if let Some(key) = reply.key.filter(|_| self.key.is_none()) {
            answer.status = StatusCode::CREATED;
            answer.set(name::LOCATION, self.path_of(&key));
        }
        Ok(answer)
    }
}

/// Why a request is no change.
enum NoChange {
    NotJson(BadJson),
    TooLarge(TooLarge),
    Bad(ombak_crdt::BadJson),
}

impl DecodeError for NoChange {
    fn is_too_large(&self) -> bool {
        match self {
            Self::NotJson(bad) => matches!(bad.kind, BadJsonKind::TooLarge { .. }),
            Self::TooLarge(_) => true,
            Self::Bad(_) => false,
        }
    }
}

/// The answer to a body whose values would take more memory than this.
fn too_large(bytes_max: usize) -> Reply {
    let text = format!(
        "The operations would take more than {bytes_max} bytes of memory: many small ones take many times their \
         text, so send fewer of them at once\n"
    );
    reply::text(StatusCode::PAYLOAD_TOO_LARGE, text)
}

fn failed(error: &Error) -> Reply {
    error_status::reply_for(error, RequestKind::Other)
}

impl Resource for Typed<'_> {
    fn access(&self) -> Option<Access<'_>> {
        let permission = if self.request.is_read() { Permission::GET } else { Permission::PUT };
        Some(Access::to_bucket(permission, Some(&self.bucket.bucket_type), &self.bucket.name))
    }

    fn allow(&self) -> &'static str {
        if self.key.is_some() { "GET, HEAD, POST" } else { "POST" }
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        if self.bucket.is_default_type() {
            return Err(self.moved());
        }
        self.props = self.ctx.kv.buckets().props(&self.bucket).map_err(|error| match error {
            Error::NoType(bucket) => {
                let name = String::from_utf8_lossy(&bucket.bucket_type);
                reply::text(StatusCode::NOT_FOUND, format!("Unknown bucket type: {name}\n"))
            }
            other => failed(&other),
        })?;
        self.kind = self.props.datatype.ok_or_else(|| {
            reply::text(StatusCode::FORBIDDEN, "Bucket datatype 'undefined' is not a supported type.\n")
        })?;
        self.params = ObjectParams::parse(self.request)?;
        self.params.return_body = params::boolean_in_any_case(self.request, "returnbody")?.unwrap_or(false);
        self.with_context = params::boolean_in_any_case(self.request, "include_context")?.unwrap_or(true);
        self.params.timeout = params::time_limit_above_zero(self.request)?;
        let content_type = self.request.lines.get_text(line::CONTENT_TYPE).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if self.request.method == Method::POST && !media_type.eq_ignore_ascii_case("application/json") {
            return Err(reply::page(StatusCode::NOT_ACCEPTABLE));
        }
        Ok(())
    }

    fn offers(&self) -> Offers {
        Offers::json()
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let answer = match self.key.clone().filter(|_| self.request.is_read()) {
            Some(key) => self.read(key).await,
            None => self.update().await,
        };
        answer.unwrap_or_else(|refusal| refusal)
    }
}
