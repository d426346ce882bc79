//! Parts of listings and queries.

use super::*;
use crate::coverage::messages::{
    CoverageMessage, decode_coverage_item, decode_coverage_message, decode_coverage_request, encode_coverage_item,
    encode_coverage_request, split_coverage_item,
};
use num_bigint::BigInt;
use ombak_kv::coverage::CoveragePiece;
use ombak_kv::folds::{FoldOf, FoldRange, FoldWants, SegmentFilter};
use ombak_kv::replica::{CoverageHome, CoverageItem, CoverageQuestion, CoverageRequest};
use ombak_kv::{IndexMatch, IndexQuery, QueryRange, compile_pattern};
use ombak_ring::RingVersion;
use ombak_tictac::{ClockHash, TreeSize};
use ombak_types::IndexTerm;
use std::ops::Bound;
use std::sync::Arc;

fn term() -> impl Strategy<Value = IndexTerm> {
    let integer =
        prop_oneof![any::<i128>().prop_map(BigInt::from), (0u32..3000).prop_map(|bits| -(BigInt::from(1) << bits))];
    prop_oneof![integer.prop_map(IndexTerm::Int), some_bytes().prop_map(IndexTerm::Bin)]
}

fn bound() -> impl Strategy<Value = Bound<Bytes>> {
    prop_oneof![Just(Bound::Unbounded), some_bytes().prop_map(Bound::Included), some_bytes().prop_map(Bound::Excluded),]
}

fn bucket() -> impl Strategy<Value = Bucket> {
    (some_bytes(), some_bytes()).prop_map(|(bucket_type, name)| Bucket { bucket_type, name })
}

prop_compose! {
    fn query()(
        bucket in bucket(),
        terms in any::<bool>(),
        (field, from_term, to_term) in (some_bytes(), term(), term()),
        (from, to) in (bound(), bound()),
        after in prop::option::of((prop::option::of(term()), some_bytes())),
        results_max in prop::option::of(any::<u32>()),
        pattern in prop::option::of("[a-z]{0,5}[.*]?"),
        shows_tombstones in any::<bool>(),
    ) -> IndexQuery {
        let range = if terms {
            QueryRange::Terms { field, from: from_term, to: to_term }
        } else {
            QueryRange::Keys { from, to }
        };
        let pattern = pattern.and_then(|pattern| compile_pattern(&pattern).ok());
        let results_max = results_max.map(|max| max as usize);
        IndexQuery { bucket, range, after, results_max, pattern, shows_tombstones }
    }
}

prop_compose! {
    fn fold_range()(
        bucket in bucket(),
        classes in prop::option::of(prop::collection::btree_set(any::<u32>(), 0..5)),
        keys in prop::option::of((some_bytes(), some_bytes())),
        modified in prop::option::of(any::<(u32, u32)>()),
        segments in prop::option::of((0..6usize, prop::collection::btree_set(any::<u32>(), 0..9))),
    ) -> FoldRange {
        let of = classes.map_or(FoldOf::Bucket(bucket), FoldOf::Classes);
        let segments = segments.map(|(size, leaves)| SegmentFilter { size: TreeSize::ALL[size], leaves });
        FoldRange { of, keys, modified, segments }
    }
}

fn fold() -> impl Strategy<Value = CoverageQuestion> {
    let hash =
        prop_oneof![Just(ClockHash::Plain), any::<u64>().prop_map(ClockHash::With), Just(ClockHash::WithoutNumber),];
    let wants = prop_oneof![
        any::<u64>().prop_map(FoldWants::SiblingsAbove),
        any::<u64>().prop_map(FoldWants::BytesAbove),
        (0..6usize, hash).prop_map(|(size, hash)| FoldWants::Tree(TreeSize::ALL[size], hash)),
        Just(FoldWants::Living),
    ];
    (fold_range(), wants).prop_map(|(range, wants)| CoverageQuestion::fold(Arc::new(range), wants))
}

