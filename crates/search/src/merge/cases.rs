//! Parts and the answer that they make, compared with a plain model: a table of values in their
//! order, in which documents have places.

use super::*;
use crate::answer::{Document, FieldCounts, FieldValues, Header, SearchAnswer};
use crate::dates::Date;
use crate::request::{RangeBuckets, SearchRequest, SortBy, SortKey};
use crate::schema::{DEFAULT_SCHEMA_XML, Schema, default_schema};
use crate::values::Value;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Reading it takes longer than a case of a property.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| default_schema().unwrap());

/// Texts in the order of their bytes. Java would sort the last two the other way round.
const NAMES: [&str; 6] = ["", "Z", "a", "ab", "\u{ff61}", "😀"];
const AGES: [i32; 4] = [i32::MIN, -5, 0, 7];
const MASSES: [f64; 7] = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 2.5, f64::INFINITY, f64::NAN];
const SCORES: [f32; 3] = [0.0, 0.5, 2.0];

/// Where a document is in each table; `None` without a value.
#[derive(Clone, Debug)]
struct Model {
    id: String,
    name: Option<usize>,
    age: Option<usize>,
    mass: Option<usize>,
    is_old: Option<bool>,
    score: usize,
}

impl Model {
    /// The place of a document in a field of the table, and whether it comes behind all others. In
    /// the default schema numbers are 0 if they are missing, and other fields come last.
    fn place(&self, field: &str) -> (bool, usize) {
        match field {
            "name_s" => (self.name.is_none(), self.name.unwrap_or(0)),
            "old_b" => (self.is_old.is_none(), usize::from(self.is_old.unwrap_or(false))),
            "age_i" => (false, self.age.unwrap_or(2)),
            "mass_d" => (false, self.mass.unwrap_or(3)),
            "score" => (false, self.score),
            _ => panic!("{field}"),
        }
    }

    fn compare(&self, other: &Self, sort: &[(&str, bool)]) -> Ordering {
        for (field, is_descending) in sort {
            if *field == "_yz_id" {
                let order = self.id.cmp(&other.id);
                return if *is_descending { order.reverse() } else { order };
            }
            let ((is_last, a), (is_other_last, b)) = (self.place(field), other.place(field));
            let order = if *is_descending { b.cmp(&a) } else { a.cmp(&b) };
            let order = is_last.cmp(&is_other_last).then(order);
            if order.is_ne() {
                return order;
            }
        }
        self.id.cmp(&other.id)
    }

    fn value(&self, field: &str) -> Option<Value> {
        match field {
            "name_s" => self.name.map(|at| Value::String(NAMES[at].into())),
            "old_b" => self.is_old.map(Value::Bool),
            "age_i" => self.age.map(|at| Value::Int(AGES[at])),
            "mass_d" => self.mass.map(|at| Value::Double(MASSES[at])),
            "score" => Some(Value::Float(SCORES[self.score])),
            "_yz_id" => Some(Value::String(self.id.clone())),
            _ => panic!("{field}"),
        }
    }

    fn hit(&self, sort: &[(&str, bool)]) -> Hit {
        let fields = vec![("_yz_id".to_owned(), FieldValues::One(Value::String(self.id.clone())))];
        Hit {
            id: self.id.clone(),
            sort_values: sort.iter().map(|(field, _)| self.value(field)).collect(),
            document: Document { fields, score: None },
        }
    }
}

fn any_model() -> impl Strategy<Value = Model> {
    let place = |length: usize| prop::option::weighted(0.8, 0..length);
    (place(NAMES.len()), place(AGES.len()), place(MASSES.len()), any::<Option<bool>>(), 0..SCORES.len())
        .prop_map(|(name, age, mass, is_old, score)| Model { id: String::new(), name, age, mass, is_old, score })
}

/// Documents with different ids.
fn any_models() -> impl Strategy<Value = Vec<Model>> {
    prop::collection::vec(any_model(), 0..40).prop_map(|mut models| {
        for (at, model) in models.iter_mut().enumerate() {
            model.id = format!("1*t*b*{}*1", (at * 7) % 41);
        }
        models
    })
}

