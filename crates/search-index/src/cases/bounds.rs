//! What a search may cost.

use super::harness::{TestIndex, ask};
use crate::IndexError;
use crate::query::limits::Limits;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An index with documents k0, k1 ... that have a string, a word and a number of their own.
fn many(count: usize, limits: Limits) -> TestIndex {
    let mut index = TestIndex::new();
    let json = |n: usize| {
        format!(r#"{{"v_s":"aaa{n:05}aa","v_t":"word{n} common","n_i":{n},"long_tsd":"{}"}}"#, "x".repeat(100))
    };
    let changes = (0..count).map(|n| index.change(0, 1, &format!("k{n}"), &[&json(n)])).collect();
    index.get().write(changes, "").unwrap();
    index.index.as_mut().unwrap().limit(limits);
    index
}

fn costly(index: &TestIndex, parameters: &[(&str, &str)], bound: &str) {
    match index.try_search(parameters) {
        Err(IndexError::TooCostly(text)) => assert!(text.contains(bound), "{text}"),
        other => panic!("{parameters:?}: {:?}", other.map(|answer| answer.found_count)),
    }
}

#[test]
fn patterns_match_a_bounded_number_of_terms() {
    let index = many(300, Limits { matched_terms: 200, ..Limits::default() });
    for query in
        ["v_s:*a*", "v_s:/a+.*/", "v_t:word*", "v_t:[a TO z]", "v_s:aaa00000aa~2 OR v_s:*aa", "v_s:*1*aa OR v_t:*2*"]
    {
        costly(&index, &[("q", query)], "more than 200 terms");
    }
    assert_eq!(index.search(&[("q", "v_s:*12*aa")]).found_count, 11 + 2);
}

#[test]
fn prefixes_and_ranges_of_many_strings_are_read_from_the_column() {
    let index = many(3_000, Limits { matched_terms: 1_500, ..Limits::default() });
    for (query, count) in [
        ("v_s:aaa*", 3_000),
        ("v_s:[aaa00100 TO *]", 2_900),
        ("v_s:[aaa00100aa TO aaa02100aa}", 2_000),
        ("v_s:{aaa00100aa TO aaa02100aa]", 2_000),
        ("v_s:[* TO aaa01999aa}", 1_999),
        ("v_s:[a TO b]", 3_000),
        ("v_s:aaa01*", 1_000),
        ("_yz_rk:k*", 3_000),
        ("NOT v_s:aaa*", 0),
    ] {
        assert_eq!(index.search(&[("q", query)]).found_count, count, "{query}");
    }
}

#[test]
fn sets_of_documents_have_bounded_memory() {
    let index = many(2_000, Limits { set_bytes: 1_000, ..Limits::default() });
    let ranges: Vec<String> = (0..10).map(|n| format!("n_i:[{n} TO *]")).collect();
    assert_eq!(index.search(&[("q", &ranges[0])]).found_count, 2_000);
    costly(&index, &[("q", &ranges.join(" OR "))], "1000 bytes");
}

#[test]
fn facets_and_documents_have_bounded_memory() {
    let index = many(300, Limits { facet_values: 250, told_bytes: 5_000, ..Limits::default() });
    for field in ["v_s", "n_i", "v_t"] {
        let parameters = [("q", "*:*"), ("rows", "0"), ("facet", "true"), ("facet.field", field)];
        costly(&index, &parameters, "more than 250 different values");
        let parameters = [("q", "n_i:[0 TO 99]"), ("rows", "0"), ("facet", "true"), ("facet.field", field)];
        assert!(index.try_search(&parameters).is_ok(), "{field}");
    }
    costly(&index, &[("q", "*:*"), ("rows", "100")], "more than 5000 bytes");
    assert_eq!(index.search(&[("q", "*:*"), ("rows", "3")]).hits.len(), 3);
}

#[test]
fn hostile_patterns_end() {
    let index = many(2_000, Limits::default());
    let patterns =
        ["v_s:*a*a*a*a*a*a*a*b", "v_s:/(a*)*(a|aa)*b/", "v_s:/((a{1,10}){1,10}){1,10}x/", "v_s:/(.*a){20}b/"];
    for pattern in patterns {
        match index.try_search(&[("q", pattern)]) {
            Ok(answer) => assert_eq!(answer.found_count, 0),
            Err(IndexError::TooCostly(text)) => assert!(text.contains("bytes, which is the most"), "{text}"),
            Err(other) => panic!("{pattern}: {other}"),
        }
    }
}

#[test]
fn a_search_ends_when_its_time_is_over() {
    let index = many(3_000, Limits::default());
    let over = ask(index.get(), &[("q", "*:*")], [0], &|| true);
    assert_eq!(over, Err(IndexError::TimedOut));
    for (query, facet) in [
        ("v_s:*1*1*", "n_i"),
        ("v_s:/.*9.*/", "n_i"),
        ("v_s:aaa00000aa~1", "n_i"),
        ("v_t:word*", "n_i"),
        ("n_i:[1 TO *]", "n_i"),
        ("*:*", "v_s"),
        ("*:*", "v_t"),
        ("v_t:\"common word1\"~3 OR v_t:common", "n_i"),
    ] {
        let parameters = [("q", query), ("rows", "0"), ("facet", "true"), ("facet.field", facet)];
        let asked = AtomicUsize::new(0);
        let count = || {
            asked.fetch_add(1, Ordering::Relaxed);
            false
        };
        assert!(ask(index.get(), &parameters, [0], &count).is_ok(), "{query}");
        let asked = asked.into_inner();
        assert!(asked > 3, "{query} asks {asked} times only");
        // Whenever it is over, the search says so.
        for after in [1, asked / 2, asked - 1] {
            let calls = AtomicUsize::new(0);
            let is_over = || calls.fetch_add(1, Ordering::Relaxed) >= after;
            assert_eq!(ask(index.get(), &parameters, [0], &is_over), Err(IndexError::TimedOut), "{query} {after}");
        }
    }
}
