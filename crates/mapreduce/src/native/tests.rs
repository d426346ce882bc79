//! Tests of the built-in functions: Riak's own, and that reducing in parts changes nothing.

use super::*;
use crate::Input;
use crate::term::compare;
use bytes::Bytes;
use ombak_types::etf::{Term, encode};
use ombak_types::object::VAL_ENCODING_TERM;
use ombak_types::{Bucket, Object, Sibling};
use proptest::prelude::*;
use std::cell::Cell;

fn input() -> Input {
    Input { key_data: Some(Term::binary(b"kd")), ..Input::new(Bucket::untyped("b"), Bytes::from_static(b"k")) }
}

fn map(function: MapFunction, object: Option<&Object>, arg: &Term) -> Result<Vec<Term>, String> {
    function.call(Mapped { input: &input(), object }, arg).map_err(|error| error.0)
}

fn reduce(function: ReduceFunction, values: &[Term]) -> Result<Vec<Term>, String> {
    function.call(values.to_vec(), &Term::atom("none"), || ()).map_err(|error| error.0)
}

fn ints(numbers: &[i64]) -> Vec<Term> {
    numbers.iter().map(|n| Term::Int(*n)).collect()
}

fn texts(words: &[&str]) -> Vec<Term> {
    words.iter().map(|word| Term::binary(word.as_bytes())).collect()
}

