//! The questions and the answers of folds.

use super::*;
use crate::coverage::messages::{
    decode_coverage_item, decode_coverage_request, encode_coverage_item, encode_coverage_request,
};
use ombak_kv::coverage::CoveragePiece;
use ombak_kv::folds::{FoldOf, FoldRange, FoldStats, FoldWants, Found, FoundKey, GatheredEntry, SegmentFilter};
use ombak_kv::replica::{CoverageItem, CoverageQuestion, CoverageRequest};
use ombak_tictac::{ClockHash, TreeSize};
use std::collections::BTreeMap;
use std::sync::Arc;

fn bucket() -> Bucket {
    Bucket { bucket_type: "a type".into(), name: "a bucket".into() }
}

fn whole_bucket() -> FoldRange {
    FoldRange::of_bucket(bucket())
}

fn questions() -> Vec<(&'static str, FoldRange, FoldWants)> {
    let segments = SegmentFilter { size: TreeSize::XLarge, leaves: [3, 300_000].into_iter().collect() };
    let narrow = FoldRange {
        of: FoldOf::Bucket(bucket()),
        keys: Some(("a".into(), "z".into())),
        modified: Some((1, 1_600_000_000)),
        segments: Some(segments),
    };
    vec![
        ("fold_clocks", narrow, FoldWants::Clocks),
        ("fold_tombstones", whole_bucket(), FoldWants::Tombstones),
        ("fold_living", whole_bucket(), FoldWants::Living),
        ("fold_siblings", whole_bucket(), FoldWants::SiblingsAbove(300)),
        ("fold_bytes", whole_bucket(), FoldWants::BytesAbove(1 << 40)),
        ("fold_stats", whole_bucket(), FoldWants::Stats),
        ("fold_tree", FoldRange::of_classes([2, 3]), FoldWants::Tree(TreeSize::Large, ClockHash::Plain)),
        ("fold_other_tree", whole_bucket(), FoldWants::Tree(TreeSize::XxSmall, ClockHash::With(300))),
        ("fold_unnumbered_tree", whole_bucket(), FoldWants::Tree(TreeSize::Small, ClockHash::WithoutNumber)),
        ("fold_buckets", FoldRange::of_classes([1]), FoldWants::Buckets),
    ]
}

fn gathered() -> Vec<GatheredEntry> {
    let key = |found| GatheredEntry::Key(FoundKey { bucket: bucket(), key: "a key".into(), found });
    let stats = FoldStats {
        objects: 300,
        bytes: 1 << 40,
        sizes: BTreeMap::from([(2, 300)]),
        siblings: BTreeMap::from([(1, 300)]),
    };
    vec![
        key(Found::Clock(a_clock())),
        key(Found::Number(300)),
        GatheredEntry::Bucket(bucket()),
        GatheredEntry::Branch(300, vec![1, 2, 3, 4]),
        GatheredEntry::Stats(stats),
    ]
}

pub(super) fn check_version_2(frozen: &mut FrozenMessages) {
    for (name, range, wants) in questions() {
        let question = CoverageQuestion::fold(Arc::new(range), wants);
        let request =
            CoverageRequest { question, homes: Vec::new(), ring: NO_RING, begun: UnixMicros(DIGEST), deadline: None };
        let decode = |message: &Bytes| decode_coverage_request(message, NO_RING);
        check(frozen, &format!("coverage_request/{name}"), &request, encode_coverage_request, decode);
    }
    let item = CoverageItem::Piece(CoveragePiece::gathered(300, gathered()));
    let encode = |item: &CoverageItem| encode_coverage_item(item, 1 << 20).remove(0);
    check(frozen, "coverage_item/gathered", &item, encode, decode_coverage_item);
}
