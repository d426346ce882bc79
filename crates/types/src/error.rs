//! The errors of requests, in the words that Riak's clients match on.

use crate::etf::{BinaryText, StringText};
use crate::names::Bucket;
use crate::store_failure::StoreFailure;
use crate::stored_object::Corrupt;

/// The error of a request. `Display` is the text of Riak's Protocol Buffers errors
/// (docs/riak/pb-api.md §1.1). The HTTP layer has its own texts and matches on the variants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The time limit of the request passed.
    #[error("timeout")]
    Timeout,
    /// A queue or limit is full.
    #[error("overload")]
    Overload,
    /// No node of the preference list is up.
    #[error("all_nodes_down")]
    AllNodesDown,
    /// Fewer positions can answer than the request needs.
    #[error("{{insufficient_vnodes,{have},need,{need}}}")]
    InsufficientVnodes {
        /// Positions that can answer.
        have: u32,
        /// Positions that the request needs.
        need: u32,
    },
    /// Some part of a listing or an index query has no replica that can answer
    /// (docs/riak/semantics.md §4).
    #[error("insufficient_vnodes_available")]
    InsufficientVnodesAvailable,
    /// A get's `node_confirms` exceeds the number of distinct nodes.
    #[error("{{insufficient_nodes,{have},need,{need}}}")]
    InsufficientNodes {
        /// Distinct nodes that can answer.
        have: u32,
        /// Distinct nodes that the request needs.
        need: u32,
    },
    /// A put's `node_confirms` was not met.
    #[error("{{node_confirms_val_unsatisfied,{need},{got}}}")]
    NodeConfirmsUnsatisfied {
        /// Distinct nodes that the request needs.
        need: u32,
        /// Distinct nodes that confirmed.
        got: u32,
    },
    /// A quorum option or n_val exceeds the bucket's n_val. Holds the number that Riak names.
    #[error("{{n_val_violation,{0}}}")]
    NValViolation(u32),
    /// The value of a quorum option is not a quorum.
    #[error("{{{option}_val_violation,{value}}}")]
    QuorumViolation {
        /// `r`, `pr`, `w`, `dw`, `pw`, `rw` or `node_confirms`.
        option: &'static str,
        /// The given value.
        value: String,
    },
    /// Too few positions answered in favour.
    #[error("{{{option}_val_unsatisfied,{need},{got}}}")]
    QuorumUnsatisfied {
        /// `r`, `pr`, `w`, `dw` or `pw`.
        option: &'static str,
        /// Positions that the request needs.
        need: u32,
        /// Positions that answered in favour.
        got: u32,
    },
    /// `if_not_modified` on an absent key.
    #[error("notfound")]
    NotFound,
    /// `if_none_match` on an existing key.
    #[error("match_found")]
    MatchFound,
    /// The clock of `if_not_modified` differs from the stored clock.
    #[error("modified")]
    Modified,
    /// A pre-commit hook refused the write. Holds the Erlang term of the reason, if there is one.
    #[error("{}", precommit_text(.0))]
    PrecommitFail(Option<PrecommitReason>),
    /// The bucket type is unknown or not active.
    #[error("no_type")]
    NoType(Bucket),
    /// The type, bucket or key is empty. Holds `Type`, `Bucket` or `Key`.
    #[error("{0} cannot be zero-length")]
    ZeroLength(&'static str),
    /// The key is longer than [`crate::names::KEY_BYTES_MAX`].
    #[error("key_too_large")]
    KeyTooLarge,
    /// The object would be larger than `object.size.maximum`.
    #[error("{{too_large,{bytes}}}")]
    TooLarge {
        /// The size that the object would have, in bytes.
        bytes: u64,
        /// The maximum size of an object, in bytes.
        bytes_max: u64,
    },
    /// The object would have more siblings than `object.siblings.maximum`.
    #[error("{{too_many_siblings,{0}}}")]
    TooManySiblings(u32),
    /// An operation on a data type is refused, and nothing of it is applied. Holds the Erlang term
    /// that Riak answers, `{precondition,{not_present,<<"x">>}}` for instance.
    #[error("{0}")]
    OperationRefused(String),
    /// The time to live is invalid. Holds the given value and the allowed values.
    #[error("{0}")]
    BadTtl(String),
    /// No node can have issued these bytes as a clock.
    #[error("vclock does not decode: {0}")]
    BadClock(String),
    /// The operation needs a feature that this server does not have (yet). Holds the whole text.
    #[error("{0}")]
    Unsupported(String),
    /// A `cluster.job.*` setting disables the operation. Holds the class, `{riak_kv,list_keys}` for
    /// instance.
    #[error("Operation '{0}' is not enabled")]
    JobDisabled(&'static str),
    /// The store could not read or write.
    #[error("{{storage_error,{}}}", StringText(&.0.text))]
    Storage(StoreFailure),
    /// A fold has found more than one answer can hold. Holds how much that is.
    #[error("more than {0} keys or buckets were found: ask for a smaller range")]
    TooManyFound(usize),
    /// The node is stopping.
    #[error("node_stopping")]
    Stopping,
}

/// Why a pre-commit hook refused a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrecommitReason {
    /// The value of an `_int` index entry is not an integer.
    FieldParsingFailed {
        /// The field's name, lower-cased.
        field: String,
        /// The value that could not be parsed.
        value: String,
    },
    /// The field name of an index entry has no known suffix.
    UnknownFieldType {
        /// The field's name, lower-cased.
        field: String,
    },
    /// The hook is an Erlang function, or no function has its name. Holds the module and the
    /// function, or the name.
    HookMissing(String),
    /// The hook refused the write, and said why.
    HookSaid(String),
    /// The hook gave a reason that is not a text, or something that is not an object. Holds the
    /// Erlang term that Riak answers.
    HookReturned(String),
}

