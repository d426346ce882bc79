//! Parameters, and what a search asks for with them.

use super::limits::*;
use super::*;
use crate::dates::Date;
use crate::query::Operator;
use crate::schema::{DEFAULT_SCHEMA_XML, Schema, default_schema};
use crate::values::Value;
use proptest::prelude::*;
use std::sync::LazyLock;

/// Reading it takes longer than a case of a property.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| default_schema().unwrap());

/// Pairs out of a text such as `q=a&rows=1`; values are as they are.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name.to_owned(), value.to_owned())
    };
    text.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

fn read(text: &str) -> SearchRequest {
    SearchRequest::read(&pairs(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    match SearchRequest::read(&pairs(text)) {
        Ok(request) => panic!("{text}: {request:?}"),
        Err(error) => error.to_string(),
    }
}

fn key(name: &str, is_descending: bool) -> SortKey {
    SortKey { by: SortBy::Field(name.to_owned()), is_descending }
}

#[test]
fn a_request_without_parameters_has_defaults() {
    let request = read("");
    let expected = SearchRequest {
        query: None,
        filters: vec![],
        default_field: None,
        operator: None,
        sort: vec![],
        start: 0,
        rows: 10,
        fields: FieldList::default(),
        facets: None,
        cursor_mark: None,
        format: Format::Xml,
        echo: Some(vec![]),
        omits_header: false,
        time_allowed_ms: None,
    };
    assert_eq!(request, expected);
    assert!(request.fields.wants("a_s") && !request.fields.has_score);
    assert!(request.needs_scores());
    assert_eq!(read("q=&df=&q.op=&sort=&wt=&fl=&echoParams=").query, None);
}

#[test]
fn parameters_have_their_effect() {
    let request = read(
        "q=a b&fq=x:1&fq=y:2&fq=&fl=a_s,*_i&fl=score&df=text&q.op=and&sort=age_i asc, score desc&start=5&rows=0\
         &wt=json&omitHeader=true&timeAllowed=250",
    );
    assert_eq!(request.query.as_deref(), Some("a b"));
    assert_eq!(request.filters, ["x:1", "y:2"]);
    assert_eq!(request.default_field.as_deref(), Some("text"));
    assert_eq!(request.operator, Some(Operator::And));
    assert_eq!(request.sort, [key("age_i", false), SortKey { by: SortBy::Score, is_descending: true }]);
    assert_eq!((request.start, request.rows, request.window()), (5, 0, 5));
    assert_eq!(request.format, Format::Json);
    assert!(request.omits_header && request.fields.has_score);
    assert_eq!(request.time_allowed_ms, Some(250));
    for (name, is_wanted) in [("a_s", true), ("b_s", false), ("b_i", true), ("score", false)] {
        assert_eq!(request.fields.wants(name), is_wanted, "{name}");
    }
}

#[test]
fn numbers_are_within_limits() {
    assert_eq!(read("rows=10000&start=100000").window(), ROWS_MAX + START_MAX);
    assert_eq!(read("timeAllowed=0").time_allowed_ms, None);
    assert_eq!(read("timeAllowed=-1").time_allowed_ms, None);
    for (text, is) in [
        ("rows=asdf", "rows: asdf is no whole number; a number from 0 to 10000 is needed"),
        ("rows=", "rows:  is no whole number; a number from 0 to 10000 is needed"),
        ("rows=1.0", "rows: 1.0 is no whole number; a number from 0 to 10000 is needed"),
        (
            "rows=99999999999999999999",
            "rows: 99999999999999999999 is no whole number; a number from 0 to 10000 is needed",
        ),
        (
            "rows=10001",
            "rows: 10001 is out of range; a number from 0 to 10000 is needed; cursorMark reads more, page by page",
        ),
        ("start=-1", "start: -1 is out of range; a number from 0 to 100000 is needed; cursorMark reads on from there"),
    ] {
        assert_eq!(error(text), is);
    }
}

#[test]
fn orders_are_read_as_in_solr() {
    let score = |is_descending| SortKey { by: SortBy::Score, is_descending };
    for (text, keys) in [
        ("", vec![]),
        ("  ", vec![]),
        (",", vec![]),
        ("a_i asc", vec![key("a_i", false)]),
        ("a_i DESC", vec![key("a_i", true)]),
        ("a_i top,b_i bottom", vec![key("a_i", true), key("b_i", false)]),
        ("  a_i   asc ,\tscore desc , ", vec![key("a_i", false), score(true)]),
        ("score asc", vec![score(false)]),
        ("info.city_s asc", vec![key("info.city_s", false)]),
        ("e@a_s desc", vec![key("e@a_s", true)]),
    ] {
        assert_eq!(read(&format!("sort={text}")).sort, keys, "{text}");
    }
    for (text, is) in [
        ("down", "sort: down is no order; write FIELD asc or FIELD desc"),
        ("a_i up", "sort: a_i up is no order"),
        ("a_i", "sort: a_i is no order"),
        ("a_i asc b_i desc", "sort: a_i asc b_i desc is no order"),
        ("a_i asc,,b_i asc", "sort:  is no order"),
        ("sum(a_i,b_i) desc", "sort: cannot sort by sum(a_i: only fields and score are supported"),
        ("_docid_ asc", "sort: cannot sort by _docid_: only fields and score are supported"),
    ] {
        assert!(error(&format!("sort={text}")).starts_with(is), "{text}: {}", error(&format!("sort={text}")));
    }
}

#[test]
fn scores_are_needed_to_sort_or_to_tell_them() {
    for (text, needs) in
        [("", true), ("sort=a_i asc", false), ("sort=a_i asc,score asc", true), ("sort=a_i asc&fl=*,score", true)]
    {
        assert_eq!(read(text).needs_scores(), needs, "{text}");
    }
}

#[test]
fn a_cursor_needs_an_order_and_no_start() {
    let request = read("cursorMark=*&sort=age_i asc,_yz_id asc&start=0");
    assert_eq!(request.cursor_mark.as_deref(), Some("*"));
    assert_eq!(read("cursorMark=").cursor_mark, None);
    for (text, is) in [
        ("cursorMark=*", "cursorMark: a cursor needs an order in which no documents are equal; add _yz_id asc to sort"),
        ("cursorMark=*&sort=age_i asc", "cursorMark: a cursor needs an order"),
        ("cursorMark=*&sort=_yz_id asc&start=1", "cursorMark: a cursor begins behind the document that it names"),
        ("cursorMark=*&sort=_yz_id asc&timeAllowed=1", "cursorMark: a cursor cannot be used with timeAllowed"),
    ] {
        assert!(error(text).starts_with(is), "{text}: {}", error(text));
    }
}

#[test]
fn parameters_are_repeated_where_solr_allows_it() {
    assert_eq!(read("rows=1&rows=1").rows, 1);
    for name in ["q", "df", "sort", "rows", "wt", "cursorMark", "facet", "echoParams"] {
        assert_eq!(error(&format!("{name}=true&{name}=false")), format!("{name}: it has several values; give one"));
    }
}

#[test]
fn what_is_not_there_is_named() {
    for (text, is) in [
        ("stats=true", "stats: this parameter is not supported; leave it out"),
        ("hl=on&hl.fl=a_s", "hl: this parameter is not supported; leave it out"),
        ("group=true&group.field=a_s", "group: this parameter is not supported; leave it out"),
        ("facet=true&facet.pivot=a_s,b_s", "facet.pivot: this parameter is not supported; leave it out"),
        ("facet=true&facet.missing=true", "facet.missing: true is not supported; false is"),
        ("facet=true&facet.prefix=a", "facet.prefix: this parameter is not supported; leave it out"),
        ("facet=true&facet.offset=1", "facet.offset: 1 is not supported; 0 is"),
        ("facet=true&f.a_s.facet.prefix=a", "f.a_s.facet.prefix: this parameter is not supported; leave it out"),
        ("json.nl=map", "json.nl: map is not supported; flat is"),
        ("json.wrf=f", "json.wrf: this parameter is not supported; leave it out"),
        ("defType=edismax", "defType: edismax is not supported; lucene is"),
        ("debugQuery=maybe", "debugQuery: this parameter is not supported; leave it out"),
        ("qf=a_s", "qf: this parameter is not supported; leave it out"),
        ("wt=csv", "wt: csv is not supported; json or xml is"),
        ("q.op=xor", "q.op: xor is not supported; AND or OR is"),
        ("echoParams=some", "echoParams: some is not supported; none, explicit or all is"),
        ("facet=maybe", "facet: maybe is neither true nor false"),
        ("fl=sum(a_i)", "fl: sum(a_i) is no name of a field; functions, [transformers] and new names"),
        ("fl=name:a_s", "fl: name:a_s is no name of a field"),
        ("fl=[explain]", "fl: [explain] is no name of a field"),
    ] {
        assert!(error(text).starts_with(is), "{text}: {}", error(text));
    }
}

#[test]
fn what_changes_nothing_is_taken() {
    for text in [
        "indent=true&_=1393000&version=2.2&presort=key&op=and",
        "hl=false&hl.fl=a_s&stats=off&group=no&debugQuery=false&spellcheck.q=x&mlt.fl=a",
        "json.nl=flat&defType=lucene&debug=false&qt=/select",
        "facet=false&facet.pivot=a,b&facet.limit=x&f.a.facet.prefix=y",
        "facet=true&facet.method=fc&facet.offset=0&facet.missing=false&facet.range.other=none",
    ] {
        read(text);
    }
}

#[test]
fn facets_are_read_for_each_field() {
    let request = read(
        "facet=on&facet.field=a_s&facet.field=b_i&facet.field=a_s&facet.query=x:1&facet.query=y:[1 TO 2]\
         &facet.mincount=2&facet.limit=5&f.b_i.facet.limit=-1&f.b_i.facet.mincount=-1&f.a_s.facet.sort=index\
         &facet.range=b_i&f.b_i.facet.range.start=0&facet.range.start=7&facet.range.end=10&facet.range.gap=5\
         &facet.range.hardend=true",
    );
    let facets = request.facets.unwrap();
    assert_eq!(facets.queries, ["x:1", "y:[1 TO 2]"]);
    let field = |field: &str, limit, count_min, order| FieldFacet { field: field.to_owned(), limit, count_min, order };
    assert_eq!(facets.fields, [field("a_s", Some(5), 2, FacetOrder::Value), field("b_i", None, 0, FacetOrder::Value)]);
    let range = RangeFacet {
        field: "b_i".into(),
        start: "0".into(),
        end: "10".into(),
        gap: "5".into(),
        has_hard_end: true,
        count_min: 0,
    };
    assert_eq!(facets.ranges, [range]);
    for (text, limit, order) in [
        ("facet.field=a", Some(100), FacetOrder::Count),
        ("facet.field=a&facet.limit=0", Some(0), FacetOrder::Value),
        ("facet.field=a&facet.limit=-1", None, FacetOrder::Value),
        ("facet.field=a&facet.limit=-1&facet.sort=count", None, FacetOrder::Count),
        ("facet.field=a&facet.sort=true", Some(100), FacetOrder::Count),
        ("facet.field=a&facet.sort=false", Some(100), FacetOrder::Value),
    ] {
        let facets = read(&format!("facet=true&{text}")).facets.unwrap();
        assert_eq!((facets.fields[0].limit, facets.fields[0].order), (limit, order), "{text}");
    }
}

#[test]
fn facets_that_are_none_are_named() {
    for (text, is) in [
        ("facet.range=a_i", "facet.range.start: it is needed with facet.range"),
        ("facet.range=a_i&facet.range.start=1&facet.range.end=2", "facet.range.gap: it is needed with facet.range"),
        ("facet.field=a&facet.sort=size", "facet.sort: size is not supported; count or index is"),
        ("facet.field=a&f.a.facet.limit=10001", "f.a.facet.limit: 10001 is out of range"),
        ("facet.field=a&facet.mincount=x", "facet.mincount: x is no whole number"),
        ("facet.field={!ex=x}a", "facet.field: local parameters {!...} are not supported"),
        ("facet.field=a,b", "facet.field: a,b is no name of a field"),
        ("facet.field=", "facet.field:  is no name of a field"),
    ] {
        let error = error(&format!("facet=true&{text}"));
        assert!(error.starts_with(is), "{text}: {error}");
    }
}

#[test]
fn the_echo_has_the_parameters_in_their_order() {
    let echo = |text: &str| read(text).echo;
    let expected = vec![
        ("q".to_owned(), vec!["a".to_owned()]),
        ("fq".to_owned(), vec!["x".to_owned(), "y".to_owned()]),
        ("wt".to_owned(), vec!["json".to_owned()]),
    ];
    assert_eq!(echo("q=a&fq=x&wt=json&fq=y"), Some(expected));
    assert_eq!(echo("q=a&echoParams=NONE"), None);
    let all = echo("echoParams=all").unwrap();
    assert_eq!(all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["echoParams", "rows"]);
}

#[test]
fn queries_have_the_fields_and_operators_of_the_request_or_the_schema() {
    let queries = read("q=a b&df=x_s&q.op=AND&fq=-y:1&facet=true&facet.query=c").read_queries(&SCHEMA).unwrap();
    assert_eq!(queries.query.unwrap().to_string(), "+x_s:a +x_s:b");
    assert_eq!(queries.filters[0].to_string(), "-y:1");
    assert_eq!(queries.facets[0].to_string(), "x_s:c");
    assert_eq!(read("").read_queries(&SCHEMA).unwrap().query, None);
    for (text, is) in [
        ("q=ffffff", "q: at character 0: a word without a field needs a default field (parameter df)"),
        ("q=*:*&fq=a:[1", "fq: at character 2: "),
        ("q=*:*&facet=true&facet.query=(", "facet.query: at character "),
    ] {
        let error = read(text).read_queries(&SCHEMA).unwrap_err().to_string();
        assert!(error.starts_with(is), "{text}: {error}");
    }
}

fn facet(field: &str, start: &str, end: &str, gap: &str, has_hard_end: bool) -> RangeFacet {
    let text = str::to_owned;
    RangeFacet { field: text(field), start: text(start), end: text(end), gap: text(gap), has_hard_end, count_min: 0 }
}

fn buckets(facet: &RangeFacet) -> Result<RangeBuckets, RequestError> {
    facet.buckets(&SCHEMA, Date::from_unix_ms(0).unwrap())
}

#[test]
fn ranges_lead_from_the_start_to_the_end() {
    let ints = |start: &str, end: &str, gap: &str, has_hard_end: bool| -> Vec<i32> {
        let buckets = buckets(&facet("a_i", start, end, gap, has_hard_end)).unwrap();
        let int = |value: &Value| if let Value::Int(int) = value { *int } else { panic!("{value:?}") };
        assert_eq!(buckets.count() + 1, buckets.bounds.len());
        buckets.bounds.iter().map(int).collect()
    };
    assert_eq!(ints("0", "10", "5", false), [0, 5, 10]);
    assert_eq!(ints("0", "12", "5", false), [0, 5, 10, 15]);
    assert_eq!(ints("0", "12", "5", true), [0, 5, 10, 12]);
    assert_eq!(ints("3", "3", "5", false), [3]);
    assert_eq!(ints("-2", "0", "1", false), [-2, -1, 0]);
    let dates = buckets(&facet("a_dt", "NOW/YEAR", "1970-03-15T00:00:00Z", "+1MONTH", false)).unwrap();
    let texts: Vec<String> = dates
        .bounds
        .iter()
        .map(|value| if let Value::Date(date) = value { date.to_string() } else { panic!("{value:?}") })
        .collect();
    assert_eq!(texts, ["1970-01-01T00:00:00Z", "1970-02-01T00:00:00Z", "1970-03-01T00:00:00Z", "1970-04-01T00:00:00Z"]);
    assert_eq!(dates.gap, Gap::Steps("+1MONTH".into()));
    let floats = buckets(&facet("a_f", "0", "1", "0.5", false)).unwrap();
    assert_eq!(floats.bounds, [Value::Float(0.0), Value::Float(0.5), Value::Float(1.0)]);
}

#[test]
fn ranges_that_lead_nowhere_are_refused() {
    let date = "1970-01-01T00:00:00Z";
    for (bad, is) in [
        (facet("a_i", "0", "10", "0", false), "facet.range.gap: a gap leads from the start towards the end"),
        (facet("a_i", "0", "10", "-1", false), "facet.range.gap: a gap leads from the start towards the end"),
        (facet("a_i", "0", "10", "x", false), "facet.range.gap: an integer from"),
        (facet("a_i", "10", "0", "1", false), "facet.range.end: the end comes before the start"),
        (facet("a_i", "0", "10001", "1", false), "facet.range.gap: there are more than 10000"),
        (facet("a_i", "0", "2147483647", "2147483646", false), "facet.range.gap: a gap leads"),
        (facet("a_d", "1e300", "2e300", "1", false), "facet.range.gap: a gap leads"),
        (facet("a_d", "0", "Infinity", "1", false), "facet.range.end: a number is needed"),
        (facet("a_d", "NaN", "1", "1", false), "facet.range.start: a number is needed"),
        (facet("a_dt", date, "NOW+1YEAR", "/YEAR", false), "facet.range.gap: a gap leads"),
        (facet("a_dt", date, "NOW+1YEAR", "1DAY", false), "facet.range.gap: a gap leads"),
        (facet("a_dt", date, "soon", "+1DAY", false), "facet.range.end: a date is written"),
        (facet("a_dt", date, "NOW+9YEARS", "+1SECOND", false), "facet.range.gap: there are more than 10000"),
        (facet("a_s", "a", "b", "c", false), "facet.range: field a_s has neither numbers nor dates"),
    ] {
        let error = buckets(&bad).unwrap_err().to_string();
        assert!(error.starts_with(is), "{bad:?}: {error}");
    }
    assert_eq!(buckets(&facet("a_i", "0", "10000", "1", false)).unwrap().count(), FACET_RANGES_MAX);
    let schema = DEFAULT_SCHEMA_XML.replace("<dynamicField name=\"*\" type=\"ignored\"/>", "");
    let error = facet("x", "0", "1", "1", false)
        .buckets(&Schema::read(schema.as_bytes()).unwrap(), Date::from_unix_ms(0).unwrap())
        .unwrap_err();
    assert_eq!(error.to_string(), "facet.range: the schema has no field x");
}

#[test]
fn messages_are_requests() {
    let message = SearchMessage { query: b"name_s:a*", ..SearchMessage::default() };
    let request = SearchRequest::of_message(&message).unwrap();
    assert_eq!(request.query.as_deref(), Some("name_s:a*"));
    assert!(request.fields.has_all && request.fields.has_score);
    let message = SearchMessage {
        query: b"a",
        rows: Some(3),
        start: Some(2),
        sort: Some(b"age_i asc"),
        filter: Some(b"x:1"),
        default_field: Some(b"text"),
        operator: Some(b"and"),
        fields: vec![b"a_s", b"b_s"],
        presort: Some(b"key"),
    };
    let request = SearchRequest::of_message(&message).unwrap();
    assert_eq!((request.rows, request.start, request.sort.as_slice()), (3, 2, &[key("age_i", false)][..]));
    assert_eq!(request.filters, ["x:1"]);
    assert_eq!(request.operator, Some(Operator::And));
    // The sort adds the score.
    assert!(request.fields.has_score && request.fields.wants("b_s") && !request.fields.wants("c_s"));
    for (message, is) in [
        (SearchMessage { filter: Some(b"\xff"), ..message.clone() }, "filter: it is not UTF-8"),
        (SearchMessage { operator: Some(b"x"), ..message.clone() }, "op: x is not supported; AND or OR is"),
        (SearchMessage { rows: Some(u32::MAX), ..message.clone() }, "rows: 4294967295 is out of range"),
        (SearchMessage { fields: vec![b"f(x)"], ..message.clone() }, "fl: f(x) is no name"),
    ] {
        let error = SearchRequest::of_message(&message).unwrap_err().to_string();
        assert!(error.starts_with(is), "{error}");
    }
    let empty = SearchMessage { sort: Some(b""), filter: Some(b""), fields: vec![b""], ..SearchMessage::default() };
    let request = SearchRequest::of_message(&empty).unwrap();
    assert!(request.fields.has_score && request.filters.is_empty() && request.query.is_none());
}

#[test]
fn requests_are_bounded() {
    let many = |text: &str, count: usize| vec![text; count].join("&");
    assert_eq!(read(&many("fq=a:b", FILTERS_MAX)).filters.len(), FILTERS_MAX);
    assert!(error(&many("fq=a:b", FILTERS_MAX + 1)).starts_with("fq: there are more than 64"));
    assert!(error(&many("_=1", PARAMETERS_MAX + 1)).starts_with("parameters: there are more than 1024"));
    assert!(error(&format!("_={}", "a".repeat(PARAMETERS_BYTES_MAX))).starts_with("parameters: it has more than"));
    let keys = vec!["a_i asc"; SORT_KEYS_MAX + 1].join(",");
    assert!(error(&format!("sort={keys}")).starts_with("sort: there are more than 16"));
    assert!(error(&format!("fl={}", "a,".repeat(FIELDS_MAX + 1))).starts_with("fl: there are more than 1024"));
    assert!(error(&format!("fl={}", "a*,".repeat(FIELD_PATTERNS_MAX + 1))).starts_with("fl: there are more than 16"));
    assert!(error(&format!("fl=*{}", "a".repeat(FIELD_PATTERN_BYTES_MAX))).starts_with("fl: it has more than 256"));
    let facets: Vec<String> = (0..40).map(|n| format!("facet.field=a{n}&facet.query=b{n}")).collect();
    assert!(
        error(&format!("facet=true&{}", facets.join("&"))).starts_with("facet.field, facet.query and facet.range:")
    );
    let long = error(&format!("{}=1", "x".repeat(1_000)));
    assert!(long.chars().count() < 150, "{long}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_is_asked_gives_a_request_or_an_error_that_names_a_parameter(
        pairs in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "q", "fq", "fl", "df", "q.op", "sort", "start", "rows", "wt", "facet", "facet.field", "facet.query",
                    "facet.range", "facet.range.start", "facet.range.end", "facet.range.gap", "facet.limit",
                    "f.a_i.facet.limit", "facet.mincount", "facet.sort", "cursorMark", "echoParams", "timeAllowed",
                    "omitHeader", "indent", "hl", "hl.fl", "é",
                ]),
                "(true|on|a_i|a_i asc,_yz_id desc|\\*|1|-1|json|and|0|NOW|\\+1DAY|\\PC{0,4}|[a-z*?(), ]{0,8})",
            ),
            0..8,
        ),
    ) {
        let pairs: Vec<(String, String)> = pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        match SearchRequest::read(&pairs) {
            Ok(request) => {
                prop_assert!(request.rows <= ROWS_MAX && request.start <= START_MAX);
                let echoed: usize = request.echo.iter().flatten().map(|(_, values)| values.len()).sum();
                prop_assert!(request.echo.is_none() || echoed >= pairs.len());
                let _ = request.read_queries(&SCHEMA);
                for facet in request.facets.iter().flat_map(|facets| &facets.ranges) {
                    if let Ok(buckets) = facet.buckets(&SCHEMA, Date::from_unix_ms(0).unwrap()) {
                        prop_assert!(buckets.count() <= FACET_RANGES_MAX);
                    }
                }
            }
            Err(error) => {
                let begins = |(name, _): &(String, String)| error.parameter.contains(name.as_str());
                prop_assert!(pairs.iter().any(begins) || error.parameter.starts_with("facet."), "{error}");
            }
        }
    }
}
