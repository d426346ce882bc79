//! Search: `/search` and `/solr` (docs/riak/http-api.md §10).
//!
//! [`query`] searches in an index, [`indexes`] and [`schemas`] administer, and [`extract`] shows
//! what a value would have for an index. A node without search has none of these paths.

mod extract;
mod indexes;
mod query;
mod schemas;

use crate::http::path::Part::{Name, Word};
use crate::http::path::{Call, Path};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::wire::request_lines::line;
use http::StatusCode;
use ombak_kv::buckets::PropsError;
use ombak_searching::{AdminError, Search};
use std::sync::Arc;

/// The paths of search.
pub const PATHS: &[Path] = &[
    Path::plain("search query", &[Word(b"search"), Word(b"query"), Name], query::run).ends_with_client(),
    // The path of Riak's older search.
    Path::plain("search query", &[Word(b"solr"), Name, Word(b"select")], query::run).ends_with_client(),
    Path::plain("search index", &[Word(b"search"), Word(b"index")], indexes::run),
    Path::plain("search index", &[Word(b"search"), Word(b"index"), Name], indexes::run),
    Path::plain("search schema", &[Word(b"search"), Word(b"schema"), Name], schemas::run),
    Path::plain("search extract", &[Word(b"search"), Word(b"extract")], extract::run),
];

/// The search of the node. The error is the answer for a path that is not there.
fn search_of<'a>(call: &Call<'a>) -> Result<&'a Arc<Search>, Reply> {
    call.ctx.search.as_ref().ok_or_else(|| reply::page(StatusCode::NOT_FOUND))
}

/// The media type of the body, in lower case and without parameters; empty if none is given.
fn media_type(request: &Request) -> String {
    let header = request.header(line::CONTENT_TYPE).unwrap_or_default();
    let essence = header.split(|byte| *byte == b';').next().unwrap_or_default();
    String::from_utf8_lossy(essence.trim_ascii()).to_ascii_lowercase()
}

/// The status for a refused change.
fn status_of(error: &AdminError) -> StatusCode {
    match error {
        AdminError::NotFound => StatusCode::NOT_FOUND,
        AdminError::InUse(_) => StatusCode::CONFLICT,
        AdminError::Refused(PropsError::Storage(_)) => StatusCode::INTERNAL_SERVER_ERROR,
        AdminError::Refused(PropsError::Refused(_)) => StatusCode::SERVICE_UNAVAILABLE,
        AdminError::BadName(_)
        | AdminError::NoSchema(_)
        | AdminError::BadNVal
        | AdminError::BadSchema(_)
        | AdminError::Refused(_) => StatusCode::BAD_REQUEST,
    }
}

fn refusal(error: &AdminError) -> Reply {
    reply::text(status_of(error), format!("{error}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_changes_have_riaks_statuses() {
        for (error, status) in [
            (AdminError::NotFound, 404),
            (AdminError::InUse("b".into()), 409),
            (AdminError::NoSchema("s".into()), 400),
            (AdminError::BadNVal, 400),
            (AdminError::BadSchema("no".into()), 400),
            (AdminError::Refused(PropsError::BadRecord("no".into())), 400),
            (AdminError::Refused(PropsError::Storage("full".into())), 500),
            (AdminError::Refused(PropsError::Refused("no majority".into())), 503),
        ] {
            assert_eq!(status_of(&error).as_u16(), status, "{error}");
        }
        assert_eq!(refusal(&AdminError::NoSchema("s".into())).whole_body().unwrap(), "Schema s does not exist\n");
    }
}