fn question() -> impl Strategy<Value = CoverageQuestion> {
    prop_oneof![
        bucket().prop_map(CoverageQuestion::keys),
        some_bytes().prop_map(CoverageQuestion::buckets),
        query().prop_map(CoverageQuestion::index_query),
        fold(),
        (some_bytes(), some_bytes()).prop_map(|(name, content)| CoverageQuestion::feature(name, content)),
    ]
}

prop_compose! {
    fn request()(
        question in question(),
        homes in prop::collection::vec((0u32..1024, prop::collection::vec(1u32..1024, 0..4)), 0..9),
        begun in any::<u64>(),
    ) -> CoverageRequest {
        let homes = homes.into_iter().map(|(home, classes)| CoverageHome { home, classes: classes.into() }).collect();
        CoverageRequest { question, homes, ring: RingVersion::first(9), begun: UnixMicros(begun), deadline: None }
    }
}

fn names(home: u32, names: Vec<Bytes>) -> CoverageItem {
    CoverageItem::Piece(CoveragePiece::names(home, names))
}

fn entries(entries: Vec<IndexMatch>) -> CoverageItem {
    CoverageItem::Piece(CoveragePiece::index_matches(entries))
}

fn item() -> impl Strategy<Value = CoverageItem> {
    let entry = (prop::option::of(term()), some_bytes()).prop_map(|(term, key)| IndexMatch { term, key });
    prop_oneof![
        (any::<u32>(), prop::collection::vec(some_bytes(), 1..30)).prop_map(|(home, of_home)| names(home, of_home)),
        any::<u32>().prop_map(CoverageItem::HomeDone),
        prop::collection::vec(entry, 1..30).prop_map(entries),
    ]
}

/// The item that some messages have together, and the greatest length of a message in bytes.
fn joined(messages: &[Body]) -> (CoverageItem, usize) {
    let (mut all_names, mut all_entries, mut last) = (Vec::new(), Vec::new(), None);
    for message in messages {
        let again = || decode_coverage_item(&bytes_of(message)).unwrap();
        match (again(), again()) {
            (CoverageItem::Piece(piece), CoverageItem::Piece(same)) => match (piece.into_names(), same) {
                (Some((home, more)), _) => {
                    all_names.extend(more);
                    last = Some(names(home, all_names.clone()));
                }
                (None, same) => {
                    all_entries.extend(same.into_index_matches().unwrap());
                    last = Some(entries(all_entries.clone()));
                }
            },
            (done, _) => last = Some(done),
        }
    }
    (last.unwrap(), messages.iter().map(Body::len).max().unwrap_or_default())
}

