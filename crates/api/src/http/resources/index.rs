//! Secondary index queries: `/buckets/B/index/FIELD/TERM` and `/buckets/B/index/FIELD/FROM/TO`
//! (docs/riak/http-api.md §6).

use super::paged_document::{self, Batches, error_document};
use crate::JobClass;
use crate::access::{Access, Permission};
use crate::http::base62;
use crate::http::conditional::Validators;
use crate::http::context::HttpContext;
use crate::http::decision_graph::{Existence, Offers, READ_ONLY, Resource, decide};
use crate::http::error_status::{self, RequestKind};
use crate::http::names::{json_elements, json_name};
use crate::http::params;
use crate::http::path::Part::{Name, Rest, Word};
use crate::http::path::{Call, Generation, Path, Serve};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::index_query::{self, BadQuery, QueryOptions, Span};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::StatusCode;
use ombak_kv::{IndexMatch, IndexQuery, QueryResults};
use ombak_types::etf::CharListText;
use ombak_types::{Bucket, Error};
use serde_json::{Value, json};
use std::time::Duration;

/// The paths of this resource.
pub const PATHS: &[Path] = &[
    Path::new("index", Generation::Buckets, &[Word(b"buckets"), Name, Word(b"index"), Rest], Serve::Boxed(run))
        .ends_with_client(),
    Path::new(
        "index",
        Generation::Types,
        &[Word(b"types"), Name, Word(b"buckets"), Name, Word(b"index"), Rest],
        Serve::Boxed(run),
    )
    .ends_with_client(),
];

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        decide(call.ctx, &mut Index::new(call.ctx, call.request, call.bucket(), call.parts_from_key()), call.request)
            .await
    })
}

/// The resource `GET …/index/…`.
pub struct Index<'a> {
    ctx: &'a HttpContext,
    request: &'a Request,
    bucket: Bucket,
    /// The field and the terms.
    path: Vec<Bytes>,
    asked: Option<Query>,
}

/// A query with the options of its request.
struct Query {
    query: IndexQuery,
    with_terms: bool,
    is_streamed: bool,
    timeout: Option<Duration>,
}

impl<'a> Index<'a> {
    /// Creates the resource for one request. `path` is the part of the path after `index`.
    pub fn new(ctx: &'a HttpContext, request: &'a Request, bucket: Bucket, path: Vec<Bytes>) -> Self {
        Self { ctx, request, bucket, path, asked: None }
    }

    fn parse(&self, field: &[u8], span: Span<'_>, is_streamed: bool) -> Result<Query, Reply> {
        // Results are always sorted, so the value of this parameter is only checked.
        let _ = self.flag("pagination_sort")?;
        let wanted = self.flag("return_terms")?;
        let results_max = self.request.parameter("max_results").map(max_results).transpose()?;
        let timeout = self.request.parameter("timeout").map(timeout).transpose()?;
        let options = QueryOptions {
            results_max,
            continuation: self.request.parameter("continuation"),
            pattern: self.request.parameter("term_regex"),
        };
        let query = index_query::query(self.bucket.clone(), field, span, &options).map_err(|bad| refusal(&bad))?;
        let with_terms = wanted && index_query::has_terms(&query.range, span);
        Ok(Query { query, with_terms, is_streamed, timeout })
    }

    fn flag(&self, name: &str) -> Result<bool, Reply> {
        let Some(text) = self.request.parameter(name) else { return Ok(false) };
        match text.to_ascii_lowercase().as_slice() {
            b"true" => Ok(true),
            b"false" => Ok(false),
            _ => Err(bad(format!("Invalid \"{name}\". {} is not a boolean", CharListText(text)))),
        }
    }
}

impl Resource for Index<'_> {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::INDEX, Some(&self.bucket.bucket_type), &self.bucket.name))
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        let is_streamed = self.request.parameter_is("stream", "true");
        let class = if is_streamed { JobClass::StreamSecondaryIndex } else { JobClass::SecondaryIndex };
        self.ctx.jobs.check(class).map_err(|error| error_status::reply_for(&error, RequestKind::Other))?;
        self.asked = match self.path.as_slice() {
            [field, term] => Some(self.parse(field, Span::Equal(term), is_streamed)?),
            [field, from, to] => Some(self.parse(field, Span::Range(from, to), is_streamed)?),
            _ => None,
        };
        Ok(())
    }

    fn offers(&self) -> Offers {
        Offers::json()
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        Ok(match self.ctx.kv.buckets().props(&self.bucket) {
            Ok(_) => Existence::Present(Validators::default()),
            Err(_) => Existence::Missing,
        })
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        // This is Riak's answer if the path has no term.
        let Some(Query { query, with_terms, is_streamed, timeout }) = self.asked.take() else {
            return reply::json(StatusCode::OK, "{\"keys\":[]}");
        };
        let found = self.ctx.kv.query(query, timeout);
        match found.map(|results| results.in_group(self.request.tenant().group)) {
            Err(error) => error_status::reply_for(&error, RequestKind::Other),
            Ok(results) if is_streamed => parts(results, with_terms),
            Ok(results) => document(self.request, results, with_terms).await,
        }
    }
}

fn bad(text: String) -> Reply {
    reply::text(StatusCode::BAD_REQUEST, text)
}

