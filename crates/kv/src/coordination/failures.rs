//! What the failure of a replica means to a request.

use ombak_types::{Error, StoreFailureKind};

/// The part that a failure of one replica plays in the outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaFailure {
    /// The answer did not come in time. The replica is neither for nor against the request: if the
    /// others do not decide, the request ends with a timeout, whichever node's clock told it first.
    Late,
    /// A queue was full. If nothing worse happened, the client is told to try again.
    Busy,
    /// The replica has a version that it cannot read. The others can repair it.
    Unreadable,
    /// The replica cannot take part: it is not reachable, its store is full, closed or broken, or
    /// it has a defect.
    Broken,
}

impl ReplicaFailure {
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Timeout => Self::Late,
            Error::Overload => Self::Busy,
            Error::Storage(failure) => match failure.kind {
                StoreFailureKind::Busy => Self::Busy,
                StoreFailureKind::Unreadable => Self::Unreadable,
                _ => Self::Broken,
            },
            _ => Self::Broken,
        }
    }
}

/// What a node's refusal to coordinate a put means: it has stored nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is a matter of that node: another one may accept the put.
    OfTheNode,
    /// It is a matter of the put: every node would refuse it.
    OfThePut,
    /// It is unknown what the node has stored. Another node would make a second event for the put.
    Unknown,
}

impl Refusal {
    /// The meaning of the error with which a write ended before its write call succeeded.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            // The node has too much to do, or is stopping, or the put came too late to begin there.
            Error::Overload | Error::Stopping | Error::Timeout => Self::OfTheNode,
            Error::Storage(failure) => match failure.kind {
                // The same call may succeed soon, and at another node at once.
                StoreFailureKind::Busy => Self::OfTheNode,
                // The partition moves to another node, is not open here, or cannot be read at all.
                StoreFailureKind::ClosedToWrites | StoreFailureKind::Closed => Self::OfTheNode,
                // A full disk takes nothing: the store cuts a part of a record off again.
                StoreFailureKind::DiskFull => Self::OfTheNode,
                // The store refuses every append since an earlier failure. The append that failed
                // first ends with `Io`.
                StoreFailureKind::Poisoned => Self::OfTheNode,
                // The new value cannot be merged with a version that cannot be read. Another node
                // may read its copy.
                StoreFailureKind::Unreadable => Self::OfTheNode,
                // The put was not delivered, or the node has no position for the key.
                StoreFailureKind::Unreachable => Self::OfTheNode,
                // Each node has its own configuration of backends.
                StoreFailureKind::NoBackend => Self::OfTheNode,
                // A limit of the backend, which is the same on all nodes.
                StoreFailureKind::TooLarge => Self::OfThePut,
                // A part of the append may have reached the disk.
                StoreFailureKind::Io | StoreFailureKind::Internal => Self::Unknown,
                // Puts take no snapshots.
                StoreFailureKind::SnapshotTimeout => Self::Unknown,
            },
            _ => Self::OfThePut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::StoreFailure;

    fn storage(kind: StoreFailureKind) -> Error {
        StoreFailure::new(kind, "on purpose").into()
    }

    #[test]
    fn each_kind_of_failure_has_its_meaning() {
        use StoreFailureKind as Kind;
        let rows = [
            (Kind::Busy, ReplicaFailure::Busy, Refusal::OfTheNode),
            (Kind::ClosedToWrites, ReplicaFailure::Broken, Refusal::OfTheNode),
            (Kind::Closed, ReplicaFailure::Broken, Refusal::OfTheNode),
            (Kind::DiskFull, ReplicaFailure::Broken, Refusal::OfTheNode),
            (Kind::Poisoned, ReplicaFailure::Broken, Refusal::OfTheNode),
            (Kind::Unreadable, ReplicaFailure::Unreadable, Refusal::OfTheNode),
            (Kind::Unreachable, ReplicaFailure::Broken, Refusal::OfTheNode),
            (Kind::NoBackend, ReplicaFailure::Broken, Refusal::OfTheNode),
            (Kind::TooLarge, ReplicaFailure::Broken, Refusal::OfThePut),
            (Kind::Io, ReplicaFailure::Broken, Refusal::Unknown),
            (Kind::Internal, ReplicaFailure::Broken, Refusal::Unknown),
            (Kind::SnapshotTimeout, ReplicaFailure::Broken, Refusal::Unknown),
        ];
        for (kind, replica, refusal) in rows {
            assert_eq!(
                (ReplicaFailure::of(&storage(kind)), Refusal::of(&storage(kind))),
                (replica, refusal),
                "{kind:?}"
            );
        }
        assert_eq!(ReplicaFailure::of(&Error::Timeout), ReplicaFailure::Late);
        assert_eq!(ReplicaFailure::of(&Error::Overload), ReplicaFailure::Busy);
        for error in [Error::Overload, Error::Stopping, Error::Timeout] {
            assert_eq!(Refusal::of(&error), Refusal::OfTheNode);
        }
        for error in [Error::NValViolation(3), Error::MatchFound, Error::Modified, Error::TooManySiblings(101)] {
            assert_eq!(Refusal::of(&error), Refusal::OfThePut);
        }
    }
}
