//! Messages arrive as they were sent, and hostile bytes do no harm.

mod coverage;
mod frozen;
mod jobs;
mod outdated;
mod version_1;

use super::*;
use crate::fuzzing;
use bytes::Bytes;
use ombak_kv::coordination::get::Ask;
use ombak_kv::replica::{
    NodeCounter, PromiseReply, PromiseRequest, ReadReply, ReplicaRead, ReplicaStore, StoreKind, StoreMode,
    StoreOutcome, StoreReply,
};
use ombak_kv::{Ballot, PutCondition, PutOptions, PutReply, PutRequest};
use ombak_peer::mux::Body;
use ombak_ring::RingVersion;
use ombak_storage::Stored;
use ombak_types::error::PrecommitReason;
use ombak_types::props::SyncOnWrite;
use ombak_types::time::UnixMicros;
use ombak_types::{
    Actor, Bucket, Error, Object, Quorum, Sibling, SiblingMeta, StoreFailure, StoreFailureKind, VectorClock,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::time::Duration;

fn bytes_of(body: &Body) -> Bytes {
    body.parts().concat().into()
}

/// Bytes of a length below and above the limits up to which parts are copied.
fn some_bytes() -> impl Strategy<Value = Bytes> {
    let short = prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    let long = (any::<u8>(), 500usize..3000).prop_map(|(byte, length)| Bytes::from(vec![byte; length]));
    prop_oneof![4 => short, 1 => long]
}

fn clock() -> impl Strategy<Value = VectorClock> {
    prop::collection::vec((0u8..4, 1u8..4), 0..4).prop_map(|events| {
        let mut clock = VectorClock::new();
        for (actor, times) in events {
            (0..times).for_each(|at| drop(clock.increment(&Actor::new(&[actor; 9]), UnixMicros(u64::from(at)))));
        }
        clock
    })
}

prop_compose! {
    fn sibling()(
        value in some_bytes(),
        content_type in prop::option::of(some_bytes()),
        last_modified in prop::option::of((0u64..1 << 50).prop_map(UnixMicros)),
        vtag in prop::option::of("[a-zA-Z0-9]{1,22}".prop_map(Bytes::from)),
        user_meta in prop::collection::vec((some_bytes(), some_bytes()), 0..2),
        deleted in any::<bool>(),
        expires_secs in prop::option::of(any::<u32>()),
    ) -> Sibling {
        let meta = SiblingMeta {
            content_type, last_modified, vtag, user_meta, deleted, expires_secs, ..SiblingMeta::default()
        };
        Sibling { value, meta }
    }
}

/// An object as the engine holds it: its siblings are in order. Sometimes without values.
fn object() -> impl Strategy<Value = Object> {
    (clock(), prop::collection::vec(sibling(), 1..3), any::<bool>()).prop_map(|(clock, siblings, is_head)| {
        let mut object = Object { clock: VectorClock::new(), siblings: Vec::new() };
        object.merge(Object { clock, siblings });
        if is_head {
            object.siblings.iter_mut().for_each(|sibling| sibling.value.clear());
        }
        object
    })
}

fn quorum() -> impl Strategy<Value = Option<Quorum>> {
    let words = select(vec![Quorum::One, Quorum::Majority, Quorum::All, Quorum::Default]);
    prop::option::of(prop_oneof![words, (0u32..1000).prop_map(Quorum::Count)])
}

fn condition() -> impl Strategy<Value = PutCondition> {
    prop_oneof![
        Just(PutCondition::None),
        Just(PutCondition::IfNoneMatch),
        clock().prop_map(PutCondition::IfNotModified),
    ]
}

prop_compose! {
    fn options()(
        (w, dw, pw, node_confirms) in (quorum(), quorum(), quorum(), quorum()),
        n_val in prop::option::of(any::<u32>()),
        sync_on_write in prop::option::of(select(vec![SyncOnWrite::Backend, SyncOnWrite::One, SyncOnWrite::All])),
        timeout in prop::option::of((0u64..1 << 60).prop_map(Duration::from_micros)),
        condition in condition(),
        (sloppy_quorum, asis, return_body, return_head) in any::<(bool, bool, bool, bool)>(),
        operation in prop::option::of(any::<u16>()),
    ) -> PutOptions {
        PutOptions {
            w, dw, pw, node_confirms, n_val, sloppy_quorum, sync_on_write, timeout, asis, condition, return_body,
            return_head, operation,
        }
    }
}

prop_compose! {
    fn put_request()(
        bucket_type in some_bytes(),
        name in some_bytes(),
        key in prop::option::of(some_bytes()),
        object in object(),
        options in options(),
    ) -> PutRequest {
        PutRequest { bucket: Bucket { bucket_type, name }, key, object, options }
    }
}

prop_compose! {
    fn read()(partition in any::<u32>(), n in any::<u32>(), key in some_bytes(), ask in 0usize..3) -> ReplicaRead {
        let ask = [Ask::Head, Ask::Object, Ask::Exchange][ask];
        ReplicaRead { partition, n, ring: NO_RING, key, ask, deadline: None }
    }
}

prop_compose! {
    fn store()(
        (partition, n) in any::<(u32, u32)>(),
        (key, head, body) in (some_bytes(), some_bytes(), some_bytes()),
        (dvv, values, synced, stored_secs) in any::<(bool, u16, bool, Option<u32>)>(),
        mode in mode(),
        noted in prop::option::of(counter()),
    ) -> ReplicaStore {
        let kind = StoreKind { dvv, values };
        let (ring, deadline) = (NO_RING, None);
        ReplicaStore { partition, n, ring, key, head, body, stored_secs, kind, mode, noted, synced, deadline }
    }
}

fn mode() -> impl Strategy<Value = StoreMode> {
    prop_oneof![
        Just(StoreMode::Merge),
        Just(StoreMode::ReplaceUnreadable),
        Just(StoreMode::Add),
        (clock(), ballot()).prop_map(|(expected, ballot)| StoreMode::IfExpected { expected, ballot }),
    ]
}

fn ballot() -> impl Strategy<Value = Ballot> {
    any::<(u64, u64)>().prop_map(|(stamp, number)| Ballot { stamp: UnixMicros(stamp), number })
}

prop_compose! {
    fn promise_request()((partition, n) in any::<(u32, u32)>(), key in some_bytes(), ballot in ballot()) -> PromiseRequest {
        PromiseRequest { partition, n, ring: NO_RING, key, ballot, deadline: None }
    }
}

prop_compose! {
    fn promise_reply()(
        found in found(),
        outbid in prop::option::of(any::<u64>().prop_map(UnixMicros)),
    ) -> PromiseReply {
        let ReadReply { version, full, outdated, counter, .. } = found;
        let version = version.map(|stored| Stored { body: None, stored_secs: None, ..stored });
        PromiseReply { version, full, outdated, outbid, counter }
    }
}

fn counter() -> impl Strategy<Value = NodeCounter> {
    any::<(u64, u64)>().prop_map(|(boot, counter)| NodeCounter { boot, counter })
}

fn placement_version() -> impl Strategy<Value = RingVersion> {
    any::<(u64, u64)>().prop_map(|(lineage, number)| RingVersion { lineage, number })
}

fn store_reply() -> impl Strategy<Value = StoreReply> {
    let outcome = prop_oneof![
        any::<u64>().prop_map(|digest| StoreOutcome::Stored { digest }),
        Just(StoreOutcome::Fenced),
        Just(StoreOutcome::Lacks),
        Just(StoreOutcome::Conflict),
        (placement_version(), any::<Option<u64>>())
            .prop_map(|(known, digest)| StoreOutcome::Outdated { known, digest }),
    ];
    (outcome, counter()).prop_map(|(outcome, counter)| StoreReply { outcome, counter })
}

prop_compose! {
    fn forwarded()(
        number in any::<u64>(),
        begins_before in prop::option::of((0u64..1 << 60).prop_map(Duration::from_micros)),
        request in put_request(),
    ) -> ForwardedMessage {
        ForwardedMessage { number, begins_before, request }
    }
}

fn found() -> impl Strategy<Value = ReadReply> {
    let version = (some_bytes(), prop::option::of(some_bytes()), any::<(u64, u64, Option<u32>)>()).prop_map(
        |(head, body, (digest, seq, secs))| {
            // The time travels with the values.
            let stored_secs = secs.filter(|_| body.is_some());
            Stored { head, body, digest, seq, stored_secs }
        },
    );
    let outdated = prop::option::of(placement_version());
    (prop::option::of(version), any::<(bool, bool)>(), outdated, counter()).prop_map(
        |(version, (full, left), outdated, counter)| {
            let left_to_exchanges = left && version.is_some();
            ReadReply { version, full, outdated, left_to_exchanges, counter }
        },
    )
}

/// A node of an earlier version skips the time at which a version was stored.
#[test]
fn the_time_of_storing_may_be_skipped() {
    const { assert!(fields::OPTIONAL_FROM <= 128) };
    let (key, head, body) = ("key".into(), "head".into(), "body".into());
    let (kind, mode) = (StoreKind::default(), StoreMode::Merge);
    let store = ReplicaStore {
        partition: 0,
        n: 3,
        ring: NO_RING,
        key,
        head,
        body,
        stored_secs: Some(300),
        kind,
        mode,
        noted: None,
        synced: false,
        deadline: None,
    };
    let bytes = bytes_of(&encode_replica_store(&store));
    let field = [128, 2, 0xac, 2];
    let at = bytes.windows(4).position(|part| part == field).expect("the field is there, as an optional one");
    let without = [&bytes[..at], &bytes[at + 4..]].concat();
    let aged_anew = decode_replica_store(&without.into()).unwrap();
    assert_eq!((aged_anew.stored_secs, aged_anew.body), (None, store.body));
}

fn failure_kind() -> impl Strategy<Value = StoreFailureKind> {
    select(vec![
        StoreFailureKind::Busy,
        StoreFailureKind::ClosedToWrites,
        StoreFailureKind::DiskFull,
        StoreFailureKind::Poisoned,
        StoreFailureKind::Unreadable,
        StoreFailureKind::TooLarge,
        StoreFailureKind::SnapshotTimeout,
        StoreFailureKind::NoBackend,
        StoreFailureKind::Closed,
        StoreFailureKind::Unreachable,
        StoreFailureKind::Io,
        StoreFailureKind::Internal,
    ])
}

fn error() -> impl Strategy<Value = Error> {
    let text = || "[a-zé\"]{0,30}";
    let option = || select(vec!["r", "pr", "w", "dw", "pw", "rw", "node_confirms"]);
    let plain = select(vec![
        Error::Timeout,
        Error::Overload,
        Error::AllNodesDown,
        Error::NotFound,
        Error::MatchFound,
        Error::Modified,
        Error::PrecommitFail(None),
        Error::KeyTooLarge,
        Error::Stopping,
        Error::InsufficientVnodesAvailable,
        Error::ZeroLength("Type"),
        Error::ZeroLength("Bucket"),
        Error::ZeroLength("Key"),
        Error::JobDisabled("{riak_kv,list_keys}"),
        Error::JobDisabled("{yokozuna,query}"),
    ]);
    prop_oneof![
        plain,
        any::<(u32, u32)>().prop_map(|(have, need)| Error::InsufficientVnodes { have, need }),
        any::<(u32, u32)>().prop_map(|(have, need)| Error::InsufficientNodes { have, need }),
        any::<(u32, u32)>().prop_map(|(need, got)| Error::NodeConfirmsUnsatisfied { need, got }),
        any::<u32>().prop_map(Error::NValViolation),
        (option(), text()).prop_map(|(option, value)| Error::QuorumViolation { option, value }),
        (option(), any::<(u32, u32)>()).prop_map(|(option, (need, got))| Error::QuorumUnsatisfied {
            option,
            need,
            got
        }),
        (text(), text()).prop_map(|(field, value)| {
            Error::PrecommitFail(Some(PrecommitReason::FieldParsingFailed { field, value }))
        }),
        text().prop_map(|field| Error::PrecommitFail(Some(PrecommitReason::UnknownFieldType { field }))),
        text().prop_map(|hook| Error::PrecommitFail(Some(PrecommitReason::HookMissing(hook)))),
        text().prop_map(|said| Error::PrecommitFail(Some(PrecommitReason::HookSaid(said)))),
        text().prop_map(|term| Error::PrecommitFail(Some(PrecommitReason::HookReturned(term)))),
        (some_bytes(), some_bytes()).prop_map(|(bucket_type, name)| Error::NoType(Bucket { bucket_type, name })),
        any::<(u64, u64)>().prop_map(|(bytes, bytes_max)| Error::TooLarge { bytes, bytes_max }),
        any::<u32>().prop_map(Error::TooManySiblings),
        text().prop_map(Error::OperationRefused),
        text().prop_map(Error::BadTtl),
        text().prop_map(Error::BadClock),
        text().prop_map(Error::Unsupported),
        (failure_kind(), text()).prop_map(|(kind, text)| StoreFailure::new(kind, text).into()),
    ]
}

fn equal(a: &ForwardedMessage, b: &ForwardedMessage) -> bool {
    // Requests have no `PartialEq`. Their `Debug` shows every field.
    format!("{a:?}") == format!("{b:?}")
}

proptest! {
    #[test]
    fn questions_arrive_as_they_were_sent(
        read in read(),
        store in store(),
        put in forwarded(),
        promise in promise_request(),
    ) {
        let there = decode_promise_request(&bytes_of(&encode_promise_request(&promise))).unwrap();
        prop_assert_eq!(format!("{there:?}"), format!("{promise:?}"));
        let there = decode_replica_read(&bytes_of(&encode_replica_read(&read))).unwrap();
        prop_assert_eq!(format!("{there:?}"), format!("{read:?}"));
        let there = decode_replica_store(&bytes_of(&encode_replica_store(&store))).unwrap();
        prop_assert_eq!(format!("{there:?}"), format!("{store:?}"));
        let there = decode_forwarded_put(&bytes_of(&encode_forwarded_put(&put))).unwrap();
        prop_assert!(equal(&there, &put), "{:?}\n{:?}", there, put);
    }

    #[test]
    fn answers_arrive_as_they_were_given(
        found in found(),
        promised in promise_reply(),
        stored in store_reply(),
        key in prop::option::of(some_bytes()),
        object in prop::option::of(object()),
    ) {
        prop_assert_eq!(decode_promise_reply(&bytes_of(&encode_promise_reply(&promised))).unwrap(), promised);
        prop_assert_eq!(decode_read_reply(&bytes_of(&encode_read_reply(&found))).unwrap(), found);
        prop_assert_eq!(decode_store_reply(&bytes_of(&encode_store_reply(&stored))).unwrap(), stored);
        let reply = PutReply { key, object };
        prop_assert_eq!(decode_put_reply(&bytes_of(&encode_put_reply(&reply))).unwrap(), reply);
    }

    #[test]
    fn errors_keep_their_kind_and_their_numbers(error in error()) {
        prop_assert_eq!(decode_error(&bytes_of(&encode_error(&error))).unwrap(), error);
    }

    #[test]
    fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::messages(&bytes);
    }

    #[test]
    fn damaged_messages_decode_or_are_refused(
        put in forwarded(), store in store(), found in found(), error in error(),
        which in 0usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let all =
            [encode_forwarded_put(&put), encode_replica_store(&store), encode_read_reply(&found), encode_error(&error)];
        let mut message = bytes_of(&all[which]).to_vec();
        let at = at.index(message.len());
        if cut {
            message.truncate(at);
        } else {
            message[at] = byte;
        }
        fuzzing::messages(&message);
    }
}

