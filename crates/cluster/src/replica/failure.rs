//! Which error of the engine a failure of the transport becomes.
//!
//! | the request was | error |
//! | --- | --- |
//! | not delivered, or refused before it was executed | `Storage` with the kind `Unreachable` |
//! | refused because a queue is full | `Overload` |
//! | too late, here or at the peer | `Timeout` |
//! | delivered, and the answer is lost | `Timeout`: it may have been executed |
//! | executed, and failed | the error of the replica |
//!
//! So a coordinator may ask another node after `Unreachable` and `Overload`, and after no other
//! error (docs/design/replication.md §12).

use crate::liveness::RequestOutcome;
use crate::wire::decode_error;
use ombak_kv::replica::PutFailure;
use ombak_peer::{PeerError, RefusalCode};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use tracing::debug;

/// The service has an error in place of a result. Its bytes are the detail.
pub(crate) const REPLICA_ERROR: RefusalCode = RefusalCode(RefusalCode::SERVICES_FROM);
/// The ring of the sender has another lineage. Nothing was executed.
pub(crate) const OTHER_LINEAGE: RefusalCode = RefusalCode(RefusalCode::SERVICES_FROM + 1);
/// The request did not decode. Nothing was executed.
pub(crate) const MALFORMED: RefusalCode = RefusalCode(RefusalCode::SERVICES_FROM + 2);

/// The service has refused a put before it executed anything. The bytes of the error are the
/// detail.
pub(super) const PUT_REFUSED: RefusalCode = RefusalCode(RefusalCode::SERVICES_FROM + 3);

/// The failure of a put that `node` was to coordinate.
pub(super) fn put_failure_of(node: NodeId, failure: PeerError) -> PutFailure {
    let was_not_executed = match &failure {
        PeerError::Refused { code: PUT_REFUSED | OTHER_LINEAGE | MALFORMED, .. } => true,
        failure => failure.was_not_executed(),
    };
    let error = error_of(node, failure);
    if was_not_executed { PutFailure::Refused(error) } else { PutFailure::Ended(error) }
}

/// The error of a request to `node` that has no result.
pub(crate) fn error_of(node: NodeId, failure: PeerError) -> Error {
    let code = match failure {
        PeerError::Overload => return Error::Overload,
        PeerError::Timeout | PeerError::Closed | PeerError::AnswerLost => return Error::Timeout,
        PeerError::Unreachable | PeerError::VersionMismatch => return unreachable(node, &failure.to_string()),
        PeerError::Refused { code: REPLICA_ERROR | PUT_REFUSED, detail } => {
            return decode_error(&detail).unwrap_or_else(|why| undecodable(node, &why.to_string()));
        }
        PeerError::Refused { code, .. } => code,
    };
    match code {
        RefusalCode::EXPIRED => Error::Timeout,
        RefusalCode::TOO_LARGE => {
            let text = format!("node {node} does not take requests of this size");
            StoreFailure::new(StoreFailureKind::TooLarge, text).into()
        }
        OTHER_LINEAGE => unreachable(node, "its ring has another lineage"),
        MALFORMED => unreachable(node, "it does not understand the request"),
        code if code.is_of_transport() => unreachable(node, &code.to_string()),
        code => undecodable(node, &code.to_string()),
    }
}

fn unreachable(node: NodeId, why: &str) -> Error {
    StoreFailure::new(StoreFailureKind::Unreachable, format!("node {node} cannot be asked: {why}")).into()
}

/// The error for an answer that this version does not understand. The request may have been
/// executed.
pub(crate) fn undecodable(node: NodeId, why: &str) -> Error {
    debug!(peer = %node, why, "the answer of a peer does not decode");
    StoreFailure::internal(format!("the answer of node {node} is not understood: {why}")).into()
}

/// What the end of a request says about the peer.
pub(crate) const fn outcome_of<T>(response: &Result<T, PeerError>) -> RequestOutcome {
    match response {
        Ok(_) => RequestOutcome::Answered,
        Err(PeerError::Overload) => RequestOutcome::Overloaded,
        Err(PeerError::Unreachable | PeerError::VersionMismatch) => RequestOutcome::NotDelivered,
        Err(PeerError::Timeout | PeerError::Closed | PeerError::AnswerLost) => RequestOutcome::NotAnswered,
        Err(PeerError::Refused { code, .. }) => match *code {
            RefusalCode::EXPIRED => RequestOutcome::NotAnswered,
            RefusalCode::SHUTTING_DOWN => RequestOutcome::NotDelivered,
            _ => RequestOutcome::Answered,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::encode_error;
    use bytes::Bytes;

    const NODE: NodeId = NodeId::new(7);

    fn refused(code: RefusalCode) -> PeerError {
        PeerError::Refused { code, detail: Bytes::new() }
    }

    /// Whether a coordinator may ask another node.
    fn may_be_tried_elsewhere(error: &Error) -> bool {
        match error {
            Error::Overload => true,
            Error::Storage(failure) => failure.kind == StoreFailureKind::Unreachable,
            _ => false,
        }
    }

    #[test]
    fn what_was_not_executed_may_be_tried_elsewhere_and_nothing_else() {
        let failures = [
            PeerError::Unreachable,
            PeerError::Overload,
            PeerError::VersionMismatch,
            PeerError::Timeout,
            PeerError::Closed,
            PeerError::AnswerLost,
            refused(RefusalCode::UNKNOWN_SERVICE),
            refused(RefusalCode::SHUTTING_DOWN),
        ];
        for failure in failures {
            let not_executed = failure.was_not_executed();
            let error = error_of(NODE, failure.clone());
            assert_eq!(may_be_tried_elsewhere(&error), not_executed, "{failure:?} became {error:?}");
        }
        for code in [OTHER_LINEAGE, MALFORMED] {
            assert!(may_be_tried_elsewhere(&error_of(NODE, refused(code))));
        }
        // The time of these has passed, or they are too large for every node.
        for code in [RefusalCode::EXPIRED, RefusalCode::TOO_LARGE, RefusalCode(999)] {
            assert!(!may_be_tried_elsewhere(&error_of(NODE, refused(code))));
        }
    }

    #[test]
    fn an_error_of_the_replica_arrives_as_it_is() {
        let poisoned = Error::from(StoreFailure::new(StoreFailureKind::Poisoned, "the disk is broken"));
        let detail = encode_error(&poisoned).parts().concat().into();
        assert_eq!(error_of(NODE, PeerError::Refused { code: REPLICA_ERROR, detail }), poisoned);
        let Error::Storage(failure) = error_of(NODE, refused(REPLICA_ERROR)) else { panic!("another kind") };
        assert_eq!(failure.kind, StoreFailureKind::Internal);
    }
}
