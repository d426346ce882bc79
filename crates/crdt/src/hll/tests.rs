use super::*;
use crate::RiakValue;
use crate::testing::hex;
use ombak_types::etf::{self, Term};
use proptest::prelude::*;

fn precision(bits: u64) -> Precision {
    Precision::new(bits).unwrap()
}

fn names(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|number| format!("member {number}"))
}

fn with(bits: u64, range: std::ops::Range<u32>) -> Hll {
    let mut hll = Hll::new(precision(bits));
    hll.merge_delta(&hll.delta(names(range)));
    hll
}

#[test]
fn a_member_goes_where_its_hash_says() {
    // SHA-1 of "abc" begins with a9993e36: 1010 1001 1001 1001 0011 1110 …
    assert_eq!(place(b"abc", precision(4)), (0b1010, 1));
    assert_eq!(place(b"abc", precision(8)), (0xa9, 1));
    assert_eq!(place(b"abc", precision(12)), (0xa99, 1));
    // The next 16 bits are 3e36, with two zeros in front.
    assert_eq!(place(b"abc", precision(16)), (0xa999, 3));
    // Only the zeros among the next P bits count, although more may follow.
    let most = names(0..100_000).map(|name| place(name.as_bytes(), precision(6)).1).max();
    assert_eq!(most, Some(7));
}

#[test]
fn small_counts_are_exact_and_large_ones_near() {
    for bits in 10..=16 {
        for count in [0, 1, 3, 10] {
            assert_eq!(with(bits, 0..count).value(), u64::from(count));
        }
    }
    for bits in 4..=16 {
        let error = 1.04 / (precision(bits).registers() as f64).sqrt();
        // Registers hold at most P + 1, so they are full at about 4^P.
        for count in
            [10, 100, 1_000, 5_000, 20_000, 60_000].into_iter().filter(|count| *count <= 4u32.pow(bits as u32 - 2))
        {
            let value = with(bits, 0..count).value() as f64;
            let off = (value - f64::from(count)).abs() / f64::from(count);
            assert!(off <= 3.5 * error, "{value} for {count} with {bits} bits");
        }
    }
}

#[test]
fn the_bias_matters_where_it_is_large() {
    // Just above the threshold of linear counting the raw estimate is off by more than 5 %.
    let value = with(14, 0..13_000).value() as f64;
    assert!((value - 13_000.0).abs() < 200.0, "{value}");
}

#[test]
fn sizes_are_those_of_riaks_statistics() {
    assert_eq!([0, 4, 3_000].map(|count| with(14, 0..count).riak_bytes()), [48, 208, 12_288]);
}

#[test]
fn bad_precisions_are_refused() {
    assert_eq!([0, 3, 17, u64::MAX].map(Precision::new), [None; 4]);
    assert_eq!(Precision::new(14), Some(Precision::DEFAULT));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merging_is_adding_all_to_one(
        parts in prop::collection::vec((4..=9u64, 0..500u32, 0..400u32), 3), least in 4..=9u64,
    ) {
        let hlls: Vec<Hll> = parts.iter().map(|(bits, from, len)| with(*bits, *from..from + len)).collect();
        let merged = |order: [usize; 4]| {
            order.iter().fold(Hll::new(precision(16)), |mut all, at| { all.merge(&hlls[*at]); all })
        };
        let bits = parts.iter().map(|(bits, ..)| *bits).min().unwrap();
        prop_assert_eq!(merged([2, 1, 0, 2]), merged([0, 1, 2, 0]));
        let (mut all, mut by_deltas) = (merged([0, 1, 2, 0]), Hll::new(precision(16)));
        for (bits, from, len) in &parts {
            by_deltas.merge_delta(&HllDelta::of_members(precision(*bits), names(*from..from + len)));
        }
        prop_assert_eq!(&by_deltas, &all);
        all.reduce(precision(least));
        prop_assert_eq!(all.precision(), precision(bits.min(least)));
        for hll in [&all, &hlls[0]] {
            let value = RiakValue::Hll(hll.clone());
            prop_assert_eq!(RiakValue::from_bytes(&value.to_bytes()), Ok(value));
        }
    }
}

/// The bytes of a stored HyperLogLog with these registers.
fn stored(registers: Term, bits: i64) -> Vec<u8> {
    let registers = Term::pair(Term::atom("hyper_binary"), registers);
    let term = Term::Tuple(vec![Term::atom("hyper"), Term::Int(bits), registers]);
    [&b"E\x02\0\0\0\x0briak_kv_hll"[..], &[86, 1], &etf::encode(&term)].concat()
}

fn list(pairs: &[(i64, i64)]) -> Term {
    Term::List(pairs.iter().map(|(index, value)| Term::pair(Term::Int(*index), Term::Int(*value))).collect())
}

#[test]
fn both_forms_of_riak_are_read_with_what_is_not_merged_yet() {
    let buffer = |pairs| Term::Tuple(vec![Term::atom("buffer"), list(pairs), Term::Int(3), Term::Int(4), Term::Int(0)]);
    let registers = |bytes: &[u8]| match RiakValue::from_bytes(bytes) {
        Ok(RiakValue::Hll(hll)) => Ok(hll.registers().to_vec()),
        Ok(other) => panic!("{other:?}"),
        Err(bad) => Err(bad),
    };
    let expected = |pairs: &[(usize, u8)]| {
        let mut registers = vec![0; 16];
        pairs.iter().for_each(|(index, value)| registers[*index] = *value);
        Ok(registers)
    };
    assert_eq!(registers(&stored(buffer(&[(3, 2), (3, 5), (15, 1)]), 4)), expected(&[(3, 5), (15, 1)]));
    assert!(registers(&stored(buffer(&[(16, 1)]), 4)).is_err());
    // The registers are 1, 2, 3 and 4, and then zeros: 000001 000010 000011 000100.
    let dense = |binary: &[u8], pairs| {
        let parts = vec![Term::atom("dense"), Term::binary(binary), list(pairs), Term::Int(1), Term::Int(16)];
        stored(Term::Tuple(parts), 4)
    };
    let binary = [&hex("0420c4")[..], &[0; 9]].concat();
    assert_eq!(registers(&dense(&binary, &[(0, 9), (1, 1)])), expected(&[(0, 9), (1, 2), (2, 3), (3, 4)]));
    assert!(registers(&dense(&binary[1..], &[])).is_err());
    assert!(registers(&stored(buffer(&[]), 3)).is_err());
}
