use super::*;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use std::io::Write as _;

fn any_term() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Term::Int),
        any::<u8>().prop_map(|n| Term::Int(i64::from(n))),
        any::<i32>().prop_map(|n| Term::Int(i64::from(n))),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|b| Term::from(BigInt::from_signed_bytes_le(&b))),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Term::Float),
        prop::collection::vec(any::<char>(), 0..255).prop_map(|c| Term::atom(&c.into_iter().collect::<String>())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|b| Term::binary(&b)),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|b| Term::string(&b)),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..6);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Term::Tuple),
            // An atom prevents a list of small integers from being a string.
            some.clone().prop_map(|mut items| {
                items.push(Term::atom("end"));
                Term::List(items)
            }),
            some.prop_map(|items| Term::ImproperList(items, Box::new(Term::atom("tail")))),
            prop::collection::vec((inner.clone(), inner), 0..4).prop_map(Term::Map),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_encoded_is_decoded(term in any_term()) {
        prop_assert_eq!(decode(&encode(&term)), Ok(term));
    }

    #[test]
    fn compressed_terms_are_the_same_terms(term in any_term()) {
        prop_assert_eq!(decode(&compressed(&term)), Ok(term));
    }

    #[test]
    fn every_shorter_input_is_refused(term in any_term(), at in any::<prop::sample::Index>()) {
        let bytes = encode(&term);
        prop_assert!(decode(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        bytes.insert(0, MAGIC);
        let _ = decode(&bytes);
    }

    #[test]
    fn flipped_bits_are_survived(
        term in any_term(), flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4), pack in any::<bool>(),
    ) {
        let mut bytes = if pack { compressed(&term) } else { encode(&term) };
        for flip in flips {
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if let Ok(term) = decode(&bytes) {
            let _ = term.to_string();
            prop_assert_eq!(decode(&encode(&term)), Ok(term));
        }
    }
}

fn compressed(term: &Term) -> Vec<u8> {
    let plain = encode(term);
    let mut out = vec![MAGIC, 80];
    out.extend_from_slice(&(plain.len() as u32 - 1).to_be_bytes());
    let mut encoder = ZlibEncoder::new(out, Compression::default());
    encoder.write_all(&plain[1..]).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn known_bytes_of_each_kind() {
    let cases: [(&[u8], &str); 17] = [
        (b"\x83a\x05", "5"),
        (b"\x83b\xff\xff\xff\xfb", "-5"),
        (b"\x83n\x05\x00\x00\x00\x00\x00\x01", "4294967296"),
        (b"\x83o\x00\x00\x00\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00\x40", "-1180591620717411303424"),
        (b"\x83F\x3f\xf8\x00\x00\x00\x00\x00\x00", "1.5"),
        (b"\x83c1.50000000000000000000e+00\0\0\0\0\0", "1.5"),
        (b"\x83d\x00\x02ok", "ok"),
        (b"\x83s\x05Hello", "'Hello'"),
        (b"\x83w\x03end", "'end'"),
        (b"\x83v\x00\x03a b", "'a b'"),
        (b"\x83j", "[]"),
        (b"\x83k\x00\x03abc", "\"abc\""),
        (b"\x83k\x00\x03\x01\x02\x03", "[1,2,3]"),
        (b"\x83m\x00\x00\x00\x03a\"b", "<<\"a\\\"b\">>"),
        (b"\x83h\x02m\x00\x00\x00\x02\x00\xffj", "{<<0,255>>,[]}"),
        (b"\x83l\x00\x00\x00\x01w\x01aw\x01b", "[a|b]"),
        (b"\x83t\x00\x00\x00\x01w\x01aa\x01", "#{a => 1}"),
    ];
    for (bytes, text) in cases {
        assert_eq!(decode(bytes).unwrap().to_string(), text);
    }
}

#[test]
fn lists_of_bytes_are_strings_however_they_come() {
    let string = Term::string(b"ab");
    assert_eq!(decode(b"\x83l\x00\x00\x00\x02aaabj"), Ok(string.clone()));
    assert_eq!(decode(b"\x83l\x00\x00\x00\x01aak\x00\x01b"), Ok(string));
    let long = Term::string(&vec![7; 70_000]);
    assert_eq!(long.as_text().map(|b| b.len()), Some(70_000));
    assert_eq!(decode(&encode(&long)), Ok(long));
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let mut bytes = vec![MAGIC];
        bytes.extend(std::iter::repeat_n([104, 1], depth).flatten());
        bytes.push(106);
        bytes
    };
    assert!(decode(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(decode(&nested(DEPTH_MAX + 1)), Err(EtfError::TooDeep));
    assert_eq!(decode(&nested(1_000_000)), Err(EtfError::TooDeep));
    let mut tails = vec![MAGIC];
    tails.extend(std::iter::repeat_n(b"l\x00\x00\x00\x01j", 100_000).flatten());
    assert_eq!(decode(&tails), Err(EtfError::TooDeep));
}

#[test]
fn lengths_do_not_allocate() {
    for tag in [b'i', b'l', b'm', b't', b'o'] {
        let claim = [MAGIC, tag, 0xff, 0xff, 0xff, 0xff, 1, 2];
        let expected = if tag == b'o' { EtfError::BadNumber } else { EtfError::CutShort };
        assert_eq!(decode(&claim), Err(expected), "{tag}");
    }
}

#[test]
fn terms_are_counted() {
    let mut bytes = vec![MAGIC, 108];
    bytes.extend_from_slice(&100u32.to_be_bytes());
    bytes.extend_from_slice(&[106; 101]);
    let limits = |terms_max| Limits { terms_max, ..Limits::default() };
    assert!(decode_with(&bytes, limits(102)).is_ok());
    assert_eq!(decode_with(&bytes, limits(101)), Err(EtfError::TooManyTerms));
    // A string as the tail of a list becomes one term per byte.
    let tail = b"\x83l\0\0\0\x01jk\0\x05abcde";
    assert!(decode_with(tail, limits(8)).is_ok());
    assert_eq!(decode_with(tail, limits(7)), Err(EtfError::TooManyTerms));
}

#[test]
fn bombs_do_not_inflate() {
    let zeros = Term::binary(&vec![0; 10 << 20]);
    let bomb = compressed(&zeros);
    let limits = Limits { inflated_bytes_max: 1 << 20, ..Limits::default() };
    assert_eq!(decode_with(&bomb, limits), Err(EtfError::TooLarge));
    let mut liar = bomb;
    liar[2..6].copy_from_slice(&100u32.to_be_bytes());
    assert_eq!(decode_with(&liar, limits), Err(EtfError::BadCompression));
}

#[test]
fn texts_are_erlangs() {
    assert_eq!(Term::binary("é".as_bytes()).to_string(), "<<\"Ã©\">>");
    assert_eq!(Term::binary(b"").to_string(), "<<>>");
    assert_eq!(BinaryText(br#"a"b\"#).to_string(), r#"<<"a\"b\\">>"#);
    assert_eq!(BinaryText(&[0, 255]).to_string(), "<<0,255>>");
    assert_eq!(CharListText(b"foo").to_string(), "\"foo\"");
    assert_eq!(CharListText(b"a\"b\\").to_string(), "\"a\\\"b\\\\\"");
    assert_eq!(CharListText(b"").to_string(), "\"\"");
    assert_eq!(CharListText(b"a\x01").to_string(), "[97,1]");
    assert_eq!(Term::atom("riak@127").to_string(), "riak@127");
    assert_eq!(Term::atom("riak@127.0.0.1").to_string(), "'riak@127.0.0.1'");
    assert_eq!(Term::atom("it's").to_string(), "'it\\'s'");
    assert_eq!(Term::Float(100.0).to_string(), "100.0");
    assert_eq!(Term::string(b"a\nb").to_string(), "\"a\\nb\"");
}
