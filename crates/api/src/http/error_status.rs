//! The HTTP answers to errors of the engine (docs/riak/http-api.md §5, §17).

use super::params::quorum_text;
use super::reply::{self, Reply};
use super::wire::headers::name;
use http::StatusCode;
use ombak_types::error::PrecommitReason;
use ombak_types::{Error, StoreFailureKind};

/// The kind of request. Some errors have different answers for different kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A read of an object.
    Get,
    /// A write of an object.
    Put,
    /// A delete of an object.
    Delete,
    /// A listing or any other request.
    Other,
}

/// The answer to a failed request.
pub fn reply_for(error: &Error, asked: RequestKind) -> Reply {
    use StatusCode as S;
    match error {
        Error::Timeout => reply::text(S::SERVICE_UNAVAILABLE, "request timed out\n"),
        Error::NotFound => match asked {
            RequestKind::Put => reply::page(S::CONFLICT),
            _ => reply::text(S::NOT_FOUND, "not found\n"),
        },
        Error::Modified => reply::page(S::CONFLICT),
        Error::MatchFound => reply::page(S::PRECONDITION_FAILED),
        Error::NValViolation(n) => n_val_violation(*n, asked),
        Error::QuorumViolation { option, .. } => reply::text(S::BAD_REQUEST, quorum_text(option)),
        Error::QuorumUnsatisfied { option, need, got } => {
            let option = option.to_ascii_uppercase();
            reply::text(S::SERVICE_UNAVAILABLE, format!("{option}-value unsatisfied: {got}/{need}\n"))
        }
        Error::NodeConfirmsUnsatisfied { need, got } => {
            reply::text(S::SERVICE_UNAVAILABLE, format!("node_confirms-value unsatisfied: {got}/{need}\n"))
        }
        Error::PrecommitFail(reason) => precommit(reason.as_ref()),
        Error::NoType(bucket) => {
            let name = String::from_utf8_lossy(&bucket.bucket_type);
            reply::text(S::NOT_FOUND, format!("Unknown bucket type: {name}"))
        }
        Error::ZeroLength(_) | Error::KeyTooLarge | Error::BadTtl(_) => {
            reply::text(S::BAD_REQUEST, format!("{error}\n"))
        }
        Error::TooLarge { bytes_max, .. } => reply::text(
            S::PAYLOAD_TOO_LARGE,
            format!("The object would be larger than the {bytes_max} bytes that this node takes\n"),
        ),
        Error::BadClock(_) => reply::text(S::BAD_REQUEST, "Error decoding vector clock in x-riak-vclock header\n"),
        Error::Unsupported(why) => reply::text(S::NOT_IMPLEMENTED, format!("{why}\n")),
        Error::JobDisabled(_) => reply::text(S::FORBIDDEN, error.to_string()),
        // Another node can answer: this one takes no part in its cluster, or its store is closed.
        Error::Storage(failure) if failure.kind == StoreFailureKind::Closed => {
            reply::text(S::SERVICE_UNAVAILABLE, format!("{failure}\n"))
        }
        Error::Stopping => reply::text(S::SERVICE_UNAVAILABLE, "The node is stopping\n"),
        Error::Overload
        | Error::AllNodesDown
        | Error::InsufficientVnodes { .. }
        | Error::InsufficientVnodesAvailable
        | Error::InsufficientNodes { .. }
        | Error::TooManySiblings(_)
        | Error::TooManyFound(_)
        | Error::OperationRefused(_)
        | Error::Storage(_) => reply::text(S::INTERNAL_SERVER_ERROR, format!("Error:\n{error}\n")),
    }
}

/// Riak sends this text without a content type for a read, and as HTML for a delete
/// (docs/riak/http-api.md §17).
fn n_val_violation(n: u32, asked: RequestKind) -> Reply {
    let text = format!("Specified w/dw/pw/node_confirms values invalid for bucket n value of {n}\n");
    let mut reply = match asked {
        RequestKind::Delete => reply::html(StatusCode::BAD_REQUEST, text),
        _ => reply::text(StatusCode::BAD_REQUEST, text),
    };
    if asked == RequestKind::Get {
        reply.headers.remove(name::CONTENT_TYPE);
    }
    reply
}