proptest! {
    #[test]
    fn requests_arrive_as_they_were_sent(request in request()) {
        let copy = decode_coverage_request(&bytes_of(&encode_coverage_request(&request)), request.ring).unwrap();
        prop_assert_eq!(format!("{copy:?}"), format!("{request:?}"));
    }

    #[test]
    fn items_arrive_whole_in_pieces_of_a_limited_length(item in item(), bytes_max in 0usize..10_000) {
        let (copy, longest) = joined(&encode_coverage_item(&item, bytes_max));
        prop_assert_eq!(format!("{copy:?}"), format!("{item:?}"));
        prop_assert!(longest <= bytes_max.max(6_100) + 20, "{}", longest);
    }

    #[test]
    fn damaged_items_and_requests_are_refused_or_are_others(
        request in request(), item in item(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        for whole in [bytes_of(&encode_coverage_request(&request)), bytes_of(&encode_coverage_item(&item, 1 << 20)[0])] {
            let at = at.index(whole.len());
            prop_assert!(decode_coverage_request(&whole.slice(..at), request.ring).is_err());
            prop_assert!(decode_coverage_item(&whole.slice(..at)).is_err());
            let mut damaged = whole.to_vec();
            damaged[at] = byte;
            fuzzing::messages(&damaged);
        }
    }
}

#[test]
fn coverage_has_the_bytes_of_version_1() {
    let hex = |body: &Body| bytes_of(body).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let question = CoverageQuestion::keys(Bucket::untyped("b"));
    let homes = vec![CoverageHome { home: 300, classes: [3].into_iter().collect() }];
    let request =
        CoverageRequest { question, homes, ring: RingVersion::first(1), begun: UnixMicros(1), deadline: None };
    assert_eq!(
        hex(&encode_coverage_request(&request)),
        "01010000000000000001ac02010300076465666175".to_owned() + "6c74016200"
    );
    let query = IndexQuery {
        bucket: Bucket { bucket_type: "t".into(), name: "b".into() },
        range: QueryRange::Terms {
            field: "f".into(),
            from: IndexTerm::Int((-2).into()),
            to: IndexTerm::Bin("z".into()),
        },
        after: Some((None, "k".into())),
        results_max: Some(5),
        pattern: compile_pattern("a").ok(),
        shows_tombstones: true,
    };
    let request = CoverageRequest { question: CoverageQuestion::index_query(query), homes: Vec::new(), ..request };
    assert_eq!(
        hex(&encode_coverage_request(&request)),
        "0101000000000000000002017401620f00016b050161016600 01fe01017a00".replace(' ', "")
    );
    assert_eq!(hex(&encode_coverage_item(&names(2, vec!["k".into()]), 100)[0]), "01000201016b00");
    assert_eq!(hex(&encode_coverage_item(&CoverageItem::HomeDone(2), 100)[0]), "01010200");
    let found = entries(vec![IndexMatch { term: Some(IndexTerm::Int(7.into())), key: "k".into() }]);
    assert_eq!(hex(&encode_coverage_item(&found, 100)[0]), "0102010100".to_owned() + "0107016b00");
}

#[test]
fn a_long_entry_travels_in_parts() {
    let term = IndexTerm::Bin(Bytes::from(vec![7; 1_000_001]));
    let item = entries(vec![IndexMatch { term: Some(term), key: "k".into() }]);
    let whole = encode_coverage_item(&item, 1000).remove(0);
    let parts = split_coverage_item(whole, 1000);
    assert!(parts.len() > 1000 && parts.iter().all(|part| part.len() < 1100));
    let mut together = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let CoverageMessage::Part { bytes, is_last } = decode_coverage_message(&bytes_of(part)).unwrap() else {
            panic!("no part")
        };
        assert_eq!(is_last, at == parts.len() - 1);
        together.extend_from_slice(&bytes);
    }
    assert_eq!(format!("{:?}", decode_coverage_item(&together.into()).unwrap()), format!("{item:?}"));
    let short = encode_coverage_item(&CoverageItem::HomeDone(3), 1000).remove(0);
    let alone = split_coverage_item(short, 1000).remove(0);
    assert!(matches!(decode_coverage_message(&bytes_of(&alone)), Ok(CoverageMessage::Item(CoverageItem::HomeDone(3)))));
}

/// A node that does not know a kind of question or of piece refuses it.
#[test]
fn what_is_not_registered_is_refused() {
    let question = CoverageQuestion::buckets("t".into());
    let homes = vec![CoverageHome { home: 1, classes: [3].into_iter().collect() }];
    let request = CoverageRequest { question, homes, ring: NO_RING, begun: UnixMicros(1), deadline: None };
    let mut bytes = bytes_of(&encode_coverage_request(&request)).to_vec();
    let number = bytes.len() - "1t0".len() - 1;
    assert_eq!(bytes[number], request.question.number());
    bytes[number] = 200;
    let why = decode_coverage_request(&bytes.into(), NO_RING).unwrap_err();
    assert_eq!(why, reader::Malformed("the question is not known"));
    let mut bytes = bytes_of(&encode_coverage_item(&names(2, vec!["k".into()]), 100)[0]).to_vec();
    bytes[1] = 200;
    let why = decode_coverage_item(&bytes.into()).unwrap_err();
    assert_eq!(why, reader::Malformed("the item is of no known kind"));
}
