//! What changes of an index do.

use super::harness::{NOW_MS, TestIndex, ask, document, keys};
use crate::IndexChange;
use ombak_search::document_id::DocumentId;
use ombak_search::values::Value;

fn found(index: &TestIndex, partitions: &[u32]) -> Vec<String> {
    let answer = ask(index.get(), &[("q", "*:*"), ("sort", "_yz_rk asc,_yz_id asc")], partitions.to_vec(), &|| false);
    keys(&answer.unwrap())
}

#[test]
fn a_put_replaces_and_a_removal_removes() {
    let index = TestIndex::of(&[("a", r#"{"v_i":1}"#), ("b", r#"{"v_i":1}"#)]);
    index.put(&[("a", r#"{"v_i":2}"#)]);
    assert_eq!(index.found_text("v_i:1"), "b");
    assert_eq!(index.found_text("v_i:2"), "a");
    index
        .get()
        .write(vec![IndexChange::Remove { key: b"a".to_vec() }, IndexChange::Remove { key: b"x".to_vec() }], "p")
        .unwrap();
    assert_eq!(index.found_text("*:*"), "b");
    let none = index.change(0, 1, "b", &[]);
    index.get().write(vec![none], "q").unwrap();
    assert_eq!(index.found_text("*:*"), "");
    assert_eq!(index.get().place(), "q");
}

#[test]
fn changes_of_a_write_happen_in_their_order() {
    let index = TestIndex::new();
    let remove = |key: &str| IndexChange::Remove { key: key.as_bytes().to_vec() };
    let changes = vec![
        index.change(0, 1, "a", &[r#"{"v_i":1}"#]),
        index.change(0, 1, "b", &[r#"{"v_i":1}"#]),
        remove("a"),
        index.change(0, 1, "b", &[r#"{"v_i":2}"#]),
        index.change(1, 1, "c", &[r#"{"v_i":3}"#]),
    ];
    index.get().write(changes, "").unwrap();
    assert_eq!(found(&index, &[0, 1]), ["b", "c"]);
    assert_eq!(index.found_text("v_i:2"), "b");
}

#[test]
fn siblings_are_documents_of_their_own() {
    let index = TestIndex::new();
    let sibling = |vtag: &str, json: &str| {
        let mut document = document(&index.schema, 0, "a", json);
        document.id = DocumentId { vtag: Some(vtag.into()), ..document.id };
        document.vtag = Some(vtag.to_owned());
        document
    };
    let documents = vec![sibling("v1", r#"{"v_s":"x"}"#), sibling("v2", r#"{"v_s":"y"}"#)];
    let put = IndexChange::Put { partition: 0, generation: 1, key: b"a".to_vec(), documents };
    index.get().write(vec![put], "").unwrap();
    assert_eq!(index.found_text("*:*"), "a a");
    assert_eq!(index.found_text("v_s:x"), "a");
    let ids: Vec<String> = index.search(&[("q", "_yz_vtag:v2")]).hits.into_iter().map(|hit| hit.id).collect();
    assert_eq!(ids, ["1*t*b*a*0*v2"]);
    index.put(&[("a", r#"{"v_s":"z"}"#)]);
    assert_eq!(index.found_text("*:*"), "a");
}

#[test]
fn a_document_is_found_to_the_end_of_the_second_in_which_it_expires() {
    let index = TestIndex::new();
    let now_secs = u32::try_from(NOW_MS / 1_000).unwrap();
    let put = |key: &str, expires_secs: Option<u32>| {
        let document = crate::IndexDocument { expires_secs, ..document(&index.schema, 0, key, r#"{"v_s":"x"}"#) };
        IndexChange::Put { partition: 0, generation: 1, key: key.as_bytes().to_vec(), documents: vec![document] }
    };
    let of_one_segment = vec![
        put("over", Some(now_secs - 1)),
        put("last", Some(now_secs)),
        put("next", Some(now_secs + 1)),
        put("never", None),
    ];
    index.get().write(of_one_segment, "").unwrap();
    index.get().write(vec![put("alone", Some(now_secs - 1))], "").unwrap();
    assert_eq!(index.found_text("*:*"), "last never next");
    assert_eq!(index.found_text("v_s:x AND NOT _yz_rk:never"), "last next");
    let counted = index.search(&[("q", "*:*"), ("facet", "true"), ("facet.field", "v_s")]);
    assert_eq!(counted.facets.unwrap().fields, [[(Value::String("x".to_owned()), 3)]]);
}

#[test]
fn only_documents_of_the_partitions_asked_for_are_found() {
    let index = TestIndex::new();
    let changes = (0..4).map(|partition| index.change(partition, 1, &format!("k{partition}"), &["{}"])).collect();
    index.get().write(changes, "").unwrap();
    index.get().write(vec![index.change(2, 1, "l2", &["{}"])], "").unwrap();
    assert_eq!(found(&index, &[]), Vec::<String>::new());
    assert_eq!(found(&index, &[2]), ["k2", "l2"]);
    assert_eq!(found(&index, &[0, 3, 9]), ["k0", "k3"]);
}

#[test]
fn a_sweep_removes_what_is_older_than_a_rebuild() {
    let index = TestIndex::new();
    let changes = vec![
        index.change(0, 1, "old", &["{}"]),
        index.change(0, 2, "new", &["{}"]),
        index.change(1, 1, "other", &["{}"]),
    ];
    index.get().write(changes, "").unwrap();
    // A document of the same write is swept too.
    let again = index.change(0, 1, "late", &["{}"]);
    index.get().write(vec![again, IndexChange::Sweep { partition: 0, generation: 2 }], "").unwrap();
    assert_eq!(found(&index, &[0, 1]), ["new", "other"]);
}

#[test]
fn a_bucket_whose_name_is_no_text_is_found() {
    let index = TestIndex::new();
    let put = |bucket: &[u8], key: &str| {
        let mut document = document(&index.schema, 0, key, "{}");
        document.id = DocumentId { bucket: bucket.to_vec(), ..document.id };
        IndexChange::Put { partition: 0, generation: 1, key: key.as_bytes().to_vec(), documents: vec![document] }
    };
    index.get().write(vec![put(b"b", "1"), put(b"\xff", "2")], "").unwrap();
    assert_eq!(index.found_text("_yz_rb:%xFF"), "2");
}

#[test]
fn documents_whose_ids_are_too_long_are_refused_and_counted() {
    let index = TestIndex::new();
    let long = "k".repeat(70_000);
    let changes = vec![index.change(0, 1, "a", &["{}"]), index.change(0, 1, &long, &["{}"])];
    index.get().write(changes, "p").unwrap();
    let mut document = document(&index.schema, 0, &long, "{}");
    document.vtag = None;
    let put = IndexChange::Put { partition: 0, generation: 1, key: b"short".to_vec(), documents: vec![document] };
    index.get().write(vec![put, IndexChange::Remove { key: long.into_bytes() }], "q").unwrap();
    assert_eq!(index.found_text("*:*"), "a");
    assert_eq!(index.get().figures().documents_refused, 2);
    assert_eq!(index.get().place(), "q");
}

#[test]
fn figures_count_documents_and_bytes() {
    let index = TestIndex::new();
    assert_eq!(index.get().figures().documents, 0);
    assert_eq!(index.get().figures().last_commit, None);
    index.put(&[("a", "{}"), ("b", "{}"), ("c", "{}")]);
    index.get().write(vec![IndexChange::Remove { key: b"a".to_vec() }], "").unwrap();
    let figures = index.get().figures();
    assert_eq!((figures.documents, figures.documents_deleted, figures.segments), (2, 1, 1));
    assert_eq!(index.get().partitions().unwrap(), [(0, 3)].into());
    assert!(figures.bytes_on_disk > 0 && figures.last_commit.is_some());
    index.get().check().unwrap();
}

#[test]
fn stored_fields_are_told_in_the_order_of_the_value() {
    let index = TestIndex::of(&[(
        "a",
        r#"{"z_s":"1","text":"no","n_is":[3,1],"m_ss":["y"],"b_tsd":"T x","a_s":"2","x":"no"}"#,
    )]);
    let names = |fl: &str| -> Vec<String> {
        let answer = index.search(&[("q", "*:*"), ("fl", fl)]);
        answer.hits[0].document.fields.iter().map(|(name, _)| name.clone()).collect()
    };
    let own = ["_yz_id", "_yz_rk", "_yz_rt", "_yz_rb"];
    assert_eq!(names("*"), [&["z_s", "n_is", "m_ss", "b_tsd", "a_s"][..], &own[..]].concat());
    assert_eq!(names("a_s,z_s,_yz_rk,nothing"), ["z_s", "a_s", "_yz_rk"]);
    assert_eq!(names("*_s,score"), ["z_s", "a_s"]);
    let answer = index.search(&[("q", "*:*"), ("fl", "n_is,z_s,score")]);
    use ombak_search::answer::FieldValues;
    use ombak_search::values::Value;
    let document = &answer.hits[0].document;
    assert_eq!(document.fields[1].1, FieldValues::Many(vec![Value::Int(3), Value::Int(1)]));
    assert_eq!(document.fields[0].1, FieldValues::One(Value::String("1".into())));
    assert_eq!(document.score, answer.score_max);
}
