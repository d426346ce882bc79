//! Anti-entropy folds: `/cachedtrees`, `/rangetrees`, `/siblings` and their kind
//! (docs/riak/http-api.md §11).
//!
//! [`question`] reads what a path asks, [`filter`] the parameter `filter`, and [`answer`] writes
//! the documents. This file registers the paths and takes a request through the three.
//!
//! All of them are gets in Riak, also those that erase, reap and repair. A browser sends a get for
//! any page, so the latter pass [`crate::http::pages`] as writes do.

mod answer;
mod filter;
mod question;

use crate::access::{Access, Permission};
use crate::folds::{self, InvalidDefinition};
use crate::http::conditional::Validators;
use crate::http::decision_graph::{Existence, Offers, READ_ONLY, Resource, decide};
use crate::http::error_status::{self, RequestKind};
use crate::http::offload;
use crate::http::path::Part::{Name, Word};
use crate::http::path::{Call, Path};
use crate::http::reply::{self, Reply};
use filter::BadFilter;
use futures_util::future::BoxFuture;
use http::StatusCode;
use ombak_key_queues::QueueError;
use ombak_types::Bucket;
use question::{Asked, FoldQuestion};

/// The paths of this resource.
pub const PATHS: &[Path] = &[
    fold(&[Word(b"cachedtrees"), Word(b"nvals"), Name, Word(b"root")]),
    fold(&[Word(b"cachedtrees"), Word(b"nvals"), Name, Word(b"branch")]),
    fold(&[Word(b"cachedtrees"), Word(b"nvals"), Name, Word(b"keysclocks")]),
    fold(&[Word(b"rangetrees"), Word(b"buckets"), Name, Word(b"trees"), Name]),
    fold(&[Word(b"rangetrees"), Word(b"types"), Name, Word(b"buckets"), Name, Word(b"trees"), Name]),
    fold(&[Word(b"rangetrees"), Word(b"buckets"), Name, Word(b"keysclocks")]),
    fold(&[Word(b"rangetrees"), Word(b"types"), Name, Word(b"buckets"), Name, Word(b"keysclocks")]),
    fold(&[Word(b"rangerepl"), Word(b"buckets"), Name, Word(b"queuename"), Name]),
    fold(&[Word(b"rangerepl"), Word(b"types"), Name, Word(b"buckets"), Name, Word(b"queuename"), Name]),
    fold(&[Word(b"rangerepair"), Word(b"buckets"), Name]),
    fold(&[Word(b"rangerepair"), Word(b"types"), Name, Word(b"buckets"), Name]),
    fold(&[Word(b"siblings"), Word(b"buckets"), Name, Word(b"counts"), Name]),
    fold(&[Word(b"siblings"), Word(b"types"), Name, Word(b"buckets"), Name, Word(b"counts"), Name]),
    fold(&[Word(b"objectsizes"), Word(b"buckets"), Name, Word(b"sizes"), Name]),
    fold(&[Word(b"objectsizes"), Word(b"types"), Name, Word(b"buckets"), Name, Word(b"sizes"), Name]),
    fold(&[Word(b"objectstats"), Word(b"buckets"), Name]),
    fold(&[Word(b"objectstats"), Word(b"types"), Name, Word(b"buckets"), Name]),
    fold(&[Word(b"tombs"), Word(b"buckets"), Name]),
    fold(&[Word(b"tombs"), Word(b"types"), Name, Word(b"buckets"), Name]),
    fold(&[Word(b"reap"), Word(b"buckets"), Name]),
    fold(&[Word(b"reap"), Word(b"types"), Name, Word(b"buckets"), Name]),
    fold(&[Word(b"erase"), Word(b"buckets"), Name]),
    fold(&[Word(b"erase"), Word(b"types"), Name, Word(b"buckets"), Name]),
    fold(&[Word(b"aaebucketlist")]),
];

/// How Riak's page begins that shows why a request has failed.
const PAGE_START: &str = "<html><head><title>500 Internal Server Error</title></head><body><h1>Internal Server Error</h1>\
                          The server encountered an error while processing this request:<br><pre>";

