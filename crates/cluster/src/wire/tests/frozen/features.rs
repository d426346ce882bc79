//! The questions and the answers of features.

use super::*;
use crate::coverage::messages::{
    decode_coverage_item, decode_coverage_request, encode_coverage_item, encode_coverage_request,
};
use ombak_kv::coverage::CoveragePiece;
use ombak_kv::replica::{CoverageItem, CoverageQuestion, CoverageRequest};

pub(super) fn check_version_2(frozen: &mut FrozenMessages) {
    let question = CoverageQuestion::feature("a feature".into(), "what is asked".into());
    let request =
        CoverageRequest { question, homes: Vec::new(), ring: NO_RING, begun: UnixMicros(DIGEST), deadline: None };
    let decode = |message: &Bytes| decode_coverage_request(message, NO_RING);
    check(frozen, "coverage_request/feature", &request, encode_coverage_request, decode);
    let piece = CoveragePiece::of_feature(vec![3, 300], vec!["one part".into(), "another".into()]);
    let item = CoverageItem::Piece(piece);
    let encode = |item: &CoverageItem| encode_coverage_item(item, 1 << 20).remove(0);
    check(frozen, "coverage_item/feature", &item, encode, decode_coverage_item);
}
