//! Each form of a query.

use super::harness::TestIndex;
use crate::IndexError;

/// Documents as clients' suites have them.
fn people() -> TestIndex {
    TestIndex::of(&[
        (
            "k1",
            r#"{"name_s":"bryan fink","age_i":32,"groups_ss":["F","G"],"body_t":"The quick brown fox","multi_ss":"t","ok_b":true,
                "float_tf":3.14,"at_dt":"2019-12-31T00:00:00Z","big_l":9000000000,"text":"bitcask"}"#,
        ),
        (
            "k2",
            r#"{"name_s":"Gina","age_i":30,"groups_ss":["H"],"body_t":"Quick foxes jump; brown dogs sleep","multi_ss":"two",
                "ok_b":false,"float_tf":-1.5,"at_dt":"2019-01-01T12:00:00Z","text":"contain your entire keyspace"}"#,
        ),
        ("k3", r#"{"name_s":"ryan zezeski","age_i":33,"body_t":"brown quick","counter":83475,"set":["frijoles","x"]}"#),
        ("k4", r#"{"name_s":"","age_i":-5,"arroz_register":"frijoles","name_register":"Chris P","at_dt":"NOW"}"#),
        ("k5", r#"{"other":"nothing is kept"}"#),
    ])
}

#[test]
fn queries_of_clients_find_what_they_find_in_riak() {
    let index = people();
    for (query, found) in [
        ("*:*", "k1 k2 k3 k4 k5"),
        ("name_s:Gina", "k2"),
        ("name_s:gina", ""),
        ("groups_ss:(F OR H)", "k1 k2"),
        ("groups_ss:F AND groups_ss:G", "k1"),
        ("groups_ss:F AND groups_ss:H", ""),
        ("groups_ss:F OR groups_ss:H", "k1 k2"),
        ("age_i:[0 TO 100] AND NOT age_i:33", "k1 k2"),
        ("(NOT age_i:33)", "k1 k2 k4 k5"),
        ("NOT age_i:33", "k1 k2 k4 k5"),
        ("age_i:33 OR (NOT age_i:33)", "k3"),
        ("age_i:[30 TO 33]", "k1 k2 k3"),
        ("age_i:{30 TO 33}", "k1"),
        ("age_i:{30 TO 33]", "k1 k3"),
        ("age_i:[* TO 30}", "k4"),
        ("age_i:[31 TO *]", "k1 k3"),
        ("age_i:[* TO *]", "k1 k2 k3 k4"),
        ("age_i:\\-5", "k4"),
        ("age_i:[2147483647 TO *]", ""),
        ("age_i:{2147483647 TO *]", ""),
        ("name_s:\"bryan fink\"", "k1"),
        ("name_s:\"bryan\"", ""),
        ("name_s:*ryan*", "k1 k3"),
        ("name_s:*Gi*", "k2"),
        ("name_s:?ina", "k2"),
        ("name_s:?ryan*", "k1"),
        ("multi_ss:t*", "k1 k2"),
        ("groups_ss:*", "k1 k2"),
        ("name_s:/br.*/", "k1"),
        ("name_s:/.*n.*/", "k1 k2 k3"),
        ("name_s:/bryan/", ""),
        ("name_s:[b TO h]", "k1"),
        ("name_s:[G TO \"bryan fink\"]", "k1 k2"),
        ("name_s:{G TO \"bryan fink\"}", "k2"),
        ("name_s:{Gina TO *}", "k1 k3"),
        ("name_s:[* TO Gina]", "k2 k4"),
        ("name_s:[* TO Gina}", "k4"),
        ("name_s:brian\\ fink~1", "k1"),
        ("name_s:Gian~1", "k2"),
        ("name_s:Gin~0", ""),
        ("text:bitcask", "k1"),
        ("text:\"bitcask\"", "k1"),
        ("text:contain AND text:your AND text:entire AND text:keyspace", "k2"),
        ("counter:83475", "k3"),
        ("set:frijoles", "k3"),
        ("arroz_register:frijoles", "k4"),
        ("name_register:Chris*", "k4"),
        ("float_tf:3.14", "k1"),
        ("float_tf:[-2 TO 3.14]", "k1 k2"),
        ("float_tf:[-2 TO 3.14}", "k2"),
        ("float_tf:{-1.5 TO *]", "k1"),
        ("big_l:9000000000", "k1"),
        ("ok_b:true", "k1"),
        ("ok_b:false", "k2"),
        ("ok_b:[false TO true]", "k1 k2"),
        ("ok_b:{false TO *]", "k1"),
        ("unknown:x", ""),
        ("unknown:*", ""),
        ("age_i:3*", ""),
    ] {
        assert_eq!(index.found_text(query), found, "{query}");
    }
}

#[test]
fn fields_of_riak_are_searched_like_others() {
    let index = people();
    for (query, found) in [
        ("_yz_rk:k1", "k1"),
        ("_yz_rk:k*", "k1 k2 k3 k4 k5"),
        ("_yz_rk:[k2 TO k3]", "k2 k3"),
        ("_yz_rt:t AND _yz_rb:b AND _yz_rk:k3", "k3"),
        ("_yz_rb:c", ""),
        ("_yz_pn:0", "k1 k2 k3 k4 k5"),
        ("_yz_pn:1", ""),
        ("_yz_fpn:0 AND _yz_rk:k5", "k5"),
        ("_yz_vtag:*", "k1 k2 k3 k4 k5"),
        ("_yz_vtag:vk4", "k4"),
        ("_yz_err:1", ""),
        ("_yz_id:1\\*t\\*b\\*k2\\*0", "k2"),
        ("_yz_ed:*", "k1 k2 k3 k4 k5"),
    ] {
        assert_eq!(index.found_text(query), found, "{query}");
    }
    let mut broken = super::harness::document(&index.schema, 0, "k6", "{}");
    broken.has_error = true;
    let put = crate::IndexChange::Put { partition: 0, generation: 1, key: b"k6".to_vec(), documents: vec![broken] };
    index.get().write(vec![put], "").unwrap();
    assert_eq!(index.found_text("_yz_err:1"), "k6");
}

#[test]
fn words_of_texts_are_found_in_any_case_and_in_phrases() {
    let index = people();
    for (query, found) in [
        ("body_t:quick", "k1 k2 k3"),
        ("body_t:QUICK", "k1 k2 k3"),
        ("body_t:fox", "k1"),
        ("body_t:fox*", "k1 k2"),
        ("body_t:FOX*", "k1 k2"),
        ("body_t:F?X*", "k1 k2"),
        ("body_t:/FO.*/", "k1 k2"),
        ("body_t:bornw~2", "k1 k2 k3"),
        ("body_t:Borwn~1", "k1 k2 k3"),
        ("body_t:[dogs TO foxes]", "k1 k2"),
        ("body_t:[A TO C]", "k1 k2 k3"),
        ("body_t:\"quick brown\"", "k1"),
        ("body_t:\"brown quick\"", "k3"),
        ("body_t:\"quick fox\"~1", "k1"),
        ("body_t:\"quick fox\"", ""),
        ("body_t:\"quick brown\"~2", "k1 k2 k3"),
        ("body_t:\"quick brown\"~1", "k1"),
        ("body_t:\"fox the\"~3", ""),
        ("body_t:\"fox the\"~4", "k1"),
        ("body_t:\"the fox\"~2", "k1"),
        ("body_t:(+quick -fox)", "k2 k3"),
        ("body_t:(quick fox)", "k1 k2 k3"),
        ("body_t:(+quick +jump)", "k2"),
        ("body_t:quick^5", "k1 k2 k3"),
        ("body_t:*", "k1 k2 k3"),
        ("body_t:\"\"", ""),
        ("body_t:;", ""),
        ("body_t:quick AND body_t:;", "k1 k2 k3"),
        ("body_t:jump-sleep", "k2"),
    ] {
        assert_eq!(index.found_text(query), found, "{query}");
    }
    // A word that becomes several terms follows the operator.
    let keys = |operator| {
        super::harness::keys(&index.search(&[("q", "body_t:jump-fox"), ("q.op", operator), ("sort", "_yz_rk asc")]))
    };
    assert_eq!(keys("OR"), ["k1", "k2"]);
    assert_eq!(keys("AND"), Vec::<String>::new());
}

#[test]
fn dates_are_found_by_their_math() {
    let index = people();
    for (query, found) in [
        ("at_dt:\"2019-12-31T00:00:00Z\"", "k1"),
        ("at_dt:2019\\-12\\-31T00\\:00\\:00Z", "k1"),
        ("at_dt:NOW", "k4"),
        ("at_dt:[NOW-1DAY TO NOW]", "k1 k4"),
        ("at_dt:[NOW-1DAY TO NOW}", "k1"),
        ("at_dt:{NOW-1DAY TO NOW]", "k4"),
        ("at_dt:[NOW/YEAR-1YEAR TO NOW/YEAR}", "k1 k2"),
        ("at_dt:[2019-01-01T00:00:00Z TO 2019-06-01T00:00:00Z]", "k2"),
        ("at_dt:[* TO *]", "k1 k2 k4"),
    ] {
        assert_eq!(index.found_text(query), found, "{query}");
    }
}

#[test]
fn what_fits_no_field_is_an_error() {
    let index = people();
    for (query, part) in [
        ("age_i:old", "Invalid value: 'old' for field age_i: an integer"),
        ("age_i:[1 TO x]", "'x' for field age_i"),
        ("at_dt:today", "Invalid Date String: 'today'"),
        ("at_dt:[NOW/WEEK TO *]", "Invalid Date String: 'NOW/WEEK'"),
        ("float_tf:x", "field float_tf"),
    ] {
        match index.try_search(&[("q", query)]) {
            Err(IndexError::BadQuery(text)) => assert!(text.contains(part), "{query}: {text}"),
            other => panic!("{query}: {other:?}"),
        }
    }
    let strict = ombak_search::schema::DEFAULT_SCHEMA_XML.replace("<dynamicField name=\"*\" type=\"ignored\"/>", "");
    let strict = TestIndex::with_schema(ombak_search::schema::Schema::read(strict.as_bytes()).unwrap());
    for query in ["x:1", "x:*", "x:[1 TO 2]", "x:a*", "x:/a/", "x:a~1", "x:\"a\"", "age_i:1 OR x:1"] {
        let error = strict.try_search(&[("q", query)]).unwrap_err();
        assert_eq!(error, IndexError::BadQuery("undefined field x".into()), "{query}");
    }
}

#[test]
fn filters_narrow_and_do_not_score() {
    let index = people();
    let plain = index.search(&[("q", "body_t:quick"), ("fl", "*,score")]);
    let filtered = index.search(&[
        ("q", "body_t:quick"),
        ("fq", "age_i:[30 TO 32]"),
        ("fq", "NOT groups_ss:H"),
        ("fl", "*,score"),
    ]);
    assert_eq!(super::harness::keys(&filtered), ["k1"]);
    let score = |answer: &ombak_search::merge::PartAnswer| {
        answer.hits.iter().find(|hit| hit.id.contains("k1")).and_then(|hit| hit.document.score)
    };
    assert_eq!(score(&plain), score(&filtered));
    assert!(score(&plain).unwrap() > 0.0);
    assert_eq!(filtered.score_max, score(&filtered));
}

#[test]
fn better_documents_come_first() {
    let index = people();
    let keys = |query| super::harness::keys(&index.search(&[("q", query)]));
    assert_eq!(keys("body_t:quick OR body_t:fox")[0], "k1");
    assert_eq!(keys("name_s:Gina^10 OR body_t:quick")[0], "k2");
    assert_eq!(keys("body_t:quick^0.1 OR age_i:33^100")[0], "k3");
}

#[test]
fn a_request_without_a_query_finds_nothing() {
    let answer = people().search(&[("rows", "5")]);
    assert_eq!((answer.found_count, answer.hits.len(), answer.score_max), (0, 0, None));
}
