//! Parts of listings and of index queries.

use super::*;
use crate::coverage::messages::{
    CoverageMessage, decode_coverage_item, decode_coverage_message, decode_coverage_request, encode_coverage_item,
    encode_coverage_request, split_coverage_item,
};
use ombak_kv::coverage::CoveragePiece;
use ombak_kv::replica::{CoverageHome, CoverageItem, CoverageQuestion, CoverageRequest};
use ombak_kv::{IndexMatch, IndexQuery, QueryRange, compile_pattern};
use ombak_types::IndexTerm;
use std::ops::Bound;

fn request(question: CoverageQuestion) -> CoverageRequest {
    let homes = vec![
        CoverageHome { home: 300, classes: [3, 2].into_iter().collect() },
        CoverageHome { home: 1, classes: [3].into_iter().collect() },
    ];
    CoverageRequest { question, homes, ring: NO_RING, begun: UnixMicros(DIGEST), deadline: None }
}

fn bucket() -> Bucket {
    Bucket { bucket_type: "a type".into(), name: "a bucket".into() }
}

fn query(range: QueryRange) -> IndexQuery {
    IndexQuery {
        bucket: bucket(),
        range,
        after: Some((Some(IndexTerm::Bin("a term".into())), "a key".into())),
        results_max: Some(300),
        pattern: compile_pattern("a.*").ok(),
        shows_tombstones: true,
    }
}

fn questions() -> Vec<(&'static str, CoverageQuestion)> {
    let terms = |from: IndexTerm, to: IndexTerm| QueryRange::Terms { field: "a_field".into(), from, to };
    let integers = terms(IndexTerm::Int((-300).into()), IndexTerm::Int(300.into()));
    let keys = |from, to| QueryRange::Keys { from, to };
    let plain =
        |range| IndexQuery { after: None, results_max: None, pattern: None, shows_tombstones: false, ..query(range) };
    let after_a_key =
        IndexQuery { after: Some((None, "a key".into())), ..plain(keys(Bound::Unbounded, Bound::Unbounded)) };
    vec![
        ("keys", CoverageQuestion::keys(bucket())),
        ("buckets", CoverageQuestion::buckets("a type".into())),
        ("terms", CoverageQuestion::index_query(query(terms(IndexTerm::Bin("a".into()), IndexTerm::Bin("z".into()))))),
        ("integers", CoverageQuestion::index_query(plain(integers))),
        (
            "key_range",
            CoverageQuestion::index_query(plain(keys(Bound::Included("a".into()), Bound::Excluded("z".into())))),
        ),
        ("all_keys", CoverageQuestion::index_query(after_a_key)),
    ]
}

fn items() -> Vec<(&'static str, CoverageItem)> {
    let entry = |term| IndexMatch { term, key: "a key".into() };
    vec![
        ("names", CoverageItem::Piece(CoveragePiece::names(300, vec!["a name".into(), "b".into()]))),
        ("done", CoverageItem::HomeDone(300)),
        (
            "entries",
            CoverageItem::Piece(CoveragePiece::index_matches(vec![
                entry(None),
                entry(Some(IndexTerm::Int((-300).into()))),
                entry(Some(IndexTerm::Bin("a term".into()))),
            ])),
        ),
    ]
}

pub(super) fn check_all(frozen: &mut FrozenMessages) {
    for (name, question) in questions() {
        let decode = |message: &Bytes| decode_coverage_request(message, NO_RING);
        check(frozen, &format!("coverage_request/{name}"), &request(question), encode_coverage_request, decode);
    }
    for (name, item) in items() {
        let encode = |item: &CoverageItem| encode_coverage_item(item, 1 << 20).remove(0);
        check(frozen, &format!("coverage_item/{name}"), &item, encode, decode_coverage_item);
    }
    let long = CoverageItem::Piece(CoveragePiece::names(300, vec!["a long name".into()]));
    let long = encode_coverage_item(&long, 1 << 20);
    for (number, part) in split_coverage_item(long[0].clone(), 8).iter().enumerate() {
        let message = decode_coverage_message(&bytes_of(part)).unwrap();
        let CoverageMessage::Part { bytes, is_last } = &message else { panic!("it is whole") };
        let encoded = bytes_of(part).to_vec();
        assert_eq!(encoded[1], if *is_last { 4 } else { 3 });
        assert_eq!(encoded[2..], bytes[..]);
        let decode = |bytes: &[u8]| decode_coverage_message(&Bytes::copy_from_slice(bytes));
        frozen.check(&format!("coverage_message/part_{number}"), &message, |_| encoded, decode);
    }
}