fn any_sort() -> impl Strategy<Value = Vec<(&'static str, bool)>> {
    let field = prop::sample::select(vec!["name_s", "old_b", "age_i", "mass_d", "score"]);
    prop::collection::vec((field, any::<bool>()), 0..4)
}

/// An order without keys sorts by the score.
fn whole_sort<'a>(sort: &[(&'a str, bool)]) -> Vec<(&'a str, bool)> {
    if sort.is_empty() { vec![("score", true)] } else { sort.to_vec() }
}

fn text_of_sort(sort: &[(&str, bool)]) -> String {
    let part =
        |(field, is_descending): &(&str, bool)| format!("{field} {}", if *is_descending { "desc" } else { "asc" });
    sort.iter().map(part).collect::<Vec<_>>().join(",")
}

fn request(pairs: &[(&str, &str)]) -> SearchRequest {
    let pairs: Vec<(String, String)> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SearchRequest::read(&pairs).unwrap()
}

fn order(request: &SearchRequest) -> SortOrder {
    SortOrder::new(&request.sort, &SCHEMA).unwrap()
}

/// What a node answers that has some of the documents.
fn part(models: &[Model], sort: &[(&str, bool)], request: &SearchRequest, cursor: Option<&CursorMark>) -> PartAnswer {
    let order = order(request);
    let mut hits: Vec<Hit> = models.iter().map(|model| model.hit(sort)).collect();
    hits.retain(|hit| cursor.is_none_or(|mark| mark.is_before(hit, &order)));
    hits.sort_by(|a, b| order.compare(a, b));
    hits.truncate(request.window());
    let facets = request.facets.as_ref().map(|_| PartFacets {
        queries: vec![models.iter().filter(|model| model.is_old == Some(true)).count() as u64],
        fields: vec![counts(models)],
        ranges: vec![vec![in_range(models, -10, 0), in_range(models, 0, 10)]],
    });
    let score_max = models.iter().map(|model| SCORES[model.score]).reduce(f32::max);
    PartAnswer { found_count: models.len() as u64, score_max, hits, facets, is_partial: false }
}

/// The names of documents, and how many have each.
fn counts(models: &[Model]) -> Vec<(Value, u64)> {
    let mut counts = BTreeMap::new();
    for name in models.iter().filter_map(|model| model.name) {
        *counts.entry(name).or_insert(0) += 1;
    }
    counts.into_iter().map(|(name, count)| (Value::String(NAMES[name].into()), count)).collect()
}

fn in_range(models: &[Model], low: i32, high: i32) -> u64 {
    models.iter().filter(|model| model.age.is_some_and(|at| (low..high).contains(&AGES[at]))).count() as u64
}

fn buckets(request: &SearchRequest) -> Vec<RangeBuckets> {
    let ranges = request.facets.iter().flat_map(|facets| &facets.ranges);
    ranges.map(|facet| facet.buckets(&SCHEMA, Date::from_unix_ms(0).unwrap()).unwrap()).collect()
}

fn merge(request: &SearchRequest, cursor: Option<&CursorMark>, parts: Vec<PartAnswer>) -> SearchAnswer {
    let (order, buckets) = (order(request), buckets(request));
    Merge { request, order: &order, cursor, buckets: &buckets }.answer(Header::default(), parts).unwrap()
}

fn ids(answer: &SearchAnswer) -> Vec<String> {
    let id = |document: &Document| match &document.fields[0].1 {
        FieldValues::One(Value::String(id)) => id.clone(),
        other => panic!("{other:?}"),
    };
    answer.documents.iter().map(id).collect()
}

/// Documents by the part that has them.
fn divided(models: &[Model], places: &[usize], count: usize) -> Vec<Vec<Model>> {
    let mut parts = vec![Vec::new(); count];
    for (model, place) in models.iter().zip(places.iter().cycle()) {
        parts[place % count].push(model.clone());
    }
    parts
}