const fn fold(parts: &'static [crate::http::path::Part]) -> Path {
    Path::plain("anti-entropy fold", parts, run).ends_with_client()
}

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        let mut fold = Fold { bucket: question::bucket_of(&call), question: None, call: &call };
        decide(call.ctx, &mut fold, call.request).await
    })
}

/// A fold that a request asks for.
struct Fold<'a> {
    call: &'a Call<'a>,
    /// The bucket in the path.
    bucket: Option<Bucket>,
    /// What is asked; `None` until the request was read, and if it asks for something that cannot
    /// be.
    question: Option<FoldQuestion>,
}

impl Fold<'_> {
    /// The permission that the path needs.
    fn permission(&self) -> Permission {
        match &self.call.parts.part(0)[..] {
            b"erase" => folds::ERASE,
            b"reap" => folds::REAP,
            b"rangerepair" => folds::REPAIR,
            _ => folds::READ,
        }
    }

    /// Whether it is a fold that changes objects, also if it only counts them this time.
    fn changes_objects(&self) -> bool {
        self.permission() != folds::READ
    }
}

impl Resource for Fold<'_> {
    fn access(&self) -> Option<Access<'_>> {
        let permission = self.permission();
        Some(match &self.bucket {
            Some(bucket) => Access::to_bucket(permission, Some(&bucket.bucket_type), &bucket.name),
            None => Access::to_node(folds::READ),
        })
    }

    fn allow(&self) -> &'static str {
        READ_ONLY
    }

    async fn prepare(&mut self) -> Result<(), Reply> {
        if self.changes_objects() {
            let pages = &self.call.ctx.pages;
            pages.check_changing_get(self.call.request).map_err(|why| reply::text(StatusCode::FORBIDDEN, why))?;
        }
        self.question = match FoldQuestion::read(self.call, self.bucket.as_ref()) {
            Ok(question) => Some(question),
            // As in Riak, such a request fails only when the fold begins.
            Err(BadFilter::Invalid(InvalidDefinition)) => None,
            Err(BadFilter::Malformed(text)) => return Err(reply::text(StatusCode::BAD_REQUEST, text)),
        };
        Ok(())
    }

    fn offers(&self) -> Offers {
        Offers::json()
    }

    async fn existence(&mut self) -> Result<Existence, Reply> {
        let buckets = self.call.ctx.kv.buckets();
        let is_known = self.bucket.as_ref().is_none_or(|bucket| buckets.type_map(&bucket.bucket_type).is_ok());
        Ok(if is_known { Existence::Present(Validators::default()) } else { Existence::Missing })
    }

    async fn answer(&mut self, _offer: usize) -> Reply {
        let Some(FoldQuestion { range, wants, asked }) = self.question.take() else { return invalid() };
        if let Asked::Nothing(document) = asked {
            return reply::json(StatusCode::OK, document);
        }
        let mut held = self.call.request.holds();
        if let Asked::Change(kind) = asked {
            let found = folds::dispatch(&self.call.ctx.key_queues, kind, range, &mut held).await;
            return found.map_or_else(refusal, |count| reply::json(StatusCode::OK, answer::dispatched(count)));
        }
        let result = match folds::run(&self.call.ctx.kv, range, wants, &mut held).await {
            Ok(result) => result,
            Err(error) => return error_status::reply_for(&error, RequestKind::Other),
        };
        let bytes = answer::bytes_max(&result);
        if let Err(error) = held.resize(result.bytes + bytes).await {
            return error_status::reply_for(&error, RequestKind::Other);
        }
        held.keep_for_answer();
        let document =
            offload::run(usize::try_from(bytes).unwrap_or(usize::MAX), move || answer::document(&asked, &result));
        document.await.map_or_else(|refusal| refusal, |document| reply::json(StatusCode::OK, document))
    }
}

/// The answer if no keys are queued.
fn refusal(error: QueueError) -> Reply {
    match error {
        QueueError::Fold(error) => error_status::reply_for(&error, RequestKind::Other),
        other => reply::text(StatusCode::SERVICE_UNAVAILABLE, format!("{other}\n")),
    }
}

/// The answer to a definition that has the right form and cannot be.
fn invalid() -> Reply {
    let page = format!("{PAGE_START}{{error,{}}}</pre></body></html>", folds::INVALID_DEFINITION);
    reply::html(StatusCode::INTERNAL_SERVER_ERROR, page)
}
