use super::*;
use crate::object::{Sibling, VAL_ENCODING_TERM};
use crate::phash2::clock_phash2_u32;
use crate::testing::{any_dot, any_object};
use flate2::Compression;
use flate2::write::{DeflateEncoder, ZlibEncoder};
use proptest::prelude::*;
use std::io::Write as _;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The worked example of docs/riak/backends.md §7.1, with its value filled in.
fn worked_example() -> Vec<u8> {
    let mut out =
        hex("35 01 00000026 836c00000001 6802 6d0000000c 2309fef9bf71c68500000001 6802 6101 6e0500b03475e40e 6a");
    out.extend(hex("00000001 00000006 01 68656c6c6f"));
    let mut meta = hex("00000703 000331f0 0008b326 15");
    meta.extend(b"LOIB06GZjUysvwZmPNf0O");
    meta.extend(hex("00 00000006 01"));
    meta.extend(b"index");
    meta.extend(hex("00000003 00836a 0000000d 01"));
    meta.extend(b"content-type");
    meta.extend(hex("0000001d 00836b0018"));
    meta.extend(b"application/octet-stream");
    out.extend((meta.len() as u32).to_be_bytes());
    out.extend(meta);
    out
}

#[test]
fn the_worked_example_is_read_and_written() {
    let bytes = Bytes::from(worked_example());
    let object = decode(&bytes).unwrap();
    let [entry] = object.clock.entries() else { panic!("{:?}", object.clock) };
    assert_eq!(entry.actor.as_bytes(), hex("2309fef9bf71c68500000001"));
    assert_eq!((entry.counter, entry.stamp_secs), (1, 63_962_428_592));
    let [sibling] = object.siblings.as_slice() else { panic!("one sibling") };
    assert_eq!(sibling.value, "hello");
    let meta = SiblingMeta {
        content_type: Some(Bytes::from_static(b"application/octet-stream")),
        vtag: Some(Bytes::from_static(b"LOIB06GZjUysvwZmPNf0O")),
        last_modified: Some(UnixMicros(1_795_209_392_570_150)),
        ..SiblingMeta::default()
    };
    assert_eq!(sibling.meta, meta);
    assert_eq!(encode(&object), bytes);
}

#[test]
fn values_are_slices_of_what_was_read() {
    let bytes = Bytes::from(worked_example());
    let value = decode(&bytes).unwrap().siblings.remove(0).value;
    assert!(bytes.as_ptr_range().contains(&value.as_ptr()));
}

/// Encodes Riak's version 0 record of an object, with its metadata in a `dict` of two segments.
fn encode_v0(object: &Object) -> Vec<u8> {
    let contents = object.siblings.iter().map(|sibling| {
        let value = match sibling.meta.val_encoding {
            VAL_ENCODING_TERM => etf::decode(&sibling.value).unwrap(),
            _ => Term::Binary(sibling.value.clone()),
        };
        Term::Tuple(vec![Term::atom("r_content"), dict(&sibling.meta), value])
    });
    etf::encode(&Term::Tuple(vec![
        Term::atom("r_object"),
        Term::binary(b"bucket"),
        Term::binary(b"key"),
        Term::List(contents.collect()),
        clock_to_term(&object.clock),
        Term::nil(),
        Term::atom("undefined"),
    ]))
}

/// Creates `[Key | Value]` as Erlang does: a value that is a list continues the list.
fn cons(key: Term, value: Term) -> Term {
    match value {
        Term::List(items) => Term::from_list(std::iter::once(key).chain(items).collect()),
        Term::String(bytes) => {
            Term::from_list(std::iter::once(key).chain(bytes.iter().map(|&b| Term::Int(b.into()))).collect())
        }
        other => Term::ImproperList(vec![key], Box::new(other)),
    }
}

