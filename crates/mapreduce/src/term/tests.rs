//! Tests of terms: Erlang's order, and JSON.

use super::*;
use num_bigint::BigInt;
use proptest::prelude::*;
use serde_json::json;
use std::cmp::Ordering;

fn term() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        (-3_i64..4).prop_map(Term::Int),
        any::<i64>().prop_map(Term::Int),
        (any::<i64>(), any::<u64>()).prop_map(|(a, b)| Term::from(BigInt::from(a) * BigInt::from(b))),
        prop_oneof![Just(0.5), Just(1.0), Just(-2.0), Just(1e30), Just(9_007_199_254_740_993.0)].prop_map(Term::Float),
        "[ab]{0,2}".prop_map(|name| Term::atom(&name)),
        prop::collection::vec(any::<u8>(), 0..3).prop_map(|bytes| Term::binary(&bytes)),
        prop::collection::vec(any::<u8>(), 0..3).prop_map(|bytes| Term::string(&bytes)),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Term::Tuple),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Term::from_list),
            prop::collection::vec((inner.clone(), inner.clone()), 0..3).prop_map(Term::Map),
            (prop::collection::vec(inner.clone(), 1..3), 0_i64..3)
                .prop_map(|(items, tail)| Term::ImproperList(items, Box::new(Term::Int(tail)))),
        ]
    })
}

#[test]
fn terms_are_ordered_as_in_erlang() {
    let ascending = [
        Term::Big(BigInt::from(-1) << 80_u32),
        Term::Int(-1),
        Term::Float(-0.5),
        Term::Int(0),
        Term::Float(0.5),
        Term::Int(1),
        Term::Float(1.5),
        Term::Int(i64::MAX),
        Term::Float(1e19),
        Term::Big(BigInt::from(1) << 80_u32),
        Term::atom("a"),
        Term::atom("b"),
        Term::Tuple(vec![Term::Int(9)]),
        Term::Tuple(vec![Term::Int(1), Term::Int(1)]),
        Term::Map(vec![]),
        Term::nil(),
        Term::string(b"a"),
        Term::string(b"aa"),
        Term::from_list(vec![Term::Int(97), Term::atom("x")]),
        Term::from_list(vec![Term::atom("x")]),
        Term::binary(b""),
        Term::binary(b"a"),
        Term::binary(b"ab"),
    ];
    for (at, a) in ascending.iter().enumerate() {
        for (other, b) in ascending.iter().enumerate() {
            assert_eq!(compare(a, b), at.cmp(&other), "{a} and {b}");
        }
    }
    assert_eq!(compare(&Term::Int(1), &Term::Float(1.0)), Ordering::Equal);
    assert_eq!(compare(&Term::Int(i64::MAX), &Term::Float(9_223_372_036_854_775_808.0)), Ordering::Less);
    // [1|2] is less than [1,2]: a number comes before a list.
    let improper = Term::ImproperList(vec![Term::Int(1)], Box::new(Term::Int(2)));
    assert_eq!(compare(&improper, &Term::string(&[1, 2])), Ordering::Less);
}

#[test]
fn json_is_written_as_riak_writes_it() {
    let pair = |name: &str, value: i64| Term::pair(Term::binary(name.as_bytes()), Term::Int(value));
    for (term, text) in [
        (Term::nil(), "[]"),
        (Term::string(&[1, 2]), "[1,2]"),
        (Term::atom("true"), "true"),
        (Term::atom("undefined"), "\"undefined\""),
        (Term::binary("é\"".as_bytes()), "\"é\\\"\""),
        (Term::Float(1.0), "1.0"),
        (Term::Big(BigInt::from(u64::MAX) + 1), "18446744073709551616"),
        (Term::List(vec![pair("a", 1), pair("b", 2)]), r#"{"a":1,"b":2}"#),
        (Term::pair(Term::atom("struct"), Term::List(vec![pair("a", 1)])), r#"{"a":1}"#),
        (Term::pair(Term::atom("struct"), Term::nil()), "{}"),
        (Term::List(vec![Term::pair(Term::atom("struct"), Term::nil())]), "[{}]"),
        (Term::List(vec![Term::pair(Term::string(b"k"), Term::nil())]), r#"{"k":[]}"#),
    ] {
        assert_eq!(to_json(&term).unwrap(), text);
    }
    assert_eq!(to_json(&Term::binary(b"\xff")), Err(NotJson::BadUtf8));
    for bad in [Term::Tuple(vec![]), Term::pair(Term::Int(1), Term::Int(2)), Term::Map(vec![])] {
        assert!(matches!(to_json(&bad), Err(NotJson::BadTerm(_))), "{bad}");
    }
}

#[test]
fn integers_and_floats_add_up() {
    let max = Term::Int(i64::MAX);
    assert_eq!(add(&max, &Term::Int(1)), Some(Term::Big(BigInt::from(i64::MAX) + 1)));
    assert_eq!(add(&Term::Big(BigInt::from(i64::MAX) + 1), &Term::Int(-1)), Some(max));
    assert_eq!(add(&Term::Int(1), &Term::Float(0.5)), Some(Term::Float(1.5)));
    assert_eq!(add(&Term::Float(f64::MAX), &Term::Float(f64::MAX)), None);
    assert_eq!(add(&Term::Int(1), &Term::binary(b"1")), None);
}

proptest! {
    #[test]
    fn the_order_is_one(a in term(), b in term(), c in term()) {
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        prop_assert_eq!(order(&a, &b) == Ordering::Equal, a == b);
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
            prop_assert!(compare(&a, &c).is_le());
        }
    }

    #[test]
    fn json_comes_back(name in ".{0,5}", n in any::<i64>(), text in ".{0,9}", eighths in -1_000_000_i32..1_000_000) {
        let f = f64::from(eighths) / 8.0;
        let value = json!({ name: [n, text, f, null, true, {}, [], {"x": [1, 2]}] });
        let written = to_json(&from_json(&value.clone().into())).unwrap();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }

    #[test]
    fn a_term_takes_more_memory_than_its_parts(a in term(), b in term()) {
        let both = Term::Tuple(vec![a.clone(), b.clone()]);
        prop_assert!(bytes_held(&both) > bytes_held(&a) + bytes_held(&b));
    }
}