#[test]
fn map_functions_give_values() {
    let object = Object::new(Sibling::new("v"));
    let none = Term::atom("none");
    assert_eq!(map(MapFunction::ObjectValue, Some(&object), &none).unwrap(), texts(&["v"]));
    assert_eq!(map(MapFunction::ObjectValueList, Some(&object), &none).unwrap_err(), "non_list_result");
    let json = crate::to_json(&map(MapFunction::Identity, Some(&object), &none).unwrap()[0]).unwrap();
    assert!(json.contains(r#""key":"k""#) && json.contains(r#""data":"v""#), "{json}");

    let mut stored = Sibling::new(encode(&Term::from_list(texts(&["a", "b"]))));
    stored.meta.val_encoding = VAL_ENCODING_TERM;
    let object = Object::new(stored);
    assert_eq!(map(MapFunction::ObjectValueList, Some(&object), &none).unwrap(), texts(&["a", "b"]));

    let siblings = Object { siblings: vec![Sibling::new("a"), Sibling::new("b")], ..Object::default() };
    assert!(map(MapFunction::ObjectValue, Some(&siblings), &none).is_err());
}

#[test]
fn the_argument_says_what_becomes_of_a_missing_object() {
    let missing = |arg: Term| map(MapFunction::ObjectValue, None, &arg);
    let not_found = Term::pair(Term::atom("error"), Term::atom("notfound"));
    assert_eq!(missing(Term::atom("none")).unwrap_err(), "function_clause");
    assert_eq!(missing(Term::binary(b"filter_notfound")).unwrap(), []);
    assert_eq!(missing(Term::binary(b"include_notfound")).unwrap(), std::slice::from_ref(&not_found));
    assert_eq!(missing(Term::binary(b"include_keydata")).unwrap(), texts(&["kd"]));
    let sub = crate::from_json(&serde_json::json!({"sub": ["x", "y"]}).into());
    assert_eq!(missing(sub.clone()).unwrap(), texts(&["x", "y"]));
    assert_eq!(map(MapFunction::ObjectValueList, None, &sub).unwrap(), texts(&["x", "y"]));
    assert_eq!(map(MapFunction::Identity, None, &Term::atom("none")).unwrap(), [not_found]);
}

#[test]
fn reduce_functions_reduce() {
    use ReduceFunction::*;
    assert_eq!(reduce(Sum, &ints(&[1, 2, 3, 4])).unwrap(), ints(&[10]));
    assert_eq!(reduce(Sum, &[]).unwrap(), ints(&[0]));
    assert_eq!(reduce(Sum, &texts(&["x"])).unwrap_err(), "badarith");
    let missing = Term::Tuple(vec![Term::atom("not_found"), Term::nil(), Term::nil()]);
    assert_eq!(reduce(Sum, &[missing.clone(), Term::Int(2)]).unwrap(), ints(&[2]));
    assert_eq!(reduce(SetUnion, &texts(&["b", "a", "b"])).unwrap(), texts(&["a", "b"]));
    assert_eq!(reduce(SetUnion, &[Term::Int(1), Term::Float(1.0), Term::Int(1)]).unwrap().len(), 2);
    assert_eq!(reduce(Sort, &texts(&["this", "is", "a", "test"])).unwrap(), texts(&["a", "is", "test", "this"]));
    assert_eq!(reduce(Sort, &ints(&[4, 2, 1])).unwrap(), ints(&[1, 2, 4]));
    let numbers = [Term::string(b"1"), Term::binary(b"-2"), Term::Int(3), missing];
    assert_eq!(reduce(StringToInteger, &numbers).unwrap(), ints(&[1, -2, 3]));
    assert_eq!(reduce(StringToInteger, &texts(&["v8"])).unwrap_err(), "{badarg,<<\"v8\">>}");
    assert_eq!(reduce(StringToInteger, &[Term::atom("x")]).unwrap_err(), "function_clause");
    assert_eq!(reduce(CountInputs, &[Term::Int(4), Term::binary(b"x"), input().to_term()]).unwrap(), ints(&[6]));
    assert_eq!(reduce(CountInputs, &[]).unwrap(), ints(&[0]));
    let pair = |name: &str, n: i64| Term::pair(Term::atom(name), Term::Int(n));
    let sums = vec![pair("a", 3), pair("b", 5)];
    let lists = [Term::List(vec![pair("a", 1)]), Term::List(vec![pair("a", 2), pair("b", 1)]), pair("b", 4)];
    assert_eq!(reduce(PlistSum, &lists).unwrap(), sums);
    assert_eq!(reduce(PlistSum, &[]).unwrap(), []);
    assert_eq!(reduce(PlistSum, &texts(&["v"])).unwrap_err(), "function_clause");
}

#[test]
fn long_calls_rest() {
    thread_local! {
        static RESTS: Cell<usize> = const { Cell::new(0) };
    }
    let numbers = ints(&(0..10_000).rev().collect::<Vec<_>>());
    let pairs: Vec<Term> = numbers.iter().map(|n| Term::pair(n.clone(), Term::Int(1))).collect();
    for function in ReduceFunction::ALL {
        let values = match function {
            ReduceFunction::PlistSum => pairs.clone(),
            ReduceFunction::Identity => vec![input().to_term(); 10_000],
            _ => numbers.clone(),
        };
        RESTS.set(0);
        function.call(values, &Term::atom("none"), || RESTS.set(RESTS.get() + 1)).unwrap();
        assert!(RESTS.get() > 100, "{}: {}", function.name(), RESTS.get());
    }
}

#[test]
fn identity_gives_bucket_and_key() {
    let plain = Input::new(Bucket::untyped("b"), Bytes::from_static(b"k"));
    let both = Term::List(texts(&["b", "k"]));
    for value in [plain.to_term(), input().to_term(), both.clone()] {
        assert_eq!(reduce(ReduceFunction::Identity, &[value]).unwrap(), std::slice::from_ref(&both));
    }
    let typed = Input::new(Bucket::typed("t", "b"), Bytes::from_static(b"k"));
    let once = reduce(ReduceFunction::Identity, &[typed.to_term()]).unwrap();
    assert_eq!(crate::to_json(&once[0]).unwrap(), r#"["b","k","undefined","t"]"#);
    assert_eq!(reduce(ReduceFunction::Identity, &once).unwrap(), once);
    let odd = reduce(ReduceFunction::Identity, &ints(&[1])).unwrap_err();
    assert_eq!(odd, "{unhandled_entry,1}");
}

#[test]
fn index_identity_gives_keys_and_their_terms() {
    let call = |values: &[Term], arg: &Term| ReduceFunction::IndexIdentity.call(values.to_vec(), arg, || ());
    let (none, name) = (Term::atom("none"), Term::atom("term"));
    let key = Input::new(Bucket::untyped("b"), Bytes::from_static(b"k")).to_term();
    let terms = |name: &str| Term::List(vec![Term::pair(Term::atom(name), Term::Int(110))]);
    let (found, other) = (Term::pair(key.clone(), terms("term")), Term::pair(key.clone(), terms("other")));
    let without = Term::pair(key.clone(), Term::atom("undefined"));
    let typed = Input::new(Bucket::typed("t", "b"), Bytes::from_static(b"k")).to_term();
    let odd = [Term::Int(1), Term::binary(b"value"), Term::nil(), Term::Tuple(vec![key.clone()])];
    let all = [&[found.clone(), other.clone(), without, typed.clone()][..], &odd].concat();
    let passed = vec![found.clone(), other.clone(), key.clone(), typed.clone()];
    for arg in [&none, &Term::atom("undefined")] {
        assert_eq!(call(&all, arg).unwrap(), passed);
        assert_eq!(call(&[Term::List(all.clone())], arg).unwrap(), passed, "lists of earlier calls come apart");
    }
    assert_eq!(call(&all, &name).unwrap(), std::slice::from_ref(&found));
    let option = |name: &str| Term::List(vec![Term::atom("x"), Term::pair(Term::atom(name), Term::atom("other"))]);
    assert_eq!(call(&all, &option("args")).unwrap(), [other]);
    assert_eq!(call(&all, &option("arg")).unwrap_err().0, "badarg");
    assert_eq!(call(&all, &Term::nil()).unwrap_err().0, "badarg");
    assert_eq!(call(&passed, &none).unwrap(), passed, "a second call changes nothing");
}

proptest! {
    /// The property on which reducing near the data rests.
    #[test]
    fn reducing_in_parts_changes_nothing(
        numbers in prop::collection::vec(-50_i64..50, 0..30), cut in 0_usize..30, which in 0..7_usize,
    ) {
        let function = ReduceFunction::ALL[which];
        let values: Vec<Term> = match function {
            ReduceFunction::Identity => {
                let key = |n: &i64| Input::new(Bucket::untyped("b"), Bytes::from(n.to_string())).to_term();
                numbers.iter().map(key).collect()
            }
            ReduceFunction::PlistSum => numbers.iter().map(|n| Term::pair(Term::Int(n % 5), Term::Int(*n))).collect(),
            ReduceFunction::StringToInteger => numbers.iter().map(|n| Term::binary(n.to_string().as_bytes())).collect(),
            ReduceFunction::CountInputs => numbers.iter().map(|n| Term::binary(n.to_string().as_bytes())).collect(),
            _ => ints(&numbers),
        };
        let (first, second) = values.split_at(cut.min(values.len()));
        let none = Term::atom("none");
        let whole = function.call(values.clone(), &none, || ()).unwrap();
        let mut parts = function.call(first.to_vec(), &none, || ()).unwrap();
        parts.extend(function.call(second.to_vec(), &none, || ()).unwrap());
        let mut again = function.call(parts, &none, || ()).unwrap();
        let mut whole = whole;
        whole.sort_by(compare);
        again.sort_by(compare);
        prop_assert_eq!(again, whole);
    }
}