fn precommit(reason: Option<&PrecommitReason>) -> Reply {
    match reason {
        None => reply::text(StatusCode::FORBIDDEN, "PUT aborted by pre-commit hook.\n"),
        Some(PrecommitReason::FieldParsingFailed { field, value }) => {
            reply::text(StatusCode::BAD_REQUEST, format!("Could not parse field '{field}', value '{value}'.\n"))
        }
        Some(PrecommitReason::UnknownFieldType { field }) => {
            reply::text(StatusCode::BAD_REQUEST, format!("Unknown field type for field: '{field}'.\n"))
        }
        Some(PrecommitReason::HookSaid(text)) => reply::text(StatusCode::FORBIDDEN, text.clone()),
        // Riak fails to write such a reason into its answer.
        Some(PrecommitReason::HookReturned(term)) => {
            reply::text(StatusCode::INTERNAL_SERVER_ERROR, format!("Error:\n{{precommit_fail,{term}}}\n"))
        }
        Some(PrecommitReason::HookMissing(hook)) => reply::text(
            StatusCode::FORBIDDEN,
            format!(
                "PUT aborted: the pre-commit hook {hook} cannot run here; remove it from the bucket's properties\n"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::{Bucket, StoreFailure};

    fn said(error: Error, asked: RequestKind) -> (u16, String) {
        let reply = reply_for(&error, asked);
        let body = reply.whole_body().expect("a whole body");
        (reply.status.as_u16(), String::from_utf8_lossy(body).into_owned())
    }

    #[test]
    fn quorum_errors_have_riaks_words() {
        let get = |error| said(error, RequestKind::Get);
        let short = Error::QuorumUnsatisfied { option: "r", need: 2, got: 1 };
        assert_eq!(get(short), (503, "R-value unsatisfied: 1/2\n".into()));
        let confirms = Error::NodeConfirmsUnsatisfied { need: 3, got: 2 };
        assert_eq!(said(confirms, RequestKind::Put), (503, "node_confirms-value unsatisfied: 2/3\n".into()));
        let nodes = Error::InsufficientNodes { have: 1, need: 9 };
        assert_eq!(get(nodes), (500, "Error:\n{insufficient_nodes,1,need,9}\n".into()));
        let text = "Specified w/dw/pw/node_confirms values invalid for bucket n value of 3\n";
        assert_eq!(get(Error::NValViolation(3)), (400, text.into()));
        assert_eq!(get(Error::Timeout), (503, "request timed out\n".into()));
        let no_type = Error::NoType(Bucket::typed("nonesuch", "b"));
        assert_eq!(get(no_type), (404, "Unknown bucket type: nonesuch".into()));
    }

    #[test]
    fn a_node_that_takes_no_part_says_why_and_that_others_can_answer() {
        let failure = StoreFailure::new(StoreFailureKind::Closed, "this node was removed from its cluster");
        let expected = (503, "this node was removed from its cluster\n".to_owned());
        for asked in [RequestKind::Get, RequestKind::Put, RequestKind::Delete, RequestKind::Other] {
            assert_eq!(said(Error::Storage(failure.clone()), asked), expected, "{asked:?}");
        }
    }

    #[test]
    fn every_failure_of_a_store_is_one_status_with_its_text() {
        use StoreFailureKind as Kind;
        for kind in [Kind::Busy, Kind::ClosedToWrites, Kind::DiskFull, Kind::Poisoned, Kind::Unreadable, Kind::Internal]
        {
            let failure = StoreFailure::new(kind, "no \"room\"");
            let text = "Error:\n{storage_error,\"no \\\"room\\\"\"}\n";
            assert_eq!(said(Error::Storage(failure), RequestKind::Put), (500, text.into()));
        }
    }

    #[test]
    fn a_refused_object_learns_the_limit() {
        let text = "The object would be larger than the 1000 bytes that this node takes\n";
        let refused = Error::TooLarge { bytes: 1048, bytes_max: 1000 };
        assert_eq!(said(refused, RequestKind::Put), (413, text.into()));
    }

    #[test]
    fn the_answer_to_a_refused_put_is_what_its_hook_said() {
        let put = |reason| said(Error::PrecommitFail(reason), RequestKind::Put);
        assert_eq!(put(None), (403, "PUT aborted by pre-commit hook.\n".into()));
        assert_eq!(put(Some(PrecommitReason::HookSaid("too old".into()))), (403, "too old".into()));
        let term = PrecommitReason::HookReturned("7".into());
        assert_eq!(put(Some(term)), (500, "Error:\n{precommit_fail,7}\n".into()));
    }

    #[test]
    fn the_content_type_of_a_violation_depends_on_the_request() {
        let content_type = |asked| {
            let reply = reply_for(&Error::NValViolation(3), asked);
            reply.headers.get(name::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value).into_owned())
        };
        assert_eq!(content_type(RequestKind::Get), None);
        assert_eq!(content_type(RequestKind::Put).as_deref(), Some("text/plain"));
        assert_eq!(content_type(RequestKind::Delete).as_deref(), Some("text/html"));
    }
}
