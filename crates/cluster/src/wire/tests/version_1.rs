//! The bytes of version 1. They were written by hand from the layouts, and they never change: nodes
//! of this version send them.

use super::*;

const READ: &str = "01 01 ac02 03 03 6b6579 00";
const STORE: &str = "01 03 05 03 03 6b6579 01 03 07ac02 03 01 09 00 04 68656164 626f6479";
const REPAIR: &str = "01 04 05 03 03 6b6579 00 04 68656164 626f6479";
const NOT_FOUND: &str = "01 00 07 ac02 00";
const NOT_FOUND_FULL: &str = "01 01 07 ac02 00";
const FOUND_HEAD: &str = "01 02 07 ac02 00 0807060504030201 ac02 68656164";
const FOUND_OBJECT: &str = "01 05 07 ac02 00 0807060504030201 ac02 04 68656164 626f6479";
const STORED: &str = "01 00 07 ac02 00 0807060504030201";
const FENCED: &str = "01 01 07 ac02 00";
const CONFLICT: &str = "01 02 07 ac02 00";
const CONDITIONAL: &str = "01 00 05 03 03 6b6579 02 03 4f0100 04 03 ac02 09 00 04 68656164 626f6479";
const PROMISE: &str = "01 ac02 03 ac02 09 03 6b6579 00";
const PROMISED: &str = "01 01 07 ac02 00";
const OUTBID: &str = "01 02 07 ac02 01 02 ac02 00 0807060504030201 ac02 68656164";
const PUT: &str = "01 0807060504030201 01 03 c0843d 00 1500 07 64656661756c74 01 62 01 6b \
    01 01 02  02 05 fdffffff0f  06 01 03  07 03 c0843d  08 00  00 \
    06 4f0100010100 76";
const PUT_REPLY: &str = "01 03 01 6b 00 06 4f0100010100 76";
const TIMEOUT: &str = "01 01 00";
const QUORUM_UNSATISFIED: &str = "01 09 01 77 03 02 00";
const DISK_FULL: &str = "01 1a 03 04 66756c6c 00";

fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// The message encodes to exactly these bytes, and the bytes decode to the message.
fn check<T: std::fmt::Debug>(
    text: &str,
    message: &T,
    encode: fn(&T) -> Body,
    decode: fn(&Bytes) -> Result<T, reader::Malformed>,
) {
    let bytes = hex(text);
    assert_eq!(bytes_of(&encode(message)), bytes, "{message:?}");
    assert_eq!(format!("{:?}", decode(&bytes).unwrap()), format!("{message:?}"));
}

#[test]
fn questions_have_the_bytes_of_version_1() {
    let read = ReplicaRead { partition: 300, n: 3, ring: NO_RING, key: "key".into(), ask: Ask::Object, deadline: None };
    check(READ, &read, encode_replica_read, decode_replica_read);
    let store = ReplicaStore {
        partition: 5,
        n: 3,
        ring: NO_RING,
        key: "key".into(),
        head: "head".into(),
        body: "body".into(),
        stored_secs: None,
        kind: StoreKind { dvv: true, values: 9 },
        mode: StoreMode::Merge,
        noted: Some(NodeCounter { boot: 7, counter: 300 }),
        synced: true,
        deadline: None,
    };
    check(STORE, &store, encode_replica_store, decode_replica_store);
    let kind = StoreKind { dvv: false, values: 0 };
    let repair = ReplicaStore { kind, mode: StoreMode::ReplaceUnreadable, noted: None, synced: false, ..store };
    check(REPAIR, &repair, encode_replica_store, decode_replica_store);
    let ballot = Ballot { stamp: UnixMicros(300), number: 9 };
    let conditional = ReplicaStore { mode: StoreMode::IfExpected { expected: VectorClock::new(), ballot }, ..repair };
    check(CONDITIONAL, &conditional, encode_replica_store, decode_replica_store);
    let key = "key".into();
    let promise = PromiseRequest { partition: 300, n: 3, ring: NO_RING, key, ballot, deadline: None };
    check(PROMISE, &promise, encode_promise_request, decode_promise_request);
    let options = PutOptions {
        w: Some(Quorum::Count(2)),
        dw: Some(Quorum::Majority),
        sync_on_write: Some(SyncOnWrite::All),
        timeout: Some(Duration::from_secs(1)),
        condition: PutCondition::IfNoneMatch,
        return_body: true,
        ..PutOptions::default()
    };
    let object = Object::new(Sibling { value: "v".into(), meta: SiblingMeta::default() });
    let request = PutRequest { bucket: Bucket::untyped("b"), key: Some("k".into()), object, options };
    let begins_before = Some(Duration::from_secs(1));
    let put = ForwardedMessage { number: 0x0102_0304_0506_0708, begins_before, request };
    check(PUT, &put, encode_forwarded_put, decode_forwarded_put);
}

#[test]
fn answers_have_the_bytes_of_version_1() {
    let digest = 0x0102_0304_0506_0708;
    let counter = NodeCounter { boot: 7, counter: 300 };
    let absent = ReadReply { version: None, full: false, outdated: None, left_to_exchanges: false, counter };
    check(NOT_FOUND, &absent, encode_read_reply, decode_read_reply);
    check(NOT_FOUND_FULL, &ReadReply { full: true, ..absent }, encode_read_reply, decode_read_reply);
    let head = Stored { head: "head".into(), body: None, digest, seq: 300, stored_secs: None };
    let object = Stored { body: Some("body".into()), ..head.clone() };
    let promised = PromiseReply { version: None, full: true, outdated: None, outbid: None, counter };
    check(PROMISED, &promised, encode_promise_reply, decode_promise_reply);
    let (version, outbid) = (Some(head.clone()), Some(UnixMicros(300)));
    let outbid = PromiseReply { version, full: false, outdated: None, outbid, counter };
    check(OUTBID, &outbid, encode_promise_reply, decode_promise_reply);
    let found =
        |version, full| ReadReply { version: Some(version), full, outdated: None, left_to_exchanges: false, counter };
    check(FOUND_HEAD, &found(head, false), encode_read_reply, decode_read_reply);
    check(FOUND_OBJECT, &found(object, true), encode_read_reply, decode_read_reply);
    for (bytes, outcome) in
        [(STORED, StoreOutcome::Stored { digest }), (FENCED, StoreOutcome::Fenced), (CONFLICT, StoreOutcome::Conflict)]
    {
        check(bytes, &StoreReply { outcome, counter }, encode_store_reply, decode_store_reply);
    }
    let object = Some(Object::new(Sibling { value: "v".into(), meta: SiblingMeta::default() }));
    check(PUT_REPLY, &PutReply { key: Some("k".into()), object }, encode_put_reply, decode_put_reply);
    check(TIMEOUT, &Error::Timeout, encode_error, decode_error);
    let unsatisfied = Error::QuorumUnsatisfied { option: "w", need: 3, got: 2 };
    check(QUORUM_UNSATISFIED, &unsatisfied, encode_error, decode_error);
    let full = Error::from(StoreFailure::new(StoreFailureKind::DiskFull, "full"));
    check(DISK_FULL, &full, encode_error, decode_error);
}