fn plain_read() -> ReplicaRead {
    ReplicaRead { partition: 3, n: 3, ring: NO_RING, key: "key".into(), ask: Ask::Object, deadline: None }
}

#[test]
fn a_cut_message_is_refused() {
    let read = plain_read();
    let message = bytes_of(&encode_replica_read(&read));
    for end in 0..message.len() {
        assert!(decode_replica_read(&message.slice(..end)).is_err(), "{end} bytes");
    }
    let longer: Bytes = [&message[..], &[0]].concat().into();
    assert!(decode_replica_read(&longer).is_err());
}

/// The bytes of a read with a field of a later version.
fn with_field(tag: u8) -> Bytes {
    let read = plain_read();
    let mut message = bytes_of(&encode_replica_read(&read)).to_vec();
    assert_eq!(message.pop(), Some(0), "the end of the fields");
    message.extend_from_slice(&[tag, 2, 7, 7, 0]);
    message.into()
}

#[test]
fn an_unknown_field_is_skipped_only_if_it_is_optional() {
    assert!(decode_replica_read(&with_field(200)).is_ok());
    assert!(decode_replica_read(&with_field(255)).is_ok());
    assert_eq!(decode_replica_read(&with_field(1)).unwrap_err(), reader::Malformed("a field is not known"));
    assert!(decode_replica_read(&with_field(fields::OPTIONAL_FROM - 1)).is_err());
}

