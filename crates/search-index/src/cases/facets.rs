//! Counts beside the documents.

use super::harness::TestIndex;
use ombak_search::values::Value;

fn index() -> TestIndex {
    let index = TestIndex::of(&[
        (
            "a",
            r#"{"c_s":"red","m_ss":["x","y","x"],"n_is":[1,5,5],"d_d":0.5,"at_dt":"2019-12-30T00:00:00Z","t_t":"one two two"}"#,
        ),
        (
            "b",
            r#"{"c_s":"blue","m_ss":["x"],"n_is":[5,25],"d_d":1.0,"ok_b":true,"at_dt":"2019-12-31T10:00:00Z","t_t":"two"}"#,
        ),
    ]);
    index.put(&[("c", r#"{"c_s":"red","n_is":[-3],"ok_b":false,"at_dt":"2019-12-31T00:00:00Z"}"#), ("d", "{}")]);
    index
}

fn field(index: &TestIndex, query: &str, field: &str) -> Vec<(Value, u64)> {
    let answer = index.search(&[("q", query), ("rows", "0"), ("facet", "true"), ("facet.field", field)]);
    let mut counts = answer.facets.unwrap().fields.remove(0);
    counts.sort_by(|(a, _), (b, _)| ombak_search::merge::compare_values(a, b));
    counts
}

#[test]
fn values_of_fields_are_counted_once_for_each_document() {
    let index = index();
    let strings = |counts: &[(&str, u64)]| -> Vec<(Value, u64)> {
        counts.iter().map(|(text, count)| (Value::String((*text).to_owned()), *count)).collect()
    };
    assert_eq!(field(&index, "*:*", "c_s"), strings(&[("blue", 1), ("red", 2)]));
    assert_eq!(field(&index, "*:*", "m_ss"), strings(&[("x", 2), ("y", 1)]));
    assert_eq!(field(&index, "c_s:blue", "m_ss"), strings(&[("x", 1)]));
    assert_eq!(field(&index, "*:*", "t_t"), strings(&[("one", 1), ("two", 2)]));
    assert_eq!(field(&index, "*:*", "_yz_rb"), strings(&[("b", 4)]));
    assert_eq!(field(&index, "*:*", "nothing"), []);
    let ints = [(Value::Int(-3), 1), (Value::Int(1), 1), (Value::Int(5), 2), (Value::Int(25), 1)];
    assert_eq!(field(&index, "*:*", "n_is"), ints);
    assert_eq!(field(&index, "*:*", "d_d"), [(Value::Double(0.5), 1), (Value::Double(1.0), 1)]);
    assert_eq!(field(&index, "*:*", "ok_b"), [(Value::Bool(false), 1), (Value::Bool(true), 1)]);
    assert_eq!(field(&index, "NOT c_s:red", "at_dt").len(), 1);
}

#[test]
fn queries_and_ranges_are_counted_among_what_is_found() {
    let answer = index().search(&[
        ("q", "NOT _yz_rk:d"),
        ("rows", "0"),
        ("facet", "true"),
        ("facet.query", "c_s:red"),
        ("facet.query", "m_ss:x AND t_t:one"),
        ("facet.query", "_yz_rk:d"),
        ("facet.range", "n_is"),
        ("f.n_is.facet.range.start", "0"),
        ("f.n_is.facet.range.end", "20"),
        ("f.n_is.facet.range.gap", "5"),
        ("facet.range", "at_dt"),
        ("f.at_dt.facet.range.start", "NOW/DAY-2DAYS"),
        ("f.at_dt.facet.range.end", "NOW/DAY"),
        ("f.at_dt.facet.range.gap", "+1DAY"),
    ]);
    let facets = answer.facets.unwrap();
    assert_eq!(answer.found_count, 3);
    assert_eq!(facets.queries, [2, 1, 0]);
    assert_eq!(facets.ranges, [vec![1, 2, 0, 0], vec![1, 2]]);
}

#[test]
fn an_answer_without_documents_has_empty_counts() {
    let answer =
        TestIndex::new().search(&[("q", "*:*"), ("facet", "true"), ("facet.query", "a_s:x"), ("facet.field", "a_s")]);
    let facets = answer.facets.unwrap();
    assert_eq!((facets.queries, facets.fields, facets.ranges), (vec![0], vec![vec![]], vec![]));
}
