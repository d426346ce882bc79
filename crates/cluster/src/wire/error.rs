//! The error of a question to another node.
//!
//! ```text
//! version u8, kind u8, what the kind has (see `kind`), fields
//! ```
//!
//! Every error keeps its kind and its numbers. A text is cut after [`TEXT_BYTES_MAX`] bytes.

use super::fields::no_fields;
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_peer::mux::Body;
use ombak_types::error::PrecommitReason;
use ombak_types::{Bucket, Error, StoreFailure, StoreFailureKind};

/// The maximum length of a text within an error, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 10;

/// The numbers of the kinds. A number is never used for something else later.
mod kind {
    pub const TIMEOUT: u8 = 1;
    pub const OVERLOAD: u8 = 2;
    pub const ALL_NODES_DOWN: u8 = 3;
    /// varint have, varint need
    pub const INSUFFICIENT_VNODES: u8 = 4;
    /// varint have, varint need
    pub const INSUFFICIENT_NODES: u8 = 5;
    /// varint need, varint got
    pub const NODE_CONFIRMS_UNSATISFIED: u8 = 6;
    /// varint n
    pub const N_VAL_VIOLATION: u8 = 7;
    /// text option, text value
    pub const QUORUM_VIOLATION: u8 = 8;
    /// text option, varint need, varint got
    pub const QUORUM_UNSATISFIED: u8 = 9;
    pub const NOT_FOUND: u8 = 10;
    pub const MATCH_FOUND: u8 = 11;
    pub const MODIFIED: u8 = 12;
    pub const PRECOMMIT_FAIL: u8 = 13;
    /// text field, text value
    pub const FIELD_PARSING_FAILED: u8 = 14;
    /// text field
    pub const UNKNOWN_FIELD_TYPE: u8 = 15;
    /// text hook
    pub const HOOK_MISSING: u8 = 16;
    /// bytes bucket_type, bytes name
    pub const NO_TYPE: u8 = 17;
    /// text part
    pub const ZERO_LENGTH: u8 = 18;
    pub const KEY_TOO_LARGE: u8 = 19;
    /// varint bytes, varint bytes_max
    pub const TOO_LARGE: u8 = 20;
    /// varint count
    pub const TOO_MANY_SIBLINGS: u8 = 21;
    /// text
    pub const BAD_TTL: u8 = 22;
    /// text
    pub const BAD_CLOCK: u8 = 23;
    /// text
    pub const UNSUPPORTED: u8 = 24;
    /// text class
    pub const JOB_DISABLED: u8 = 25;
    /// u8 kind of the failure, text
    pub const STORAGE: u8 = 26;
    pub const STOPPING: u8 = 27;
    pub const INSUFFICIENT_VNODES_AVAILABLE: u8 = 28;
    /// text term
    pub const OPERATION_REFUSED: u8 = 29;
    /// text
    pub const HOOK_SAID: u8 = 30;
    /// text term
    pub const HOOK_RETURNED: u8 = 31;
}

/// The kinds of failures of a store, by their number on the wire.
pub(super) const FAILURES: [(u8, StoreFailureKind); 12] = [
    (1, StoreFailureKind::Busy),
    (2, StoreFailureKind::ClosedToWrites),
    (3, StoreFailureKind::DiskFull),
    (4, StoreFailureKind::Poisoned),
    (5, StoreFailureKind::Unreadable),
    (6, StoreFailureKind::TooLarge),
    (7, StoreFailureKind::SnapshotTimeout),
    (8, StoreFailureKind::NoBackend),
    (9, StoreFailureKind::Closed),
    (10, StoreFailureKind::Unreachable),
    (11, StoreFailureKind::Io),
    (12, StoreFailureKind::Internal),
];

/// The words that errors hold as static texts. A word that is not listed does not decode.
pub(super) const WORDS: [&str; 19] = [
    "r",
    "pr",
    "w",
    "dw",
    "pw",
    "rw",
    "node_confirms",
    "Type",
    "Bucket",
    "Key",
    "{riak_kv,list_buckets}",
    "{riak_kv,stream_list_buckets}",
    "{riak_kv,list_keys}",
    "{riak_kv,stream_list_keys}",
    "{riak_kv,secondary_index}",
    "{riak_kv,stream_secondary_index}",
    "{riak_kv,map_reduce}",
    "{riak_kv,map_reduce_js}",
    "{yokozuna,query}",
];

impl Writer {
    /// Writes a text, cut after [`TEXT_BYTES_MAX`] bytes.
    fn text(&mut self, text: &str) {
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.bytes(&text.as_bytes()[..end]);
    }

    fn counts(&mut self, kind: u8, counts: &[u32]) {
        self.u8(kind);
        counts.iter().for_each(|count| self.varint(u64::from(*count)));
    }

