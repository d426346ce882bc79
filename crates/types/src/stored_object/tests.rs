use super::*;
use crate::clock::Dot;
use crate::testing::{any_dot, any_object};
use proptest::prelude::*;

fn encoded(object: &Object) -> (Bytes, Bytes) {
    let mut head = Vec::new();
    encode_head(object, &mut head);
    let body: Vec<u8> = object.siblings.iter().flat_map(|s| s.value.to_vec()).collect();
    (Bytes::from(head), Bytes::from(body))
}

fn without_values(mut object: Object) -> Object {
    object.siblings.iter_mut().for_each(|s| s.value = Bytes::new());
    object
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn objects_round_trip(object in any_object()) {
        let (head, body) = encoded(&object);
        prop_assert_eq!(decode(&head, Some(&body)), Ok(object.clone()));
        prop_assert_eq!(decode(&head, None), Ok(without_values(object)));
    }

    #[test]
    fn a_single_sibling_is_what_decoding_finds(object in any_object(), plain in any::<bool>()) {
        let mut object = object;
        if plain {
            object.siblings.truncate(1);
            for s in &mut object.siblings {
                let SiblingMeta { content_type, vtag, last_modified, deleted, dot, .. } = std::mem::take(&mut s.meta);
                s.meta = SiblingMeta { content_type, vtag, last_modified, deleted, dot, ..SiblingMeta::default() };
            }
        }
        let (head, body) = encoded(&object);
        let Some(single) = SingleSibling::read(&head, &body).unwrap() else {
            prop_assert!(!plain || object.siblings.is_empty());
            return Ok(());
        };
        let [sibling] = &object.siblings[..] else { panic!("{} siblings", object.siblings.len()) };
        let meta = &sibling.meta;
        prop_assert_eq!(single.clock_bytes(), encode_clock(&object.clock));
        prop_assert_eq!(single.value(), &sibling.value);
        prop_assert_eq!(single.content_type(), meta.served_content_type().map(|t| &t[..]));
        prop_assert_eq!(single.vtag(), meta.vtag.as_deref());
        prop_assert_eq!(single.last_modified(), meta.last_modified);
        prop_assert_eq!(single.is_deleted(), object.is_deleted());
        prop_assert_eq!(single.decode(), Ok(object.clone()));
    }

    #[test]
    fn a_single_sibling_is_read_only_where_decoding_works(object in any_object(), flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4)) {
        let (head, body) = encoded(&object);
        let mut bytes = head.to_vec();
        for flip in flips {
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let head = Bytes::from(bytes);
        match (SingleSibling::read(&head, &body), decode(&head, Some(&body))) {
            (Ok(Some(single)), decoded) => prop_assert_eq!(single.decode(), decoded),
            (Ok(None), _) => {}
            (Err(why), decoded) => prop_assert_eq!(decoded, Err(why)),
        }
    }

    #[test]
    fn shortened_and_lengthened_parts_are_refused(object in any_object(), at in any::<prop::sample::Index>()) {
        let (head, body) = encoded(&object);
        prop_assert!(decode(&head.slice(..at.index(head.len())), None).is_err());
        prop_assert!(decode(&Bytes::from([&head[..], b"\0"].concat()), None).is_err());
        prop_assert!(decode(&head, Some(&Bytes::from([&body[..], b"\0"].concat()))).is_err());
        if !body.is_empty() {
            prop_assert!(decode(&head, Some(&body.slice(..at.index(body.len())))).is_err());
        }
    }

    #[test]
    fn flipped_bits_are_survived(object in any_object(), flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4)) {
        let (head, body) = encoded(&object);
        let mut bytes = head.to_vec();
        for flip in flips {
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if let Ok(read) = decode(&Bytes::from(bytes), Some(&body)) {
            let (head, body) = encoded(&read);
            prop_assert_eq!(decode(&head, Some(&body)), Ok(read));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(start in 0..3usize, rest in prop::collection::vec(any::<u8>(), 0..120)) {
        let bytes = Bytes::from([[&b""[..], b"\x4f\x01", b"\x4f\x01\0\x02"][start], &rest[..]].concat());
        let _ = decode(&bytes, None);
        let _ = SingleSibling::read(&bytes, &bytes);
        let _ = decode(&bytes, Some(&bytes));
        let _ = decode_clock(&bytes);
    }

    #[test]
    fn clocks_survive_a_client(dots in prop::collection::vec(any_dot(), 0..8)) {
        let clock = VectorClock::from_entries(dots);
        let bytes = encode_clock(&clock);
        for at in 1..bytes.len() {
            prop_assert!(decode_clock(&bytes[..at]).is_err());
        }
        prop_assert_eq!(decode_clock(&bytes), Ok(clock));
    }
}

/// The bytes of version 1 as they are on disks. A change of the written format must add a version,
/// and these bytes must stay readable.
const VERSION_1_HEAD: &[u8] = b"\x4f\x01\x01\x03abc\x05\x80\x80\xd2\xcb\xe7\x01\x02\
    \x05\x1e\x03abc\x05\x80\x80\xd2\xcb\xe7\x01\x03tag\xc0\x84\x3d\x0atext/plain\
    \x00\x21\x01\x05utf-8\x02\x04gzip\x03\x01b\x01k\x01t\x04\x01n\x01v\x05\x05f_bin\x01x\x06\x05f_int\x01\xff\x07\x01\x02\x08\x02\x01e\x02\x01f\x00";

fn version_1_object() -> Object {
    let text = Bytes::from_static;
    let dot = Dot { actor: Actor::new(b"abc"), counter: 5, stamp_secs: 62_167_220_224 };
    let plain = SiblingMeta {
        dot: Some(dot.clone()),
        vtag: Some(text(b"tag")),
        last_modified: Some(UnixMicros(1_000_000)),
        content_type: Some(text(b"text/plain")),
        ..SiblingMeta::default()
    };
    let rare = SiblingMeta {
        deleted: true,
        charset: Some(text(b"utf-8")),
        content_encoding: Some(text(b"gzip")),
        links: vec![Link { bucket: text(b"b"), key: text(b"k"), tag: text(b"t") }],
        user_meta: vec![(text(b"n"), text(b"v"))],
        indexes: vec![
            IndexEntry { field: text(b"f_bin"), term: IndexTerm::Bin(text(b"x")) },
            IndexEntry { field: text(b"f_int"), term: IndexTerm::Int((-1).into()) },
        ],
        val_encoding: 2,
        extra: vec![(text(b"\x01e"), text(b"\x01f"))],
        ..SiblingMeta::default()
    };
    Object {
        clock: VectorClock::from_entries([dot]),
        siblings: vec![Sibling { value: text(b"hello"), meta: plain }, Sibling { value: Bytes::new(), meta: rare }],
    }
}

/// The fixtures store their siblings in the order of writing, with the empty value last; a reader
/// returns the empty value first.
fn as_read(mut object: Object) -> Object {
    object.siblings.reverse();
    object
}

#[test]
fn version_1_stays_readable() {
    let head = Bytes::from_static(VERSION_1_HEAD);
    assert_eq!(decode(&head, Some(&Bytes::from_static(b"hello"))), Ok(as_read(version_1_object())));
    assert_eq!(decode(&head, None), Ok(without_values(version_1_object())));
    assert_eq!(encoded(&version_1_object()).0, head);
}

/// Version 2: the same object with a time of expiry.
const VERSION_2_HEAD: &[u8] = b"\x4f\x02\x01\x03abc\x05\x80\x80\xd2\xcb\xe7\x01\x02\
    \x05\x20\x09\x04\x6b\x49\xd2\x00\x00\x00\x00";

fn version_2_object() -> Object {
    let meta = SiblingMeta { expires_secs: Some(1_800_000_000), ..SiblingMeta::default() };
    let siblings = vec![Sibling { value: Bytes::from_static(b"hello"), meta }, Sibling::new(Bytes::new())];
    Object { clock: version_1_object().clock, siblings }
}

#[test]
fn version_2_stays_readable() {
    let head = Bytes::from_static(VERSION_2_HEAD);
    let body = Bytes::from_static(b"hello");
    assert_eq!(decode(&head, Some(&body)), Ok(as_read(version_2_object())));
    assert_eq!(encoded(&version_2_object()).0, head);
    assert_eq!(SingleSibling::read(&head, &body).map(|single| single.is_some()), Ok(false));
    assert_eq!(decode_clock(&encode_clock(&version_2_object().clock)), Ok(version_2_object().clock));
    let refused = decode_clock(b"\x4f\x02\x00");
    assert_eq!(refused, Err(Error::BadClock("written by a newer version".into())), "clocks have no version 2");
}

#[test]
fn fields_are_slices_of_what_was_read() {
    let (head, body) = encoded(&version_1_object());
    let object = decode(&head, Some(&body)).unwrap();
    let [_, plain] = object.siblings.as_slice() else { panic!("two siblings") };
    assert!(body.as_ptr_range().contains(&plain.value.as_ptr()));
    assert!(head.as_ptr_range().contains(&plain.meta.content_type.as_ref().unwrap().as_ptr()));
}

#[test]
fn what_this_version_does_not_know_is_refused() {
    let decode = |bytes: &'static [u8]| decode(&Bytes::from_static(bytes), None);
    assert_eq!(decode(b"\x4e\x01\0\0"), Err(Corrupt("wrong first byte")));
    assert_eq!(decode(b"\x4f\x03\0\0"), Err(Corrupt("written by a newer version")));
    assert_eq!(decode(b"\x4f\x01\0\x01\0\x40"), Err(Corrupt("unknown flag")));
    assert_eq!(decode(b"\x4f\x01\0\x01\0\x20\x0d\0"), Err(Corrupt("unknown part")));
    assert_eq!(decode(b"\x4f\x01\0\x01\0\x20\x0a\0"), Err(Corrupt("kind of a value")));
    assert_eq!(decode(b"\x4f\x02\0\x01\0\x20\x09\x03abc\0"), Err(Corrupt("time of expiry")));
}

/// A value of a kind that has grown: the head tells the length of a value that is not beside it.
const GROWN_HEAD: &[u8] = b"\x4f\x01\x01\x03abc\x05\x80\x80\xd2\xcb\xe7\x01\x01\
    \xac\x02\x20\x0a\x02\x00\x07\x0b\x05\x01\x01a\x02\x00\x0c\x03sum\x00";

#[test]
fn heads_of_grown_values_stay_readable() {
    let events = VectorClock::from_entries([Dot { actor: Actor::new(b"a"), counter: 2, stamp_secs: 0 }]);
    let state = KindState { events, summary: Bytes::from_static(b"sum") };
    let meta = SiblingMeta { kind: 7, of_kind: Some(Box::new(state)), ..SiblingMeta::default() };
    let object = Object { clock: version_1_object().clock, siblings: vec![Sibling { value: Bytes::new(), meta }] };
    let mut head = Vec::new();
    encode_head_of_length(&object, 300, &mut head);
    assert_eq!(head, GROWN_HEAD);
    let head = Bytes::from(head);
    assert_eq!(single_value_bytes(&head), Ok(Some(300)));
    assert_eq!(decode(&head, None), Ok(object.clone()));
    assert!(decode(&head, Some(&Bytes::from_static(b"short"))).is_err());
    let whole = decode(&head, Some(&Bytes::from(vec![1; 300]))).unwrap();
    assert_eq!(encoded(&whole).0, GROWN_HEAD);
    assert_eq!(single_value_bytes(&Bytes::from_static(VERSION_1_HEAD)), Ok(None), "it has two siblings");
}

#[test]
fn counts_do_not_allocate() {
    let decode = |bytes: &'static [u8]| decode(&Bytes::from_static(bytes), None);
    assert_eq!(decode(b"\x4f\x01\xff\xff\xff\xff\x0f"), Err(Corrupt("more clock entries than bytes")));
    assert_eq!(decode(b"\x4f\x01\0\xff\xff\xff\xff\x0f"), Err(Corrupt("more siblings than bytes")));
    assert_eq!(decode(b"\x4f\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), Err(Corrupt("number too long")));
}

#[test]
fn clocks_that_could_not_be_ours_are_refused() {
    let refused = |bytes: &[u8]| matches!(decode_clock(bytes), Err(Error::BadClock(_)));
    assert_eq!(decode_clock(b""), Ok(VectorClock::new()));
    assert!(refused(b"\x4f\x01\x01\x01a\0\0"), "a counter of 0");
    assert!(refused(b"\x4f\x01\x01\x01a\x81\x80\x80\x80\x80\x80\x80\x80\x40\0"), "a counter of 2^62 + 1");
    assert!(refused(b"\x4f\x01\0\0"), "a byte behind the end");
    let long = (0..4097u32).map(|n| Dot { actor: Actor::new(&n.to_be_bytes()), counter: 1, stamp_secs: 1 });
    assert!(refused(&encode_clock(&VectorClock::from_entries(long))));
}

#[test]
fn our_clocks_cannot_be_taken_for_riaks() {
    let bytes = encode_clock(&version_1_object().clock);
    assert_ne!(bytes[0], crate::etf::MAGIC);
    assert!(riak_object::decode_client_clock(&bytes).is_err(), "no DEFLATE stream starts like this");
}
