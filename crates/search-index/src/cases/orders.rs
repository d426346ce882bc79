//! The order of documents.

use super::harness::{TestIndex, keys};

/// Documents with values and without, in three segments.
fn index() -> TestIndex {
    let index = TestIndex::of(&[
        ("a", r#"{"s_s":"m","n_i":5,"f_f":0.0,"b_b":true}"#),
        ("b", r#"{"s_s":"z","n_i":-1,"f_f":-0.0}"#),
    ]);
    index.put(&[("c", r#"{"s_s":"M","at_dt":"1969-12-31T00:00:00Z","b_b":false}"#), ("d", r#"{"n_i":3,"f_f":-1e9}"#)]);
    index.put(&[("e", r#"{"s_s":"","n_i":0,"at_dt":"2019-01-01T00:00:00Z"}"#), ("f", r#"{"f_f":"NaN"}"#)]);
    index
}

fn sorted(index: &TestIndex, sort: &str) -> String {
    keys(&index.search(&[("q", "*:*"), ("sort", sort)])).join("")
}

#[test]
fn documents_are_sorted_as_in_solr() {
    let index = index();
    for (sort, order) in [
        // Strings without a value come last in both directions; equal documents by their ids.
        ("s_s asc", "ecabdf"),
        ("s_s desc", "bacedf"),
        // Numbers and dates without a value are 0.
        ("n_i asc", "bcefda"),
        ("n_i desc", "adcefb"),
        ("f_f asc", "dbacef"),
        ("f_f desc", "facebd"),
        ("at_dt asc", "cabdfe"),
        ("at_dt desc", "eabdfc"),
        ("b_b asc", "cabdef"),
        ("b_b desc", "acbdef"),
        ("_yz_rk desc", "fedcba"),
        ("score desc", "abcdef"),
        ("n_i asc,s_s desc", "bcefda"),
        ("n_i asc,_yz_id desc", "bfecda"),
    ] {
        assert_eq!(sorted(&index, sort), order, "{sort}");
    }
}

#[test]
fn windows_have_the_first_documents() {
    let index = index();
    let window = |start: &str, rows: &str| {
        keys(&index.search(&[("q", "*:*"), ("sort", "_yz_rk asc"), ("start", start), ("rows", rows)])).join("")
    };
    // A part gives all documents up to the end of the window.
    assert_eq!(window("2", "2"), "abcd");
    assert_eq!(window("0", "0"), "");
    assert_eq!(window("0", "100"), "abcdef");
}

#[test]
fn a_cursor_goes_on_behind_its_document() {
    let index = index();
    for sort in [
        "s_s asc,_yz_id asc",
        "s_s desc,_yz_id asc",
        "n_i desc,_yz_id desc",
        "f_f asc,_yz_id asc",
        "at_dt asc,_yz_id asc",
    ] {
        let whole = sorted(&index, sort);
        let request = super::harness::request(&[("q", "*:*"), ("sort", sort), ("rows", "2"), ("cursorMark", "*")]);
        let order = ombak_search::merge::SortOrder::new(&request.sort, &index.schema).unwrap();
        let (mut read, mut mark) = (String::new(), String::from("*"));
        for _ in 0..10 {
            let part = index.search(&[("q", "*:*"), ("sort", sort), ("rows", "2"), ("cursorMark", &mark)]);
            assert_eq!(part.found_count, 6);
            let merge = ombak_search::merge::Merge { request: &request, order: &order, cursor: None, buckets: &[] };
            read.push_str(&keys(&part).join(""));
            let answer = merge.answer(ombak_search::answer::Header::default(), vec![part]).unwrap();
            if answer.documents.is_empty() {
                break;
            }
            mark = answer.next_cursor_mark.unwrap();
        }
        assert_eq!(read, whole, "{sort}");
    }
}