    fn texts(&mut self, kind: u8, texts: &[&str]) {
        self.u8(kind);
        texts.iter().for_each(|text| self.text(text));
    }
}

/// Encodes an error.
pub fn encode_error(error: &Error) -> Body {
    let mut out = Writer::of_message();
    match error {
        Error::Timeout => out.u8(kind::TIMEOUT),
        Error::Overload => out.u8(kind::OVERLOAD),
        Error::AllNodesDown => out.u8(kind::ALL_NODES_DOWN),
        Error::InsufficientVnodes { have, need } => out.counts(kind::INSUFFICIENT_VNODES, &[*have, *need]),
        Error::InsufficientNodes { have, need } => out.counts(kind::INSUFFICIENT_NODES, &[*have, *need]),
        Error::NodeConfirmsUnsatisfied { need, got } => out.counts(kind::NODE_CONFIRMS_UNSATISFIED, &[*need, *got]),
        Error::NValViolation(n) => out.counts(kind::N_VAL_VIOLATION, &[*n]),
        Error::QuorumViolation { option, value } => out.texts(kind::QUORUM_VIOLATION, &[option, value]),
        Error::QuorumUnsatisfied { option, need, got } => {
            out.texts(kind::QUORUM_UNSATISFIED, &[option]);
            out.varint(u64::from(*need));
            out.varint(u64::from(*got));
        }
        Error::NotFound => out.u8(kind::NOT_FOUND),
        Error::MatchFound => out.u8(kind::MATCH_FOUND),
        Error::Modified => out.u8(kind::MODIFIED),
        Error::PrecommitFail(reason) => put_precommit(reason.as_ref(), &mut out),
        Error::NoType(bucket) => {
            out.u8(kind::NO_TYPE);
            out.bytes(&bucket.bucket_type);
            out.bytes(&bucket.name);
        }
        Error::ZeroLength(part) => out.texts(kind::ZERO_LENGTH, &[part]),
        Error::KeyTooLarge => out.u8(kind::KEY_TOO_LARGE),
        Error::TooLarge { bytes, bytes_max } => {
            out.u8(kind::TOO_LARGE);
            out.varint(*bytes);
            out.varint(*bytes_max);
        }
        Error::TooManySiblings(count) => out.counts(kind::TOO_MANY_SIBLINGS, &[*count]),
        Error::OperationRefused(term) => out.texts(kind::OPERATION_REFUSED, &[term]),
        Error::BadTtl(text) => out.texts(kind::BAD_TTL, &[text]),
        Error::BadClock(text) => out.texts(kind::BAD_CLOCK, &[text]),
        Error::Unsupported(text) => out.texts(kind::UNSUPPORTED, &[text]),
        // Only the node that gathers a fold has this error, and no other node asks it for the fold.
        Error::TooManyFound(_) => out.texts(kind::UNSUPPORTED, &[&error.to_string()]),
        Error::JobDisabled(class) => out.texts(kind::JOB_DISABLED, &[class]),
        Error::Storage(failure) => {
            out.u8(kind::STORAGE);
            out.u8(failure_code(failure.kind));
            out.text(&failure.text);
        }
        Error::Stopping => out.u8(kind::STOPPING),
        Error::InsufficientVnodesAvailable => out.u8(kind::INSUFFICIENT_VNODES_AVAILABLE),
    }
    out.end_fields();
    out.finish()
}

fn put_precommit(reason: Option<&PrecommitReason>, out: &mut Writer) {
    match reason {
        None => out.u8(kind::PRECOMMIT_FAIL),
        Some(PrecommitReason::FieldParsingFailed { field, value }) => {
            out.texts(kind::FIELD_PARSING_FAILED, &[field, value]);
        }
        Some(PrecommitReason::UnknownFieldType { field }) => out.texts(kind::UNKNOWN_FIELD_TYPE, &[field]),
        Some(PrecommitReason::HookMissing(hook)) => out.texts(kind::HOOK_MISSING, &[hook]),
        Some(PrecommitReason::HookSaid(text)) => out.texts(kind::HOOK_SAID, &[text]),
        Some(PrecommitReason::HookReturned(term)) => out.texts(kind::HOOK_RETURNED, &[term]),
    }
}

const fn failure_code(kind: StoreFailureKind) -> u8 {
    // The compiler reports a new kind here; it needs a line in `FAILURES`, too.
    match kind {
        StoreFailureKind::Busy => 1,
        StoreFailureKind::ClosedToWrites => 2,
        StoreFailureKind::DiskFull => 3,
        StoreFailureKind::Poisoned => 4,
        StoreFailureKind::Unreadable => 5,
        StoreFailureKind::TooLarge => 6,
        StoreFailureKind::SnapshotTimeout => 7,
        StoreFailureKind::NoBackend => 8,
        StoreFailureKind::Closed => 9,
        StoreFailureKind::Unreachable => 10,
        StoreFailureKind::Io => 11,
        StoreFailureKind::Internal => 12,
    }
}

