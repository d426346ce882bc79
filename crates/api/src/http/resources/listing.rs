//! Listings of names as JSON, in one document or as a stream of documents (docs/riak/http-api.md
//! §2, §3).
//!
//! Names are sent as they are found, as fast as the client reads them. The memory for names that
//! wait is bounded. The listing ends if the client closes the connection.

use super::paged_document::{self, Batches, error_document};
use crate::JobClass;
use crate::http::context::HttpContext;
use crate::http::error_status::{self, RequestKind};
use crate::http::names::json_elements;
use crate::http::params;
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use ombak_kv::Listing;
use ombak_types::Error;
use std::time::Duration;

/// The default time limit of a listing, as in Riak.
pub const TIMEOUT: Duration = Duration::from_secs(300);

const JSON: &str = "application/json";

/// Checks whether a listing of this job class is allowed, and returns its time limit.
pub fn permit(ctx: &HttpContext, request: &Request, class: Option<JobClass>) -> Result<Duration, Reply> {
    if let Some(class) = class {
        ctx.jobs.check(class).map_err(|e| error_status::reply_for(&e, RequestKind::Other))?;
    }
    params::listing_timeout(request, TIMEOUT)
}

/// Answers with one document such as `{"keys":[…]}`. `before` is put in front of the list's member,
/// for example `"props":{…},`.
///
/// An error that occurs before anything has been sent is answered as in Riak, with 200 and
/// `{"error":…}`. A later error is the last member of the document.
pub async fn document(request: &Request, listing: Listing, member: &str, before: &str) -> Reply {
    paged_document::answer(request, Names(listing), format!("{{{before}\"{member}\":[")).await
}

/// The names of a listing.
struct Names(Listing);

impl Batches for Names {
    async fn next(&mut self) -> Option<Result<String, Error>> {
        let batch = self.0.next().await?;
        Some(batch.map(|names| json_elements(&names)))
    }

    fn ending(&self) -> String {
        "]}".to_owned()
    }

    fn refusal(&self, error: &Error) -> Reply {
        reply::json(StatusCode::OK, error_document(error))
    }
}

/// Answers with a stream of documents: `first` if given, `{"keys":[…]}` for every batch, and at the
/// end an empty list or `{"error":…}`.
pub fn documents(listing: Listing, member: &'static str, first: Option<String>) -> Reply {
    let batches = stream::unfold(Some((listing, first)), move |state| async move {
        let (mut listing, first) = state?;
        if let Some(first) = first {
            return Some((Bytes::from(first), Some((listing, None))));
        }
        let document = |names: &[Bytes]| Bytes::from(format!("{{\"{member}\":[{}]}}", json_elements(names)));
        Some(match listing.next().await {
            Some(Ok(batch)) => (document(&batch), Some((listing, None))),
            Some(Err(error)) => (Bytes::from(error_document(&error)), None),
            None => (document(&[]), None),
        })
    });
    reply::stream(JSON, batches)
}
