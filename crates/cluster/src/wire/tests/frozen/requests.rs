//! Reads, stores, puts and promises, with what is answered.

use super::*;
use crate::waking::messages::{decode_holdings, decode_holdings_question, encode_holdings, encode_holdings_question};

fn put_with(options: PutOptions) -> ForwardedMessage {
    let bucket = Bucket { bucket_type: "a type".into(), name: "a bucket".into() };
    let request = PutRequest { bucket, key: Some("a key".into()), object: an_object(), options };
    ForwardedMessage { number: DIGEST, begins_before: Some(Duration::from_secs(1)), request }
}

/// Every option of version 1 with another value than the default one.
fn all_options() -> PutOptions {
    PutOptions {
        w: Some(Quorum::Count(300)),
        dw: Some(Quorum::Majority),
        pw: Some(Quorum::All),
        node_confirms: Some(Quorum::One),
        n_val: Some(300),
        sloppy_quorum: false,
        sync_on_write: Some(SyncOnWrite::All),
        timeout: Some(Duration::from_micros(1_000_001)),
        asis: true,
        condition: PutCondition::IfNotModified(a_clock()),
        return_body: true,
        return_head: true,
        operation: None,
    }
}

fn check_reads_and_stores(frozen: &mut FrozenMessages) {
    let (ring, deadline) = (NO_RING, None);
    for (name, ask) in [("head", Ask::Head), ("object", Ask::Object)] {
        let read = ReplicaRead { partition: 300, n: 3, ring, key: "a key".into(), ask, deadline };
        check(frozen, &format!("replica_read/{name}"), &read, encode_replica_read, decode_replica_read);
    }
    let ballot = Ballot { stamp: UnixMicros(300), number: DIGEST };
    for (name, mode) in [
        ("merge", StoreMode::Merge),
        ("if_expected", StoreMode::IfExpected { expected: a_clock(), ballot }),
        ("if_absent", StoreMode::IfExpected { expected: VectorClock::new(), ballot }),
        ("replace_unreadable", StoreMode::ReplaceUnreadable),
    ] {
        let plain = mode == StoreMode::ReplaceUnreadable;
        let store = ReplicaStore {
            partition: 300,
            n: 3,
            ring,
            key: "a key".into(),
            head: "the head".into(),
            body: "the body".into(),
            stored_secs: None,
            kind: StoreKind { dvv: !plain, values: if plain { 0 } else { 300 } },
            mode,
            noted: (!plain).then_some(COUNTER),
            synced: !plain,
            deadline,
        };
        check(frozen, &format!("replica_store/{name}"), &store, encode_replica_store, decode_replica_store);
    }
    let promise = PromiseRequest { partition: 300, n: 3, ring, key: "a key".into(), ballot, deadline };
    check(frozen, "promise_request", &promise, encode_promise_request, decode_promise_request);
}

fn check_puts(frozen: &mut FrozenMessages) {
    let none_match = PutOptions { condition: PutCondition::IfNoneMatch, ..PutOptions::default() };
    for (name, sync) in [("backend", SyncOnWrite::Backend), ("one", SyncOnWrite::One)] {
        let put = put_with(PutOptions { sync_on_write: Some(sync), ..PutOptions::default() });
        check(frozen, &format!("forwarded_put/sync_{name}"), &put, encode_forwarded_put, decode_forwarded_put);
    }
    let mut without_key = put_with(PutOptions::default());
    (without_key.request.key, without_key.begins_before) = (None, None);
    for (name, put) in [
        ("default", put_with(PutOptions::default())),
        ("all_options", put_with(all_options())),
        ("if_none_match", put_with(none_match)),
        ("without_key", without_key),
    ] {
        check(frozen, &format!("forwarded_put/{name}"), &put, encode_forwarded_put, decode_forwarded_put);
    }
    for (name, key, object) in
        [("nothing", None, None), ("key", Some("a key".into()), None), ("object", None, Some(an_object()))]
    {
        let reply = PutReply { key, object };
        check(frozen, &format!("put_reply/{name}"), &reply, encode_put_reply, decode_put_reply);
    }
}

fn check_answers(frozen: &mut FrozenMessages) {
    let head = Stored { head: "the head".into(), body: None, digest: DIGEST, seq: 300, stored_secs: None };
    let object = Stored { body: Some("the body".into()), ..head.clone() };
    for (name, version, full) in [
        ("nothing", None, false),
        ("nothing_of_full", None, true),
        ("head", Some(head.clone()), false),
        ("object", Some(object), true),
    ] {
        let reply = ReadReply { version, full, outdated: None, left_to_exchanges: false, counter: COUNTER };
        check(frozen, &format!("read_reply/{name}"), &reply, encode_read_reply, decode_read_reply);
    }
    for (name, outcome) in [
        ("stored", StoreOutcome::Stored { digest: DIGEST }),
        ("fenced", StoreOutcome::Fenced),
        ("conflict", StoreOutcome::Conflict),
    ] {
        let reply = StoreReply { outcome, counter: COUNTER };
        check(frozen, &format!("store_reply/{name}"), &reply, encode_store_reply, decode_store_reply);
    }
    for (name, version, outbid) in
        [("promised", None, None), ("promised_with_head", Some(head), None), ("outbid", None, Some(UnixMicros(300)))]
    {
        let reply = PromiseReply { version, full: outbid.is_none(), outdated: None, outbid, counter: COUNTER };
        check(frozen, &format!("promise_reply/{name}"), &reply, encode_promise_reply, decode_promise_reply);
    }
}

/// What version 2 has added.
pub(super) fn check_version_2(frozen: &mut FrozenMessages) {
    let put = put_with(PutOptions { operation: Some(300), ..PutOptions::default() });
    check(frozen, "forwarded_put/operation", &put, encode_forwarded_put, decode_forwarded_put);
    let addition = ReplicaStore {
        partition: 300,
        n: 3,
        ring: NO_RING,
        key: "a key".into(),
        head: "the head".into(),
        body: "what is added".into(),
        stored_secs: None,
        kind: StoreKind { dvv: true, values: 300 },
        mode: StoreMode::Add,
        noted: Some(COUNTER),
        synced: false,
        deadline: None,
    };
    check(frozen, "replica_store/add", &addition, encode_replica_store, decode_replica_store);
    let lacks = StoreReply { outcome: StoreOutcome::Lacks, counter: COUNTER };
    check(frozen, "store_reply/lacks", &lacks, encode_store_reply, decode_store_reply);
    check(frozen, "holdings_question", &(), |()| encode_holdings_question(), decode_holdings_question);
    check(frozen, "holdings", &true, |has_something| encode_holdings(*has_something), decode_holdings);
    let aged = ReplicaStore { stored_secs: Some(1_700_000_000), mode: StoreMode::Merge, ..addition };
    check(frozen, "replica_store/aged", &aged, encode_replica_store, decode_replica_store);
    let stored_secs = Some(1_700_000_000);
    let version =
        Stored { head: "the head".into(), body: Some("the body".into()), digest: DIGEST, seq: 300, stored_secs };
    let reply =
        ReadReply { version: Some(version), full: true, outdated: None, left_to_exchanges: false, counter: COUNTER };
    check(frozen, "read_reply/aged", &reply, encode_read_reply, decode_read_reply);
}

pub(super) fn check_all(frozen: &mut FrozenMessages) {
    check_reads_and_stores(frozen);
    check_puts(frozen);
    check_answers(frozen);
}