fn dict(meta: &SiblingMeta) -> Term {
    let named = |name: &str, value| Some(cons(Term::binary(name.as_bytes()), value));
    let string = |text: &Bytes| Term::string(text);
    let at = meta.last_modified.map(|at| {
        Term::Tuple([at.secs() / 1_000_000, at.secs() % 1_000_000, at.subsec_us().into()].map(Term::from).to_vec())
    });
    let links = meta.links.iter().map(|l| Term::pair(Term::pair(string(&l.bucket), string(&l.key)), string(&l.tag)));
    let user_meta = meta.user_meta.iter().map(|(name, value)| Term::pair(string(name), string(value)));
    let indexes = meta.indexes.iter().map(|entry| match &entry.term {
        IndexTerm::Bin(term) => Term::pair(string(&entry.field), string(term)),
        IndexTerm::Int(term) => Term::pair(string(&entry.field), Term::from(term.clone())),
    });
    let pairs = [
        meta.content_type.as_ref().map(|t| cons(Term::string(b"content-type"), string(t))),
        meta.charset.as_ref().and_then(|t| named("charset", string(t))),
        meta.content_encoding.as_ref().and_then(|t| named("content-encoding", string(t))),
        meta.vtag.as_ref().and_then(|t| named("X-Riak-VTag", string(t))),
        at.and_then(|at| named("X-Riak-Last-Modified", at)),
        named("Links", Term::List(links.collect())),
        named("X-Riak-Meta", Term::List(user_meta.collect())),
        named("index", Term::List(indexes.collect())),
        meta.deleted.then(|| named("X-Riak-Deleted", Term::string(b"true"))).flatten(),
        meta.dot.as_ref().and_then(|dot| named("dot", dot_to_term(dot))),
        (meta.val_encoding > 1).then(|| named("X-Riak-Val-Encoding", Term::Int(meta.val_encoding.into()))).flatten(),
        meta.expires_secs.and_then(|at| named("X-Ombak-Expires", Term::from(u64::from(at)))),
    ];
    let extra = meta.extra.iter().map(|(name, value)| cons(Term::binary(&name[1..]), Term::binary(&value[1..])));
    let mut buckets: Vec<Term> = pairs.into_iter().flatten().chain(extra).map(|pair| Term::List(vec![pair])).collect();
    let rest = buckets.split_off(buckets.len() / 2);
    let segments = Term::Tuple(vec![Term::Tuple(buckets), Term::Tuple(rest)]);
    let sizes = [2, 16, 16, 8, 80, 48].map(Term::Int);
    let mut record = vec![Term::atom("dict")];
    record.extend(sizes);
    record.extend([Term::Tuple(vec![Term::nil(); 16]), segments]);
    Term::Tuple(record)
}

/// Replaces values that are marked as terms by valid terms.
fn with_valid_terms(mut object: Object) -> Object {
    for sibling in &mut object.siblings {
        if sibling.meta.val_encoding == VAL_ENCODING_TERM {
            sibling.value = Bytes::from(etf::encode(&Term::string(&sibling.value)));
        }
    }
    object
}