fn hit(id: &str, value: Option<Value>) -> Hit {
    Hit { id: id.to_owned(), sort_values: vec![value], document: Document::default() }
}

#[test]
fn missing_values_come_where_the_schema_says() {
    let types = "<types><fieldType name=\"first\" class=\"solr.StrField\" sortMissingFirst=\"true\"/>\
         <fieldType name=\"plain\" class=\"solr.StrField\"/>\
         <fieldType name=\"last_int\" class=\"solr.TrieIntField\" sortMissingLast=\"true\"/>";
    let fields = "<field name=\"first\" type=\"first\"/><field name=\"plain\" type=\"plain\"/>\
         <field name=\"n\" type=\"last_int\"/></fields>";
    let xml = DEFAULT_SCHEMA_XML.replace("<types>", types).replace("</fields>", fields);
    let schema = Schema::read(xml.as_bytes()).unwrap();
    let (text, int) = (|text: &str| Some(Value::String(text.into())), |int| Some(Value::Int(int)));
    for (field, values, ascending, descending) in [
        ("first", [text("a"), None, text("b")], "102", "120"),
        ("plain", [text("a"), None, text("b")], "102", "201"),
        ("a_s", [text("a"), None, text("b")], "021", "201"),
        ("n", [int(-1), None, int(1)], "021", "201"),
        ("a_i", [int(-1), None, int(1)], "012", "210"),
    ] {
        for (is_descending, expected) in [(false, ascending), (true, descending)] {
            let key = SortKey { by: SortBy::Field(field.into()), is_descending };
            let order = SortOrder::new(&[key], &schema).unwrap();
            let mut hits: Vec<Hit> =
                values.iter().enumerate().map(|(at, value)| hit(&at.to_string(), value.clone())).collect();
            hits.sort_by(|a, b| order.compare(a, b));
            let sorted: String = hits.iter().map(|hit| hit.id.as_str()).collect();
            assert_eq!(sorted, expected, "{field} {is_descending}");
        }
    }
}

#[test]
fn fields_without_an_order_are_refused() {
    for (field, is) in [
        ("a_ss", "sort: field a_ss is multi-valued, so documents cannot be sorted by it"),
        ("a_t", "sort: field a_t is text that is split into words; sort by a string field, such as *_s"),
        ("unknown", "sort: field unknown is not indexed, so documents cannot be sorted by it"),
        ("a_p", "sort: field a_p has places, which have no order"),
        ("random_1", "sort: field random_1 sorts by chance, which is not supported"),
    ] {
        let key = SortKey { by: SortBy::Field(field.into()), is_descending: false };
        let error = SortOrder::new(&[key], &SCHEMA).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), is);
    }
}

#[test]
fn an_answer_has_the_sums_of_its_parts() {
    let request = request(&[("q", "x")]);
    let mut first = PartAnswer { found_count: 5, score_max: Some(0.5), ..PartAnswer::default() };
    first.hits = vec![hit("b", Some(Value::Float(0.5))), hit("d", Some(Value::Float(0.25)))];
    let mut second = PartAnswer { found_count: 2, score_max: Some(0.75), is_partial: true, ..PartAnswer::default() };
    second.hits = vec![hit("c", Some(Value::Float(0.75))), hit("a", Some(Value::Float(0.5)))];
    for hit in first.hits.iter_mut().chain(&mut second.hits) {
        hit.document.fields = vec![("_yz_id".to_owned(), FieldValues::One(Value::String(hit.id.clone())))];
    }
    let answer = merge(&request, None, vec![first.clone(), second.clone()]);
    assert_eq!(ids(&answer), ["c", "a", "b", "d"]);
    assert_eq!((answer.found_count, answer.score_max), (7, Some(0.75)));
    assert!(answer.header.unwrap().is_partial);
    assert_eq!(merge(&request, None, vec![]).score_max, Some(0.0));
    let by_age = self::request(&[("sort", "age_i asc"), ("omitHeader", "true")]);
    let answer = merge(&by_age, None, vec![first.clone(), second.clone()]);
    assert!(answer.header.is_some_and(|header| header.is_partial), "only the header can say it");
    second.is_partial = false;
    let answer = merge(&by_age, None, vec![first, second]);
    assert_eq!((answer.score_max, answer.header), (None, None));
}