#[test]
fn a_field_occurs_once_and_in_order() {
    for tags in [[200, 200], [201, 200]] {
        let mut message = bytes_of(&encode_replica_read(&plain_read())).to_vec();
        message.pop();
        message.extend_from_slice(&[tags[0], 0, tags[1], 0, 0]);
        assert_eq!(decode_replica_read(&message.into()).unwrap_err(), reader::Malformed("its fields are not in order"));
    }
}

#[test]
fn another_version_is_refused() {
    let mut message = with_field(255).to_vec();
    message[0] = VERSION + 1;
    assert_eq!(decode_replica_read(&message.into()).unwrap_err(), reader::Malformed("its version is not known"));
}

#[test]
fn a_put_without_its_value_is_refused() {
    let object = Object::new(Sibling { value: "value".into(), meta: SiblingMeta::default() });
    let request = PutRequest { bucket: Bucket::untyped("b"), key: None, object, options: PutOptions::default() };
    let put = ForwardedMessage { number: 7, begins_before: None, request };
    let message = bytes_of(&encode_forwarded_put(&put));
    assert!(decode_forwarded_put(&message.slice(..message.len() - 5)).is_err());
}

#[test]
fn a_long_text_is_cut_at_the_limit() {
    let error = Error::Unsupported("é".repeat(error::TEXT_BYTES_MAX));
    let Error::Unsupported(text) = decode_error(&bytes_of(&encode_error(&error))).unwrap() else { panic!() };
    assert_eq!(text, "é".repeat(error::TEXT_BYTES_MAX / 2));
}

#[test]
fn a_large_value_is_not_copied() {
    let body = Bytes::from(vec![7; 1 << 20]);
    let store = ReplicaStore {
        partition: 0,
        n: 3,
        key: "key".into(),
        head: "head".into(),
        body: body.clone(),
        ring: NO_RING,
        stored_secs: None,
        kind: StoreKind { dvv: true, values: 0 },
        mode: StoreMode::Merge,
        noted: None,
        synced: false,
        deadline: None,
    };
    let message = encode_replica_store(&store);
    assert_eq!(message.parts().last().unwrap().as_ptr(), body.as_ptr());
    let arrived = bytes_of(&message);
    let there = decode_replica_store(&arrived).unwrap();
    assert_eq!(there.body.as_ptr(), arrived[arrived.len() - body.len()..].as_ptr());
}
