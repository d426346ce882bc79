//! Answers and their texts in both forms, and properties of all texts.

use super::*;
use crate::dates::Date;
use crate::request::{Format, Gap};
use crate::values::Value;
use ombak_types::json::Json;
use proptest::prelude::*;

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn one(name: &str, value: Value) -> (String, FieldValues) {
    (name.to_owned(), FieldValues::One(value))
}

fn many(name: &str, values: Vec<Value>) -> (String, FieldValues) {
    (name.to_owned(), FieldValues::Many(values))
}

fn date(unix_ms: i64) -> Value {
    Value::Date(Date::from_unix_ms(unix_ms).unwrap())
}

fn header(echo: &[(&str, &[&str])]) -> Header {
    let text = |text: &&str| (*text).to_owned();
    let pair = |(name, values): &(&str, &[&str])| (text(name), values.iter().map(text).collect());
    Header { time_ms: 7, is_partial: false, echo: Some(echo.iter().map(pair).collect()) }
}

/// The document of Riak's tutorial, with a field of every kind.
fn liono() -> Document {
    Document {
        fields: vec![
            one("name_s", string("Lion-o")),
            one("age_i", Value::Int(30)),
            one("leader_b", Value::Bool(true)),
            many("tags_ss", vec![string("a"), string("<b> & \"c\"")]),
            many("empty_ss", vec![]),
            one("no_s", string("")),
            one("big_l", Value::Long(5_000_000_000)),
            one("size_f", Value::Float(1.5)),
            one("mass_d", Value::Double(1e7)),
            one("lost_d", Value::Double(f64::NAN)),
            one("born_dt", date(500)),
            one("raw_bin", Value::Bytes(b"\xff\x00".to_vec())),
            one("bio_t", Value::Text("one\ntwo".to_owned())),
            one("_yz_id", string("1*default*cats*liono*37")),
        ],
        score: Some(0.306_852_82),
    }
}

fn answer() -> SearchAnswer {
    SearchAnswer {
        header: Some(header(&[("q", &["name_s:Lion*"]), ("fq", &["a:1", "b:2"]), ("wt", &["json"])])),
        found_count: 1,
        start: 0,
        score_max: Some(0.306_852_82),
        documents: vec![liono()],
        next_cursor_mark: None,
        facets: None,
    }
}

