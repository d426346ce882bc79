//! Parts of Riak's interface that this server does not have. They get a clear answer instead of a
//! bare 404.
//!
//! A feature that comes to exist registers its paths in a module of its own, and they leave this
//! one.

use crate::http::decision_graph;
use crate::http::path::Part::{Name, Rest, Word};
use crate::http::path::{Call, Path};
use crate::http::reply::{self, Reply};
use futures_util::future::BoxFuture;
use http::StatusCode;

/// The paths of resources that do not exist here.
pub const PATHS: &[Path] = &[
    Path::plain("queue", &[Word(b"queuename"), Name], queue),
    Path::plain("queue", &[Word(b"membership_request")], queue),
    Path::plain("queue", &[Word(b"rtq"), Rest], queue),
    Path::plain("queue", &[Word(b"riak-repl"), Rest], queue),
];

const GET_OR_POST: &str = "GET, POST";

fn queue(call: Call<'_>) -> BoxFuture<'_, Reply> {
    refuse(call, GET_OR_POST, |_| missing("replication"))
}

/// Answers as the resource would if its feature existed, up to the point where the feature is
/// needed.
fn refuse<'a>(call: Call<'a>, allow: &'static str, answer: fn(&Call<'a>) -> Reply) -> BoxFuture<'a, Reply> {
    Box::pin(async move {
        match decision_graph::admit(call.ctx, call.request, allow, None).await {
            Err(refusal) => refusal,
            Ok(()) => answer(&call),
        }
    })
}

fn missing(what: &str) -> Reply {
    reply::text(StatusCode::NOT_IMPLEMENTED, format!("Not in this version: {what}\n"))
}