/// Riak knows no kinds of values.
fn riak_object() -> impl Strategy<Value = Object> {
    any_object().prop_map(|mut object| {
        object.siblings.iter_mut().for_each(|s| (s.meta.kind, s.meta.of_kind) = (0, None));
        object.order_siblings();
        object
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn version_1_round_trips(object in riak_object()) {
        prop_assert_eq!(decode(&Bytes::from(encode(&object))), Ok(object));
    }

    #[test]
    fn version_0_says_the_same(object in riak_object()) {
        let object = with_valid_terms(object);
        prop_assert_eq!(decode(&Bytes::from(encode_v0(&object))), Ok(object));
    }

    #[test]
    fn shortened_objects_are_refused(object in riak_object(), at in any::<prop::sample::Index>(), old in any::<bool>()) {
        let mut bytes = if old { encode_v0(&with_valid_terms(object)) } else { encode(&object) };
        bytes.truncate(at.index(bytes.len()));
        prop_assert!(decode(&Bytes::from(bytes)).is_err());
    }

    #[test]
    fn bytes_behind_the_end_are_refused(object in riak_object(), old in any::<bool>()) {
        let mut bytes = if old { encode_v0(&with_valid_terms(object)) } else { encode(&object) };
        bytes.push(0);
        prop_assert!(decode(&Bytes::from(bytes)).is_err());
    }

    #[test]
    fn flipped_bits_are_survived(
        object in riak_object(), flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4), old in any::<bool>(),
    ) {
        let mut bytes = if old { encode_v0(&with_valid_terms(object)) } else { encode(&object) };
        for flip in flips {
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if let Ok(object) = decode(&Bytes::from(bytes)) {
            prop_assert_eq!(decode(&Bytes::from(encode(&object))).map(|o| o.siblings.len()), Ok(object.siblings.len()));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(start in 0..4usize, rest in prop::collection::vec(any::<u8>(), 0..120)) {
        let bytes = [[&b""[..], b"\x35\x01", b"\x83h\x07", b"\x35\x01\0\0\0\x02\x83j"][start], &rest[..]].concat();
        let _ = decode_client_clock(&bytes);
        let _ = decode(&Bytes::from(bytes));
    }

    #[test]
    fn clocks_of_riak_nodes_are_read_in_every_form(dots in prop::collection::vec(any_dot(), 0..6)) {
        let clock = VectorClock::from_entries(dots);
        let plain = etf::encode(&clock_to_term(&clock));
        let raw = etf::encode(&Term::pair(Term::atom("encode_raw"), clock_to_term(&clock)));
        for form in [deflated(&plain), raw, plain] {
            prop_assert_eq!(decode_client_clock(&form), Ok(clock.clone()));
        }
    }
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_clock_with_a_known_external_form() {
    let bytes = hex("836c00000002 68026d000000080102030405060708 68026101 6e0500009fbce00e \
         68026d000000080909090909090909 68026103 6e0500079fbce00e 6a");
    let clock = decode_client_clock(&bytes).unwrap();
    assert_eq!(clock.entries().len(), 2);
    assert_eq!(etf::encode(&clock_to_term(&clock)), bytes);
    assert_eq!(clock_phash2_u32(&clock), 2_861_770_191);
}

#[test]
fn clocks_that_no_node_issued_are_refused() {
    let entry = |counter: Term, stamp: Term| {
        etf::encode(&Term::List(vec![Term::pair(Term::binary(b"actor"), Term::pair(counter, stamp))]))
    };
    let long = Term::List(vec![Term::pair(Term::binary(&[0; 256]), Term::pair(Term::Int(1), Term::Int(1)))]);
    let bad = [
        b"zork".to_vec(),
        b"\x83".to_vec(),
        deflated(b"not a term"),
        etf::encode(&Term::atom("clock")),
        etf::encode(&long),
        entry(Term::Int(0), Term::Int(1)),
        entry(Term::from(u64::MAX), Term::Int(1)),
        entry(Term::Int(1), Term::Int(-1)),
        entry(Term::atom("one"), Term::Int(1)),
    ];
    for bytes in bad {
        assert!(matches!(decode_client_clock(&bytes), Err(Error::BadClock(_))), "{bytes:?}");
    }
}

#[test]
fn long_clocks_and_bombs_are_refused() {
    let clock_of = |entries: u32| {
        let dots = (0..entries).map(|n| Dot { actor: Actor::new(&n.to_be_bytes()), counter: 1, stamp_secs: 1 });
        deflated(&etf::encode(&clock_to_term(&VectorClock::from_entries(dots))))
    };
    assert!(decode_client_clock(&clock_of(4096)).is_ok());
    assert_eq!(
        decode_client_clock(&clock_of(4097)),
        Err(Error::BadClock("4097 entries, at most 4096 are taken".into()))
    );
    assert!(decode_client_clock(&deflated(&vec![0; 64 << 20])).is_err());
}

#[test]
fn odd_pairs_are_kept_as_they_came() {
    // A link into a typed bucket has a pair in the place of the bucket.
    let typed = Term::pair(Term::pair(Term::binary(b"type"), Term::binary(b"b")), Term::binary(b"k"));
    let value = Term::List(vec![Term::pair(typed, Term::binary(b"tag"))]);
    let name = Bytes::from_static(b"\x01Links");
    let tagged = Bytes::from([&b"\0"[..], &etf::encode(&value)].concat());
    let mut object = Object::new(Sibling::new("v"));
    object.siblings[0].meta.extra.push((name, tagged));
    let bytes = Bytes::from(encode(&object));
    assert_eq!(decode(&bytes), Ok(object));
}

#[test]
fn heads_and_tombstones() {
    let head = hex("3501 00000002 836a 00000001 00000000 0000000f 00000000 00000000 00000000 01 65 01");
    let object = decode(&Bytes::from(head)).unwrap();
    assert!(object.is_deleted());
    assert_eq!(object.siblings, [Sibling::tombstone()]);
}

#[test]
fn compressed_version_0_records_are_read() {
    let plain = encode_v0(&Object::new(Sibling::new("value")));
    let mut bytes = vec![131, 80];
    bytes.extend((plain.len() as u32 - 1).to_be_bytes());
    let mut encoder = ZlibEncoder::new(bytes, Compression::default());
    encoder.write_all(&plain[1..]).unwrap();
    let object = decode(&Bytes::from(encoder.finish().unwrap())).unwrap();
    assert_eq!(object.siblings, [Sibling::new("value")]);
}

#[test]
fn more_siblings_than_bytes_allocate_nothing() {
    let claim = hex("3501 00000002 836a ffffffff 00000000");
    assert!(decode(&Bytes::from(claim)).is_err());
}