#[test]
fn an_answer_in_json_is_solrs() {
    let text = AnswerWriter::to_text(&answer(), Format::Json);
    let expected = concat!(
        r#"{"responseHeader":{"status":0,"QTime":7,"params":{"q":"name_s:Lion*","fq":["a:1","b:2"],"wt":"json"}},"#,
        r#""response":{"numFound":1,"start":0,"maxScore":0.30685282,"docs":[{"name_s":"Lion-o","age_i":30,"#,
        r#""leader_b":true,"tags_ss":["a","<b> & \"c\""],"empty_ss":[],"no_s":"","big_l":5000000000,"size_f":1.5,"#,
        r#""mass_d":1.0E7,"lost_d":"NaN","born_dt":"1970-01-01T00:00:00.5Z","raw_bin":"/wA=","bio_t":"one\ntwo","#,
        r#""_yz_id":"1*default*cats*liono*37","score":0.30685282}]}}"#,
        "\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn an_answer_in_xml_is_solrs() {
    let text = AnswerWriter::to_text(&answer(), Format::Xml);
    let expected = concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<response>\n",
        r#"<lst name="responseHeader"><int name="status">0</int><int name="QTime">7</int><lst name="params">"#,
        r#"<str name="q">name_s:Lion*</str><arr name="fq"><str>a:1</str><str>b:2</str></arr>"#,
        r#"<str name="wt">json</str></lst></lst>"#,
        r#"<result name="response" numFound="1" start="0" maxScore="0.30685282"><doc><str name="name_s">Lion-o</str>"#,
        r#"<int name="age_i">30</int><bool name="leader_b">true</bool>"#,
        r#"<arr name="tags_ss"><str>a</str><str>&lt;b&gt; &amp; "c"</str></arr><arr name="empty_ss"/>"#,
        r#"<str name="no_s"/><long name="big_l">5000000000</long><float name="size_f">1.5</float>"#,
        r#"<double name="mass_d">1.0E7</double><double name="lost_d">NaN</double>"#,
        r#"<date name="born_dt">1970-01-01T00:00:00.5Z</date><str name="raw_bin">/wA=</str>"#,
        "<str name=\"bio_t\">one\ntwo</str>",
        r#"<str name="_yz_id">1*default*cats*liono*37</str><float name="score">0.30685282</float></doc></result>"#,
        "\n</response>\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn an_answer_without_documents_and_header_is_short() {
    let answer = SearchAnswer { score_max: Some(0.0), ..SearchAnswer::default() };
    assert_eq!(
        AnswerWriter::to_text(&answer, Format::Json),
        "{\"response\":{\"numFound\":0,\"start\":0,\"maxScore\":0.0,\"docs\":[]}}\n"
    );
    let answer = SearchAnswer { found_count: 3_000_000_000, start: 20, ..SearchAnswer::default() };
    assert_eq!(
        AnswerWriter::to_text(&answer, Format::Xml),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<response>\n<result name=\"response\" numFound=\"3000000000\" \
         start=\"20\"></result>\n</response>\n"
    );
}

#[test]
fn a_partial_answer_says_so() {
    let header = Header { is_partial: true, ..Header::default() };
    let answer = SearchAnswer { header: Some(header), ..SearchAnswer::default() };
    let text = AnswerWriter::to_text(&answer, Format::Json);
    assert!(text.starts_with(r#"{"responseHeader":{"partialResults":true,"status":0,"QTime":0},"#), "{text}");
    let text = AnswerWriter::to_text(&answer, Format::Xml);
    assert!(text.contains(r#"<lst name="responseHeader"><bool name="partialResults">true</bool><int"#), "{text}");
}

fn facets() -> FacetCounts {
    FacetCounts {
        queries: vec![("age_i:[1 TO *]".into(), 3)],
        fields: vec![
            FieldCounts { field: "tag_s".into(), counts: vec![(string("b"), 2), (string("a"), 1)] },
            FieldCounts { field: "none_s".into(), counts: vec![] },
        ],
        ranges: vec![
            RangeCounts {
                field: "age_i".into(),
                counts: vec![(Value::Int(0), 1), (Value::Int(10), 4)],
                gap: Gap::Number(Value::Int(10)),
                start: Value::Int(0),
                end: Value::Int(20),
            },
            RangeCounts {
                field: "at_dt".into(),
                counts: vec![(date(0), 5)],
                gap: Gap::Steps("+1DAY".into()),
                start: date(0),
                end: date(86_400_000),
            },
        ],
    }
}

#[test]
fn facets_and_cursors_come_behind_the_documents() {
    let answer =
        SearchAnswer { next_cursor_mark: Some("AoE".into()), facets: Some(facets()), ..SearchAnswer::default() };
    let expected = concat!(
        r#"{"response":{"numFound":0,"start":0,"docs":[]},"nextCursorMark":"AoE","#,
        r#""facet_counts":{"facet_queries":{"age_i:[1 TO *]":3},"#,
        r#""facet_fields":{"tag_s":["b",2,"a",1],"none_s":[]},"facet_dates":{},"#,
        r#""facet_ranges":{"age_i":{"counts":["0",1,"10",4],"gap":10,"start":0,"end":20},"#,
        r#""at_dt":{"counts":["1970-01-01T00:00:00Z",5],"gap":"+1DAY","start":"1970-01-01T00:00:00Z","#,
        r#""end":"1970-01-02T00:00:00Z"}},"facet_intervals":{}}}"#,
        "\n"
    );
    assert_eq!(AnswerWriter::to_text(&answer, Format::Json), expected);
    let expected = concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<response>\n",
        r#"<result name="response" numFound="0" start="0"></result><str name="nextCursorMark">AoE</str>"#,
        r#"<lst name="facet_counts"><lst name="facet_queries"><int name="age_i:[1 TO *]">3</int></lst>"#,
        r#"<lst name="facet_fields"><lst name="tag_s"><int name="b">2</int><int name="a">1</int></lst>"#,
        r#"<lst name="none_s"/></lst><lst name="facet_dates"/>"#,
        r#"<lst name="facet_ranges"><lst name="age_i"><lst name="counts"><int name="0">1</int>"#,
        r#"<int name="10">4</int></lst><int name="gap">10</int><int name="start">0</int><int name="end">20</int></lst>"#,
        r#"<lst name="at_dt"><lst name="counts"><int name="1970-01-01T00:00:00Z">5</int></lst>"#,
        r#"<str name="gap">+1DAY</str><date name="start">1970-01-01T00:00:00Z</date>"#,
        r#"<date name="end">1970-01-02T00:00:00Z</date></lst></lst><lst name="facet_intervals"/></lst>"#,
        "\n</response>\n"
    );
    assert_eq!(AnswerWriter::to_text(&answer, Format::Xml), expected);
}

#[test]
fn errors_have_solrs_bodies() {
    let error = ErrorAnswer {
        header: Some(header(&[("q", &["a < b"])])),
        status: 400,
        message: "undefined field \"a\" & more".to_owned(),
    };
    assert_eq!(
        error.to_text(Format::Json),
        concat!(
            r#"{"responseHeader":{"status":400,"QTime":7,"params":{"q":"a < b"}},"#,
            r#""error":{"msg":"undefined field \"a\" & more","code":400}}"#,
            "\n"
        )
    );
    assert_eq!(
        ErrorAnswer { header: None, ..error }.to_text(Format::Xml),
        concat!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<response>\n",
            r#"<lst name="error"><str name="msg">undefined field "a" &amp; more</str><int name="code">400</int></lst>"#,
            "\n</response>\n"
        )
    );
}

#[test]
fn hostile_texts_are_escaped() {
    let text = "\0\u{1}\u{8}\t\n\u{b}\u{c}\r\u{1f} \"\\/<>&'\u{7f}\u{2028}\u{2029}\u{fffe}\u{ffff}😀";
    let document = Document { fields: vec![one(text, string(text))], score: None };
    let answer = SearchAnswer { documents: vec![document], ..SearchAnswer::default() };
    let json = AnswerWriter::to_text(&answer, Format::Json);
    let quoted = "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/<>&'\u{7f}\\u2028\\u2029\u{fffe}\u{ffff}😀\"";
    assert!(json.contains(&format!("{{{quoted}:{quoted}}}")), "{json}");
    let xml = AnswerWriter::to_text(&answer, Format::Xml);
    let (name, text) = (
        "#0;#1;#8;\t\n#11;#12;\r#31; &quot;\\/&lt;>&amp;'\u{7f}\u{2028}\u{2029}#65534;#65535;😀",
        "#0;#1;#8;\t\n#11;#12;\r#31; \"\\/&lt;&gt;&amp;'\u{7f}\u{2028}\u{2029}#65534;#65535;😀",
    );
    assert!(xml.contains(&format!("<str name=\"{name}\">{text}</str>")), "{xml}");
}

#[test]
fn documents_are_pairs() {
    let document = liono();
    let pairs: Vec<(String, String)> =
        pairs_of(&document).map(|(name, value)| (name.to_owned(), value.into_owned())).collect();
    let values = |wanted: &str| -> Vec<&str> {
        pairs.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
    };
    for (name, expected) in [
        ("age_i", vec!["30"]),
        ("leader_b", vec!["true"]),
        ("tags_ss", vec!["a", "<b> & \"c\""]),
        ("empty_ss", vec![]),
        ("size_f", vec!["1.50000000000000000000e+00"]),
        ("mass_d", vec!["1.00000000000000000000e+07"]),
        ("lost_d", vec!["NaN"]),
        ("born_dt", vec!["1970-01-01T00:00:00.5Z"]),
    ] {
        assert_eq!(values(name), expected, "{name}");
    }
    // What Riak shows of a score of 3.336138, in this order.
    let document = Document {
        fields: vec![one("name_s", string("五稜郭")), one("_yz_id", string("1*default*stations*五稜郭*43"))],
        score: Some(3.336_138),
    };
    let pairs: Vec<(&str, String)> = pairs_of(&document).map(|(name, value)| (name, value.into_owned())).collect();
    let expected =
        [("score", "3.33613800000000004786e+00"), ("_yz_id", "1*default*stations*五稜郭*43"), ("name_s", "五稜郭")];
    assert_eq!(pairs, expected.map(|(name, value)| (name, value.to_owned())));
}

#[test]
fn pieces_are_small() {
    let documents = vec![liono(); 100];
    let counts: Vec<(Value, u64)> = (0..10_000).map(|n| (Value::Int(n), 1)).collect();
    let fields = vec![FieldCounts { field: "n_i".into(), counts }];
    let facets = Some(FacetCounts { fields, ..FacetCounts::default() });
    let answer = SearchAnswer { documents, facets, ..SearchAnswer::default() };
    for format in [Format::Json, Format::Xml] {
        let whole = AnswerWriter::to_text(&answer, format);
        let mut writer = AnswerWriter::new(&answer, format);
        let (mut all, mut count) = (String::new(), 0);
        loop {
            let mut piece = String::new();
            let has_more = writer.write(&mut piece, 100);
            assert!(piece.len() < 10_000, "{}", piece.len());
            all.push_str(&piece);
            count += 1;
            if !has_more {
                break;
            }
        }
        assert_eq!(all, whole);
        assert!(count > 100);
        assert!(!writer.write(&mut all, usize::MAX));
        assert_eq!(all, whole);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let c = prop_oneof![
        prop::sample::select("\0\u{1b}\t\n\r\"\\<>&']]>#;\u{2028}\u{fffe}\u{ffff}aé😀".chars().collect::<Vec<_>>()),
        any::<char>()
    ];
    prop::collection::vec(c, 0..8).prop_map(|chars| chars.into_iter().collect())
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any_text().prop_map(Value::String),
        any_text().prop_map(Value::Text),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        prop::num::f32::ANY.prop_map(Value::Float),
        prop::num::f64::ANY.prop_map(Value::Double),
        any::<bool>().prop_map(Value::Bool),
        (0..4_000_000_000_000_i64).prop_map(date),
        any::<Vec<u8>>().prop_map(Value::Bytes),
    ]
}

fn any_document() -> impl Strategy<Value = Document> {
    let values = prop_oneof![
        any_value().prop_map(FieldValues::One),
        prop::collection::vec(any_value(), 0..3).prop_map(FieldValues::Many),
    ];
    let fields = prop::collection::vec((any_text(), values), 0..4);
    (fields, prop::option::of(prop::num::f32::ANY)).prop_map(|(fields, score)| Document { fields, score })
}

fn any_answer() -> impl Strategy<Value = SearchAnswer> {
    let echo = prop::collection::vec((any_text(), prop::collection::vec(any_text(), 1..3)), 0..3);
    let header = (any::<u64>(), any::<bool>(), prop::option::of(echo)).prop_map(|(time_ms, is_partial, echo)| Header {
        time_ms,
        is_partial,
        echo,
    });
    let counts = || prop::collection::vec((any_value(), any::<u64>()), 0..4);
    let fields = prop::collection::vec((any_text(), counts()), 0..3)
        .prop_map(|fields| fields.into_iter().map(|(field, counts)| FieldCounts { field, counts }).collect());
    let range = (any_text(), counts(), any_value(), any_value(), any_text())
        .prop_map(|(field, counts, start, end, gap)| RangeCounts { field, counts, gap: Gap::Steps(gap), start, end });
    let queries = prop::collection::vec((any_text(), any::<u64>()), 0..3);
    let facets = (queries, fields, prop::collection::vec(range, 0..3))
        .prop_map(|(queries, fields, ranges)| FacetCounts { queries, fields, ranges });
    (
        prop::option::of(header),
        any::<u64>(),
        prop::option::of(prop::num::f32::ANY),
        prop::collection::vec(any_document(), 0..4),
        prop::option::of(any_text()),
        prop::option::of(facets),
    )
        .prop_map(|(header, found_count, score_max, documents, next_cursor_mark, facets)| SearchAnswer {
            header,
            found_count,
            start: 3,
            score_max,
            documents,
            next_cursor_mark,
            facets,
        })
}

/// The members of an object in JSON.
fn members(json: &Json) -> &[(String, Json)] {
    if let Json::Object(members) = json { members } else { panic!("{json:?}") }
}

fn member<'a>(json: &'a Json, name: &str) -> &'a Json {
    &members(json).iter().find(|(other, _)| other == name).unwrap().1
}

/// Whether a value in JSON is the value of a field.
fn is_same(json: &Json, value: &Value) -> bool {
    match (json, value) {
        (Json::Int(number), Value::Int(int)) => *number == i64::from(*int),
        (Json::Int(number), Value::Long(long)) => number == long,
        (Json::Float(number), Value::Float(float)) => *number as f32 == *float,
        (Json::Float(number), Value::Double(double)) => number == double,
        (Json::Bool(json), Value::Bool(value)) => json == value,
        (Json::Text(text), value) => *text == text_of(value),
        _ => false,
    }
}

/// What an XML reader makes of a text.
fn in_xml(text: &str) -> String {
    let char_of = |c: char| match c {
        '\t' | '\n' | '\r' => c.to_string(),
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => format!("#{};", u32::from(c)),
        c => c.to_string(),
    };
    lines(&text.chars().map(char_of).collect::<String>())
}

/// A text with one form of ends of lines: readers of XML give all of them this form, but roxmltree
/// not all behind an escape.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

proptest! {
    #[test]
    fn json_is_read_back(answer in any_answer()) {
        let text = AnswerWriter::to_text(&answer, Format::Json);
        let json = Json::read(text.as_bytes()).unwrap();
        let Json::List(documents) = member(member(&json, "response"), "docs") else { panic!("{text}") };
        prop_assert_eq!(documents.len(), answer.documents.len());
        for (json, document) in documents.iter().zip(&answer.documents) {
            let told = members(json);
            prop_assert_eq!(told.len(), document.fields.len() + usize::from(document.score.is_some()));
            for ((name, json), (field, values)) in told.iter().zip(&document.fields) {
                prop_assert_eq!(name, field);
                match (json, values) {
                    (Json::List(items), FieldValues::Many(values)) => {
                        prop_assert_eq!(items.len(), values.len());
                        prop_assert!(items.iter().zip(values).all(|(json, value)| is_same(json, value)), "{text}");
                    }
                    (json, FieldValues::One(value)) => prop_assert!(is_same(json, value), "{text}"),
                    _ => prop_assert!(false, "{text}"),
                }
            }
        }
        prop_assert_eq!(members(&json).len(), 1
            + [answer.header.is_some(), answer.next_cursor_mark.is_some(), answer.facets.is_some()]
                .into_iter().filter(|is_told| *is_told).count());
    }

    #[test]
    fn xml_is_read_back(answer in any_answer()) {
        let text = AnswerWriter::to_text(&answer, Format::Xml);
        let xml = roxmltree::Document::parse(&text).unwrap();
        let documents: Vec<_> = xml.descendants().filter(|node| node.has_tag_name("doc")).collect();
        prop_assert_eq!(documents.len(), answer.documents.len());
        for (node, document) in documents.iter().zip(&answer.documents) {
            let told: Vec<_> = node.children().collect();
            prop_assert_eq!(told.len(), document.fields.len() + usize::from(document.score.is_some()));
            for (node, (_, values)) in told.iter().zip(&document.fields) {
                let leaves: Vec<_> = match values {
                    FieldValues::One(_) => vec![*node],
                    FieldValues::Many(_) => node.children().collect(),
                };
                prop_assert_eq!(leaves.len(), values.as_slice().len());
                for (leaf, value) in leaves.iter().zip(values.as_slice()) {
                    prop_assert_eq!(lines(leaf.text().unwrap_or_default()), in_xml(&text_of(value)));
                }
            }
        }
    }

    #[test]
    fn pieces_are_the_whole(answer in any_answer(), bytes_min in 1..200_usize) {
        for format in [Format::Json, Format::Xml] {
            let mut writer = AnswerWriter::new(&answer, format);
            let mut all = String::new();
            let mut has_more = true;
            while has_more {
                let mut piece = String::new();
                has_more = writer.write(&mut piece, bytes_min);
                prop_assert!(!has_more || piece.len() >= bytes_min);
                all.push_str(&piece);
            }
            prop_assert_eq!(all, AnswerWriter::to_text(&answer, format));
        }
    }
}
