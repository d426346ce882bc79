//! The forms in which Riak has stored maps: the test makes them of version 1, and reads them.

use super::RiakValue;
use crate::Map;
use ombak_types::etf::{self, Term};

/// How a version stores dictionaries.
type Dictionary = fn(Vec<(Term, Term)>) -> Term;

/// Reads a map in all forms. What waits in a field that is not there has no place in Riak's bytes.
pub(crate) fn check_forms(map: &Map) {
    let written = RiakValue::Map(map.clone()).to_bytes();
    let read = read(&written);
    assert_eq!((read.value(), read.context()), (map.value(), map.context()));
    if map.deferred_len() == 0 {
        assert_eq!(&read, map);
    }
    let name_len = b"riak_dt_map".len();
    let (head, payload) = written.split_at(6 + name_len);
    let term = etf::decode(&payload[2..]).unwrap();
    for (version, dictionary) in [(2, dict as Dictionary), (3, Term::Map)] {
        let term = etf::encode(&map_in(&term, dictionary));
        let bytes = [head, &[77, version], &term].concat();
        assert_eq!(self::read(&bytes), read, "version {version}");
    }
}

fn read(bytes: &[u8]) -> Map {
    match RiakValue::from_bytes(bytes) {
        Ok(RiakValue::Map(map)) => map,
        other => panic!("{other:?}"),
    }
}

/// A `dict` record with its pairs in two segments.
fn dict(pairs: Vec<(Term, Term)>) -> Term {
    let cell = |(key, value): (Term, Term)| match value {
        Term::List(items) => Term::List([key].into_iter().chain(items).collect()),
        Term::String(_) => panic!("no value is a string"),
        value => Term::ImproperList(vec![key], Box::new(value)),
    };
    let mut cells: Vec<Term> = pairs.into_iter().map(cell).collect();
    let half = cells.split_off(cells.len() / 2);
    let segment = |cells: Vec<Term>| {
        let buckets = cells.into_iter().map(|cell| Term::List(vec![cell]));
        Term::Tuple(buckets.chain([Term::nil()]).collect())
    };
    let mut record = vec![Term::atom("dict")];
    record.extend((0..7).map(Term::Int));
    record.push(Term::Tuple(vec![segment(half), segment(cells)]));
    Term::Tuple(record)
}

fn pairs(term: &Term) -> Vec<(Term, Term)> {
    let pair = |term: &Term| {
        let [key, value] = term.as_tuple().unwrap();
        (key.clone(), value.clone())
    };
    term.as_list().unwrap().iter().map(pair).collect()
}

fn map_in(term: &Term, dictionary: Dictionary) -> Term {
    let [clock, fields, deferred] = term.as_tuple().unwrap();
    let field = |(name, value): (Term, Term)| {
        let [_, kind] = name.as_tuple().unwrap();
        let [dots, tombstone] = value.as_tuple().unwrap();
        let content = |term: &Term| match kind.as_atom().unwrap() {
            "riak_dt_map" => map_in(term, dictionary),
            "riak_dt_orswot" => set_in(term),
            _ => term.clone(),
        };
        let dots = pairs(dots).into_iter().map(|(dot, value)| (dot, content(&value)));
        let value = Term::pair(dictionary(dots.collect()), content(tombstone));
        (name.clone(), value)
    };
    let fields = dictionary(pairs(fields).into_iter().map(field).collect());
    Term::Tuple(vec![clock.clone(), fields, dictionary(pairs(deferred))])
}

/// Sets in maps of versions 2 and 3 have `dict` records.
fn set_in(term: &Term) -> Term {
    let [clock, members, deferred] = term.as_tuple().unwrap();
    Term::Tuple(vec![clock.clone(), dict(pairs(members)), dict(pairs(deferred))])
}
