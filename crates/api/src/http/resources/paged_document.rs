//! A list that is found in batches, as one JSON document.
//!
//! A short list is sent in one piece. The batches of a longer one are sent as they are found, as
//! fast as the client reads them.

use crate::http::reply::{self, Reply, StreamAborted};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use ombak_types::Error;
use serde_json::json;
use std::future::Future;

/// The largest document, in bytes, that is sent in one piece.
const WHOLE_BYTES_MAX: usize = 64 * 1024;

/// A list that is found in batches.
pub trait Batches: Send + 'static {
    /// The next batch as elements of a JSON array, without its brackets; `None` after the last
    /// batch.
    fn next(&mut self) -> impl Future<Output = Option<Result<String, Error>>> + Send;

    /// The end of the document, from the closing bracket of the array on.
    fn ending(&self) -> String;

    /// The answer to an error that occurs before anything has been sent.
    fn refusal(&self, error: &Error) -> Reply;
}

/// Answers with one document. It begins with `head`, which ends with the opening bracket of the
/// array.
///
/// An error that occurs before [`WHOLE_BYTES_MAX`] bytes were found has an answer of its own. A
/// later error cuts the answer off.
pub async fn answer(mut batches: impl Batches, mut head: String) -> Reply {
    let start = head.len();
    while head.len() < WHOLE_BYTES_MAX {
        match batches.next().await {
            Some(Ok(elements)) => {
                if head.len() > start {
                    head.push(',');
                }
                head += &elements;
            }
            Some(Err(error)) => return batches.refusal(&error),
            None => return reply::json(StatusCode::OK, head + &batches.ending()),
        }
    }
    let rest = stream::unfold(Some((batches, head)), |state| async move {
        let (mut batches, held) = state?;
        if !held.is_empty() {
            return Some((Ok(Bytes::from(held)), Some((batches, String::new()))));
        }
        Some(match batches.next().await {
            Some(Ok(elements)) => (Ok(Bytes::from(format!(",{elements}"))), Some((batches, held))),
            Some(Err(error)) => (Err(StreamAborted(error.to_string())), None),
            None => (Ok(Bytes::from(batches.ending())), None),
        })
    });
    reply::stream("application/json", rest)
}

/// The document that reports an error.
pub fn error_document(error: &Error) -> String {
    json!({"error": error.to_string()}).to_string()
}