fn max_results(text: &[u8]) -> Result<usize, Reply> {
    // Riak's error shows a number as such, and any other value as a quoted string.
    let shown = match params::integer(text) {
        Some(max) if max > 0 => return Ok(usize::try_from(max).unwrap_or(usize::MAX)),
        Some(number) => number.to_string(),
        None => CharListText(text).to_string(),
    };
    Err(bad(format!("Invalid \"max_results\". {shown} is not a positive integer")))
}

/// Parses the parameter `timeout`. Zero means no limit.
fn timeout(text: &[u8]) -> Result<Duration, Reply> {
    let ms = params::integer(text).and_then(|ms| u64::try_from(ms).ok());
    let refused = || bad(format!("Bad timeout value {}. Must be a non-negative integer\n", CharListText(text)));
    ms.map(Duration::from_millis).ok_or_else(refused)
}

fn refusal(problem: &BadQuery) -> Reply {
    match problem {
        BadQuery::UnknownField(_) | BadQuery::BadTerm { .. } => bad(format!("Invalid query: {problem}\n")),
        BadQuery::PatternOnIntegers => bad("Can not use term regular expressions on integer queries".to_owned()),
        BadQuery::BadPattern { pattern, why } => {
            let (pattern, why) = (CharListText(pattern), CharListText(why.as_bytes()));
            bad(format!("Invalid term regular expression {pattern} : {why}"))
        }
        BadQuery::BadContinuation(_) => bad(format!("Invalid query: {problem}\n")),
    }
}

/// The name of the JSON member with the results.
fn member(with_terms: bool) -> &'static str {
    if with_terms { "results" } else { "keys" }
}

/// Results as the elements of a JSON array, without its brackets.
fn elements(batch: &[IndexMatch], with_terms: bool) -> String {
    if !with_terms {
        let keys: Vec<Bytes> = batch.iter().map(|found| found.key.clone()).collect();
        return json_elements(&keys);
    }
    let mut out = String::new();
    for found in batch {
        let term = found.term.as_ref().map(index_query::term_text).unwrap_or_default();
        if !out.is_empty() {
            out.push(',');
        }
        let (term, key) = (Value::String(json_name(&term)), Value::String(json_name(&found.key)));
        out += &format!("{{{term}:{key}}}");
    }
    out
}

fn continuation(results: &QueryResults, last: Option<&IndexMatch>) -> Option<String> {
    last.filter(|_| results.is_full()).map(index_query::continuation)
}

/// Answers with one JSON document.
async fn document(request: &Request, results: QueryResults, with_terms: bool) -> Reply {
    let head = format!("{{\"{}\":[", member(with_terms));
    paged_document::answer(request, Matches { results, with_terms, last: None }, head).await
}

/// The results of a query.
struct Matches {
    results: QueryResults,
    with_terms: bool,
    /// The last match so far.
    last: Option<IndexMatch>,
}

impl Batches for Matches {
    async fn next(&mut self) -> Option<Result<String, Error>> {
        let batch = match self.results.next().await? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        self.last = batch.last().cloned();
        Some(Ok(elements(&batch, self.with_terms)))
    }

    fn ending(&self) -> String {
        match continuation(&self.results, self.last.as_ref()) {
            None => "]}".to_owned(),
            Some(text) => format!("],\"continuation\":{}}}", Value::String(text)),
        }
    }

    fn refusal(&self, error: &Error) -> Reply {
        error_status::reply_for(error, RequestKind::Other)
    }
}

/// The state of a stream of parts.
enum Stage {
    Results(Option<IndexMatch>),
    End,
}

/// Answers with a multipart stream: a part for every batch, a part for the continuation if there is
/// one, and the closing line.
fn parts(results: QueryResults, with_terms: bool) -> Reply {
    let boundary = base62::boundary(b"index");
    let content_type = format!("multipart/mixed;boundary={boundary}");
    let part = move |boundary: &str, json: &str| {
        Bytes::from(format!("\r\n--{boundary}\r\nContent-Type: application/json\r\n\r\n{json}"))
    };
    let state = Some((results, boundary, Stage::Results(None)));
    let parts = stream::unfold(state, move |state| async move {
        let (mut results, boundary, stage) = state?;
        let last = match stage {
            Stage::End => return Some((Bytes::from(format!("\r\n--{boundary}--\r\n")), None)),
            Stage::Results(last) => last,
        };
        match results.next().await {
            Some(Ok(batch)) => {
                let json = format!("{{\"{}\":[{}]}}", member(with_terms), elements(&batch, with_terms));
                let bytes = part(&boundary, &json);
                Some((bytes, Some((results, boundary, Stage::Results(batch.last().cloned())))))
            }
            Some(Err(error)) => {
                let bytes = part(&boundary, &error_document(&error));
                Some((bytes, Some((results, boundary, Stage::End))))
            }
            None => match continuation(&results, last.as_ref()) {
                Some(text) => {
                    let bytes = part(&boundary, &json!({"continuation": text}).to_string());
                    Some((bytes, Some((results, boundary, Stage::End))))
                }
                None => Some((Bytes::from(format!("\r\n--{boundary}--\r\n")), None)),
            },
        }
    });
    reply::stream(&content_type, parts)
}
