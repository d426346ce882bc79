use super::*;
use crate::testing::bytes;
use proptest::prelude::*;

proptest! {
    #[test]
    fn merging_is_the_union_in_any_order(names in prop::collection::vec(prop::collection::vec("[a-d]", 0..4), 3)) {
        let sets: Vec<GSet> = names.iter().map(|names| names.iter().map(|name| bytes(name)).collect()).collect();
        let merged = |order: [usize; 4]| order.iter().fold(GSet::new(), |mut all, at| { all.merge(&sets[*at]); all });
        let union: std::collections::BTreeSet<Bytes> = names.iter().flatten().map(|name| bytes(name)).collect();
        prop_assert!(merged([0, 1, 2, 0]).members().eq(&union));
        prop_assert_eq!(merged([2, 1, 0, 2]), merged([0, 1, 2, 0]));
    }
}

#[test]
fn a_delta_has_only_what_is_new() {
    let mut set: GSet = [bytes("b")].into_iter().collect();
    let delta = set.delta([bytes("b"), bytes("ab")]);
    assert!(delta.members().eq([&bytes("ab")]));
    set.merge(&delta);
    assert!(set.members().eq([&bytes("ab"), &bytes("b")]));
    assert_eq!((set.len(), set.member_bytes_max()), (2, 2));
}