#[test]
fn facets_are_cut_after_they_are_merged() {
    let request = request(&[
        ("facet", "true"),
        ("facet.field", "n_i"),
        ("facet.limit", "2"),
        ("facet.mincount", "2"),
        ("rows", "0"),
    ]);
    let part = |counts: &[(i32, u64)]| {
        let fields = vec![counts.iter().map(|(value, count)| (Value::Int(*value), *count)).collect()];
        PartAnswer { facets: Some(PartFacets { fields, ..PartFacets::default() }), ..PartAnswer::default() }
    };
    // 10 is in neither part's first two, and 9 comes before 10 as a number.
    let parts = vec![part(&[(1, 3), (2, 2), (10, 2), (9, 1)]), part(&[(3, 3), (9, 3), (10, 2), (4, 1)])];
    let facets = merge(&request, None, parts).facets.unwrap();
    let counts = vec![(Value::Int(9), 4), (Value::Int(10), 4)];
    assert_eq!(facets.fields, [FieldCounts { field: "n_i".into(), counts }]);
}

#[test]
fn parts_with_other_facets_are_refused() {
    let with = request(&[("facet", "true"), ("facet.field", "a_s"), ("facet.query", "x:1")]);
    let order = order(&with);
    let merge = Merge { request: &with, order: &order, cursor: None, buckets: &[] };
    let good = PartFacets { queries: vec![1], fields: vec![vec![]], ranges: vec![] };
    for facets in [
        None,
        Some(PartFacets::default()),
        Some(PartFacets { queries: vec![1, 2], ..good.clone() }),
        Some(PartFacets { fields: vec![], ..good.clone() }),
        Some(PartFacets { ranges: vec![vec![1]], ..good.clone() }),
    ] {
        let part = PartAnswer { facets, ..PartAnswer::default() };
        assert_eq!(merge.answer(Header::default(), vec![part]), Err(MergeError::OtherFacets));
    }
    let many = |from: i32| (from..from + 600_000).map(|n| (Value::Int(n), 1)).collect();
    let part = |from| PartAnswer {
        facets: Some(PartFacets { fields: vec![many(from)], ..good.clone() }),
        ..PartAnswer::default()
    };
    assert!(merge.answer(Header::default(), vec![part(0), part(0)]).is_ok());
    assert_eq!(merge.answer(Header::default(), vec![part(0), part(600_000)]), Err(MergeError::TooManyFacetValues));
}