fn precommit_text(reason: &Option<PrecommitReason>) -> String {
    match reason {
        None => "precommit_fail".into(),
        Some(PrecommitReason::FieldParsingFailed { field, value }) => {
            let (field, value) = (BinaryText(field.as_bytes()), BinaryText(value.as_bytes()));
            format!("{{precommit_fail,[{{field_parsing_failed,{{{field},{value}}}}}]}}")
        }
        Some(PrecommitReason::UnknownFieldType { field }) => {
            format!("{{precommit_fail,[{{unknown_field_type,{}}}]}}", BinaryText(field.as_bytes()))
        }
        Some(PrecommitReason::HookMissing(hook)) => {
            format!("{{precommit_fail,{{hook_crashed,{{{hook},error,undef}}}}}}")
        }
        Some(PrecommitReason::HookSaid(text)) => format!("{{precommit_fail,{}}}", BinaryText(text.as_bytes())),
        Some(PrecommitReason::HookReturned(term)) => format!("{{precommit_fail,{term}}}"),
    }
}

impl From<StoreFailure> for Error {
    fn from(failure: StoreFailure) -> Self {
        Self::Storage(failure)
    }
}

impl From<Corrupt> for Error {
    fn from(corrupt: Corrupt) -> Self {
        Self::Storage(corrupt.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_riaks() {
        let field = || "n_int".to_owned();
        let cases = [
            (Error::InsufficientNodes { have: 1, need: 9 }, "{insufficient_nodes,1,need,9}"),
            (Error::InsufficientVnodes { have: 0, need: 2 }, "{insufficient_vnodes,0,need,2}"),
            (Error::InsufficientVnodesAvailable, "insufficient_vnodes_available"),
            (Error::NodeConfirmsUnsatisfied { need: 3, got: 1 }, "{node_confirms_val_unsatisfied,3,1}"),
            (Error::NValViolation(3), "{n_val_violation,3}"),
            (Error::QuorumViolation { option: "r", value: "foo".into() }, "{r_val_violation,foo}"),
            (Error::QuorumUnsatisfied { option: "pw", need: 3, got: 2 }, "{pw_val_unsatisfied,3,2}"),
            (Error::PrecommitFail(None), "precommit_fail"),
            (
                Error::PrecommitFail(Some(PrecommitReason::FieldParsingFailed {
                    field: field(),
                    value: "zo\"rk".into(),
                })),
                r#"{precommit_fail,[{field_parsing_failed,{<<"n_int">>,<<"zo\"rk">>}}]}"#,
            ),
            (
                Error::PrecommitFail(Some(PrecommitReason::UnknownFieldType { field: "zork".into() })),
                r#"{precommit_fail,[{unknown_field_type,<<"zork">>}]}"#,
            ),
            (
                Error::PrecommitFail(Some(PrecommitReason::HookMissing("nomod,nofun".into()))),
                "{precommit_fail,{hook_crashed,{nomod,nofun,error,undef}}}",
            ),
            (
                Error::PrecommitFail(Some(PrecommitReason::HookSaid("too \"old\"".into()))),
                r#"{precommit_fail,<<"too \"old\"">>}"#,
            ),
            (Error::PrecommitFail(Some(PrecommitReason::HookReturned("42".into()))), "{precommit_fail,42}"),
            (Error::ZeroLength("Bucket"), "Bucket cannot be zero-length"),
            (Error::JobDisabled("{riak_kv,list_keys}"), "Operation '{riak_kv,list_keys}' is not enabled"),
            (Error::TooLarge { bytes: 1001, bytes_max: 1000 }, "{too_large,1001}"),
            (Error::TooManySiblings(101), "{too_many_siblings,101}"),
            (Error::Storage(StoreFailure::internal("no \"space\"")), r#"{storage_error,"no \"space\""}"#),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
