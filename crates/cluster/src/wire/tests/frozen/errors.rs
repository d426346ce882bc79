//! The errors of questions, with all words and all failures of stores that they can name.

use super::*;
use crate::wire::error::{FAILURES, WORDS};

fn errors() -> Vec<(&'static str, Error)> {
    let because = || "because \u{e9}".to_owned();
    let bucket = Bucket { bucket_type: "a type".into(), name: "a bucket".into() };
    let parsing = PrecommitReason::FieldParsingFailed { field: "a_field".into(), value: because() };
    let unknown = PrecommitReason::UnknownFieldType { field: "a_field".into() };
    let hook = PrecommitReason::HookMissing("a hook".into());
    vec![
        ("timeout", Error::Timeout),
        ("overload", Error::Overload),
        ("all_nodes_down", Error::AllNodesDown),
        ("insufficient_vnodes", Error::InsufficientVnodes { have: 300, need: 3 }),
        ("insufficient_nodes", Error::InsufficientNodes { have: 300, need: 3 }),
        ("node_confirms_unsatisfied", Error::NodeConfirmsUnsatisfied { need: 300, got: 3 }),
        ("n_val_violation", Error::NValViolation(300)),
        ("quorum_violation", Error::QuorumViolation { option: "w", value: "a value".into() }),
        ("quorum_unsatisfied", Error::QuorumUnsatisfied { option: "w", need: 300, got: 3 }),
        ("not_found", Error::NotFound),
        ("match_found", Error::MatchFound),
        ("modified", Error::Modified),
        ("precommit_fail", Error::PrecommitFail(None)),
        ("precommit_fail/parsing", Error::PrecommitFail(Some(parsing))),
        ("precommit_fail/field_type", Error::PrecommitFail(Some(unknown))),
        ("precommit_fail/hook", Error::PrecommitFail(Some(hook))),
        ("no_type", Error::NoType(bucket)),
        ("zero_length", Error::ZeroLength("Key")),
        ("key_too_large", Error::KeyTooLarge),
        ("too_large", Error::TooLarge { bytes: 300, bytes_max: 3 }),
        ("too_many_siblings", Error::TooManySiblings(300)),
        ("bad_ttl", Error::BadTtl(because())),
        ("bad_clock", Error::BadClock(because())),
        ("unsupported", Error::Unsupported(because())),
        ("job_disabled", Error::JobDisabled("{riak_kv,list_keys}")),
        ("stopping", Error::Stopping),
        ("insufficient_vnodes_available", Error::InsufficientVnodesAvailable),
    ]
}

/// What version 2 has added.
pub(super) fn check_version_2(frozen: &mut FrozenMessages) {
    let refused = Error::OperationRefused("a term".into());
    check(frozen, "error/operation_refused", &refused, encode_error, decode_error);
    let said = Error::PrecommitFail(Some(PrecommitReason::HookSaid("a text".into())));
    check(frozen, "error/precommit_fail/said", &said, encode_error, decode_error);
    let returned = Error::PrecommitFail(Some(PrecommitReason::HookReturned("a term".into())));
    check(frozen, "error/precommit_fail/returned", &returned, encode_error, decode_error);
}

pub(super) fn check_all(frozen: &mut FrozenMessages) {
    for (name, error) in errors() {
        check(frozen, &format!("error/{name}"), &error, encode_error, decode_error);
    }
    for (number, failure) in FAILURES {
        let error = Error::from(StoreFailure::new(failure, "a text"));
        check(frozen, &format!("error/storage/{number}"), &error, encode_error, decode_error);
    }
    for word in WORDS {
        let error = Error::QuorumViolation { option: word, value: "".into() };
        check(frozen, &format!("error/word/{word}"), &error, encode_error, decode_error);
    }
}