/// Decodes an error.
pub fn decode_error(message: &Bytes) -> Result<Error, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let kind = reader.u8()?;
    let error = read_error(kind, &mut reader)?;
    no_fields(&mut reader)?;
    reader.end()?;
    Ok(error)
}

fn read_error(kind: u8, r: &mut Reader<'_>) -> Result<Error, Malformed> {
    Ok(match kind {
        kind::TIMEOUT => Error::Timeout,
        kind::OVERLOAD => Error::Overload,
        kind::ALL_NODES_DOWN => Error::AllNodesDown,
        kind::INSUFFICIENT_VNODES => Error::InsufficientVnodes { have: r.varint32()?, need: r.varint32()? },
        kind::INSUFFICIENT_NODES => Error::InsufficientNodes { have: r.varint32()?, need: r.varint32()? },
        kind::NODE_CONFIRMS_UNSATISFIED => Error::NodeConfirmsUnsatisfied { need: r.varint32()?, got: r.varint32()? },
        kind::N_VAL_VIOLATION => Error::NValViolation(r.varint32()?),
        kind::QUORUM_VIOLATION => Error::QuorumViolation { option: word(r)?, value: text(r)? },
        kind::QUORUM_UNSATISFIED => {
            Error::QuorumUnsatisfied { option: word(r)?, need: r.varint32()?, got: r.varint32()? }
        }
        kind::NOT_FOUND => Error::NotFound,
        kind::MATCH_FOUND => Error::MatchFound,
        kind::MODIFIED => Error::Modified,
        kind::PRECOMMIT_FAIL
        | kind::FIELD_PARSING_FAILED
        | kind::UNKNOWN_FIELD_TYPE
        | kind::HOOK_MISSING
        | kind::HOOK_SAID
        | kind::HOOK_RETURNED => Error::PrecommitFail(precommit(kind, r)?),
        kind::NO_TYPE => Error::NoType(Bucket { bucket_type: owned(&r.bytes()?), name: owned(&r.bytes()?) }),
        kind::ZERO_LENGTH => Error::ZeroLength(word(r)?),
        kind::KEY_TOO_LARGE => Error::KeyTooLarge,
        kind::TOO_LARGE => Error::TooLarge { bytes: r.varint()?, bytes_max: r.varint()? },
        kind::TOO_MANY_SIBLINGS => Error::TooManySiblings(r.varint32()?),
        kind::OPERATION_REFUSED => Error::OperationRefused(text(r)?),
        kind::BAD_TTL => Error::BadTtl(text(r)?),
        kind::BAD_CLOCK => Error::BadClock(text(r)?),
        kind::UNSUPPORTED => Error::Unsupported(text(r)?),
        kind::JOB_DISABLED => Error::JobDisabled(word(r)?),
        kind::STORAGE => {
            let code = r.u8()?;
            let known = FAILURES.iter().find(|(number, _)| *number == code);
            let (_, failure) = known.ok_or(Malformed("the kind of a failure is not known"))?;
            Error::Storage(StoreFailure::new(*failure, text(r)?))
        }
        kind::STOPPING => Error::Stopping,
        kind::INSUFFICIENT_VNODES_AVAILABLE => Error::InsufficientVnodesAvailable,
        _ => return Err(Malformed("the kind of an error is not known")),
    })
}

fn precommit(kind: u8, r: &mut Reader<'_>) -> Result<Option<PrecommitReason>, Malformed> {
    Ok(match kind {
        kind::FIELD_PARSING_FAILED => Some(PrecommitReason::FieldParsingFailed { field: text(r)?, value: text(r)? }),
        kind::UNKNOWN_FIELD_TYPE => Some(PrecommitReason::UnknownFieldType { field: text(r)? }),
        kind::HOOK_MISSING => Some(PrecommitReason::HookMissing(text(r)?)),
        kind::HOOK_SAID => Some(PrecommitReason::HookSaid(text(r)?)),
        kind::HOOK_RETURNED => Some(PrecommitReason::HookReturned(text(r)?)),
        _ => None,
    })
}

/// Errors live longer than the bytes that were read together with them.
fn owned(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn text(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    reader.text(TEXT_BYTES_MAX).map(str::to_owned)
}

fn word(reader: &mut Reader<'_>) -> Result<&'static str, Malformed> {
    let text = reader.text(TEXT_BYTES_MAX)?;
    WORDS.iter().find(|word| **word == text).copied().ok_or(Malformed("a word is not known"))
}
