//! The events of a read: what its replicas answer, and the end of its time.

use ombak_types::{Error, Object};

/// The data that a replica is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The clock and the metadata.
    Head,
    /// The clock, the metadata and the values.
    Object,
    /// Nothing: the replica holds a version that is left to exchanges, and is to exchange the key
    /// at once.
    Exchange,
}

/// The answer of a replica.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The whole object, and the digest of the version.
    Object(Object, u64),
    /// The object without its values, and the digest of the version.
    Head(Object, u64),
    /// The head is, byte for byte, that of the object which another replica has sent as its first
    /// answer, and so is the digest.
    Same {
        /// The index of that other replica in the request's list.
        of: usize,
    },
    /// The replica does not have the key.
    NotFound {
        /// Whether this replica is an owner that is known to hold everything of its class: only
        /// then does the "not found" of an owner prove absence.
        full: bool,
    },
    /// The replica failed to answer.
    Failed(Error),
}

/// An event of a read.
#[derive(Clone, Debug, PartialEq)]
pub enum GetEvent {
    /// A replica answered the last question.
    Answer {
        /// The index of the replica in the request's list.
        replica: usize,
        /// The answer.
        answer: Answer,
    },
    /// The time limit passed.
    Timeout,
}
