//! A list that is found in batches, as one JSON document.
//!
//! The beginning is collected before the head of the answer is sent. So a short list is sent in one
//! piece, and an error within the beginning has an answer of its own. The batches behind the
//! beginning are sent as they are found, as fast as the client reads them. An error among them ends
//! the document: it is valid JSON, and its last member is `error`.

use crate::bulk::{give_way, in_turns};
use crate::http::error_status::{self, RequestKind};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::memory::{Held, Kept};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use ombak_types::Error;
use serde_json::{Value, json};
use std::future::Future;

/// How much of a document is collected before its head is sent, in bytes.
const COLLECTED_BYTES_MAX: usize = 1 << 20;

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

/// The beginning of a document.
enum Beginning {
    /// The document is complete.
    Whole(String),
    /// More batches follow.
    Part(String),
}

/// Answers with one document. It begins with `head`, which ends with the opening bracket of the
/// array.
///
/// An error that occurs before [`COLLECTED_BYTES_MAX`] bytes were found has an answer of its own. A
/// later error is the last member of the document. The memory of the request counts what is
/// collected until it is sent.
pub async fn answer(request: &Request, mut batches: impl Batches, head: String) -> Reply {
    let mut held = request.holds();
    let collected = in_turns(request.tenant(), collect(&mut batches, head, &mut held)).await;
    match collected {
        Ok(Beginning::Whole(document)) => {
            held.keep_for_answer();
            reply::json(StatusCode::OK, document)
        }
        Ok(Beginning::Part(beginning)) => {
            let kept = request.keeps(held);
            stream_rest(batches, beginning, kept)
        }
        Err(refusal) => refusal,
    }
}

async fn collect(batches: &mut impl Batches, head: String, held: &mut Held<'_>) -> Result<Beginning, Reply> {
    let (start, mut document) = (head.len(), head);
    while document.len() < COLLECTED_BYTES_MAX {
        match batches.next().await {
            Some(Ok(elements)) => {
                if document.len() > start {
                    document.push(',');
                }
                document += &elements;
            }
            Some(Err(error)) => return Err(batches.refusal(&error)),
            None => return Ok(Beginning::Whole(document + &batches.ending())),
        }
        let counted = held.resize(document.capacity() as u64).await;
        counted.map_err(|error| error_status::reply_for(&error, RequestKind::Other))?;
        give_way().await;
    }
    Ok(Beginning::Part(document))
}

/// Sends the beginning, and what follows as it is found.
fn stream_rest(batches: impl Batches, beginning: String, kept: Option<Kept>) -> Reply {
    let state = Some((batches, Some(beginning), kept));
    let parts = stream::unfold(state, |state| async move {
        let (mut batches, beginning, kept) = state?;
        if let Some(text) = beginning {
            return Some((Bytes::from(text), Some((batches, None, kept))));
        }
        // The beginning has been sent.
        drop(kept);
        Some(match batches.next().await {
            Some(Ok(elements)) => (Bytes::from(format!(",{elements}")), Some((batches, None, None))),
            Some(Err(error)) => (Bytes::from(error_ending(&error)), None),
            None => (Bytes::from(batches.ending()), None),
        })
    });
    reply::stream("application/json", parts)
}

/// The document that reports an error.
pub fn error_document(error: &Error) -> String {
    json!({"error": error.to_string()}).to_string()
}

/// The end of a document whose list is incomplete.
fn error_ending(error: &Error) -> String {
    format!("],\"error\":{}}}", Value::from(error.to_string()))
}