#[test]
fn marks_of_other_orders_are_refused() {
    let order_of = |sort: &str| order(&request(&[("sort", sort)]));
    let given = order_of("age_i asc,_yz_id asc");
    let hit = Hit { sort_values: vec![None, Some(Value::String("a".into()))], ..Hit::default() };
    let text = CursorMark::of(&hit).to_text(&given);
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')), "{text}");
    assert_eq!(CursorMark::read(&text, &given).unwrap().unwrap().values(), hit.sort_values);
    assert_eq!(CursorMark::read("*", &given), Ok(None));
    for other in ["age_i desc,_yz_id asc", "_yz_id asc,age_i asc", "age_i asc", "age_l asc,_yz_id asc"] {
        assert!(CursorMark::read(&text, &order_of(other)).is_err(), "{other}");
    }
    for bad in ["", "**", "AoE=", "AQ", &text[..text.len() - 2], &format!("{text}AA"), "é"] {
        let error = CursorMark::read(bad, &given).unwrap_err().to_string();
        assert_eq!(error, "cursorMark: it is neither * nor the nextCursorMark of an answer with the same sort");
    }
    // A value of another kind than the field's.
    let hit = Hit { sort_values: vec![Some(Value::Bool(true)), None], ..Hit::default() };
    assert!(CursorMark::read(&CursorMark::of(&hit).to_text(&given), &given).is_err());
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[aé😀]{0,2}".prop_map(Value::String),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        prop::num::f32::ANY.prop_map(Value::Float),
        prop::num::f64::ANY.prop_map(Value::Double),
        (-1_000_000..1_000_000_i64).prop_map(|unix_ms| Value::Date(Date::from_unix_ms(unix_ms).unwrap())),
        any::<Vec<u8>>().prop_map(Value::Bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_parts_of_a_set_make_the_answer_of_the_set(
        models in any_models(),
        sort in any_sort(),
        places in prop::collection::vec(0..5_usize, 1..40),
        count in 1..5_usize,
        start in 0..50_usize,
        rows in 0..50_usize,
        is_reversed in any::<bool>(),
    ) {
        let (start_text, rows_text) = (start.to_string(), rows.to_string());
        let sort_text = text_of_sort(&sort);
        let request = request(&[("sort", sort_text.as_str()), ("start", start_text.as_str()), ("rows", rows_text.as_str())]);
        let sort = whole_sort(&sort);
        let mut parts: Vec<PartAnswer> =
            divided(&models, &places, count).iter().map(|models| part(models, &sort, &request, None)).collect();
        if is_reversed {
            parts.reverse();
        }
        let answer = merge(&request, None, parts);
        let mut whole = models.clone();
        whole.sort_by(|a, b| a.compare(b, &sort));
        let expected: Vec<String> = whole.into_iter().skip(start).take(rows).map(|model| model.id).collect();
        prop_assert_eq!(ids(&answer), expected);
        prop_assert_eq!(answer.found_count, models.len() as u64);
        let best = models.iter().map(|model| SCORES[model.score]).fold(0.0, f32::max);
        prop_assert_eq!(answer.score_max, request.needs_scores().then_some(best));
    }

    #[test]
    fn a_document_of_several_parts_is_told_once(
        models in any_models(),
        sort in any_sort(),
        places in prop::collection::vec(0..3_usize, 1..40),
        others in prop::collection::vec(0..3_usize, 1..40),
    ) {
        let sort_text = text_of_sort(&sort);
        let request = request(&[("sort", sort_text.as_str()), ("rows", "50")]);
        let sort = whole_sort(&sort);
        let mut divided_models = divided(&models, &places, 3);
        for (part, more) in divided_models.iter_mut().zip(divided(&models, &others, 3)) {
            let is_new = |model: &Model| !part.iter().any(|other: &Model| other.id == model.id);
            let more: Vec<Model> = more.into_iter().filter(is_new).collect();
            part.extend(more);
        }
        let parts = divided_models.iter().map(|models| part(models, &sort, &request, None)).collect();
        let answer = merge(&request, None, parts);
        let mut whole = models.clone();
        whole.sort_by(|a, b| a.compare(b, &sort));
        prop_assert_eq!(ids(&answer), whole.into_iter().map(|model| model.id).collect::<Vec<_>>());
        prop_assert_eq!(answer.found_count, models.len() as u64);
    }

    #[test]
    fn a_cursor_reads_every_document_once(
        models in any_models(),
        sort in any_sort(),
        key_at in 0..4_usize,
        is_descending in any::<bool>(),
        places in prop::collection::vec(0..3_usize, 1..40),
        rows in 1..9_usize,
    ) {
        let mut sort = sort;
        sort.insert(key_at.min(sort.len()), ("_yz_id", is_descending));
        let (sort_text, rows_text) = (text_of_sort(&sort), rows.to_string());
        let mut mark = "*".to_owned();
        let mut read = Vec::new();
        loop {
            let request = request(&[
                ("sort", sort_text.as_str()),
                ("rows", rows_text.as_str()),
                ("cursorMark", mark.as_str()),
            ]);
            let cursor = CursorMark::read(&mark, &order(&request)).unwrap();
            let parts = divided(&models, &places, 3);
            let parts = parts.iter().map(|models| part(models, &sort, &request, cursor.as_ref())).collect();
            let answer = merge(&request, cursor.as_ref(), parts);
            prop_assert_eq!(answer.found_count, models.len() as u64);
            read.extend(ids(&answer));
            let next = answer.next_cursor_mark.unwrap();
            prop_assert_eq!(next == mark, answer.documents.is_empty());
            if next == mark {
                break;
            }
            mark = next;
        }
        let mut whole = models.clone();
        whole.sort_by(|a, b| a.compare(b, &sort));
        prop_assert_eq!(read, whole.into_iter().map(|model| model.id).collect::<Vec<_>>());
    }

    #[test]
    fn the_facets_of_parts_make_those_of_the_set(
        models in any_models(),
        places in prop::collection::vec(0..4_usize, 1..40),
        limit in -1..8_i32,
        count_min in 0..4_u64,
        is_by_count in any::<bool>(),
    ) {
        let (limit_text, count_text) = (limit.to_string(), count_min.to_string());
        let request = request(&[
            ("facet", "true"),
            ("facet.query", "old_b:true"),
            ("facet.field", "name_s"),
            ("facet.limit", limit_text.as_str()),
            ("facet.mincount", count_text.as_str()),
            ("facet.sort", if is_by_count { "count" } else { "index" }),
            ("facet.range", "age_i"),
            ("facet.range.start", "-10"),
            ("facet.range.end", "10"),
            ("facet.range.gap", "10"),
        ]);
        let sort = whole_sort(&[]);
        let parts = divided(&models, &places, 4);
        let parts = parts.iter().map(|models| part(models, &sort, &request, None)).collect();
        let facets = merge(&request, None, parts).facets.unwrap();
        let mut expected = counts(&models);
        expected.retain(|(_, count)| *count >= count_min);
        if is_by_count {
            expected.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        }
        expected.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        prop_assert_eq!(&facets.fields[0].counts, &expected);
        let old_count = models.iter().filter(|model| model.is_old == Some(true)).count() as u64;
        prop_assert_eq!(facets.queries, vec![("old_b:true".to_owned(), old_count)]);
        let mut ranges = vec![(Value::Int(-10), in_range(&models, -10, 0)), (Value::Int(0), in_range(&models, 0, 10))];
        ranges.retain(|(_, count)| *count >= count_min);
        prop_assert_eq!(&facets.ranges[0].counts, &ranges);
        prop_assert_eq!(&facets.ranges[0].end, &Value::Int(10));
    }

    #[test]
    fn values_have_one_order(values in prop::collection::vec(any_value(), 3)) {
        let [a, b, c] = &values[..] else { panic!("three") };
        prop_assert_eq!(compare_values(a, a), Ordering::Equal);
        prop_assert_eq!(compare_values(a, b), compare_values(b, a).reverse());
        if compare_values(a, b).is_le() && compare_values(b, c).is_le() {
            prop_assert!(compare_values(a, c).is_le());
        }
    }

    #[test]
    fn marks_are_read_back(model in any_model(), sort in any_sort()) {
        let sort_text = text_of_sort(&sort);
        let order = order(&request(&[("sort", sort_text.as_str())]));
        let hit = model.hit(&whole_sort(&sort));
        let text = CursorMark::of(&hit).to_text(&order);
        let mark = CursorMark::read(&text, &order).unwrap().unwrap();
        prop_assert_eq!(mark.to_text(&order), text);
        prop_assert!(!mark.is_before(&hit, &order));
        prop_assert_eq!(mark.values().len(), hit.sort_values.len());
    }

    #[test]
    fn whatever_is_given_as_a_mark_is_one_or_an_error(bytes in any::<Vec<u8>>(), text in "\\PC{0,20}") {
        let order = order(&request(&[("sort", "name_s asc,mass_d asc,_yz_id asc")]));
        let _ = CursorMark::read(&text, &order);
        // The right beginning, and anything behind it.
        let begin = CursorMark::of(&Hit::default()).to_text(&order);
        let text = format!("{}{}", &begin[..12], bytes.iter().map(|byte| char::from(b'A' + byte % 26)).collect::<String>());
        if let Ok(Some(mark)) = CursorMark::read(&text, &order) {
            prop_assert_eq!(mark.values().len(), 3);
        }
    }
}
