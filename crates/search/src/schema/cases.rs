//! Schemas that are read, and schemas that are refused.

use super::*;
use crate::query::Operator;
use crate::xml::BadXml;
use proptest::prelude::*;

/// The fields that Riak needs, and their type.
const NEEDED: &str = r#"
<types><fieldType name="_yz_str" class="solr.StrField" sortMissingLast="true"/></types>
<fields>
 <field name="_yz_id" type="_yz_str" indexed="true" stored="true" multiValued="false" required="true"/>
 <field name="_yz_ed" type="_yz_str" indexed="true" stored="false" multiValued="false"/>
 <field name="_yz_pn" type="_yz_str" indexed="true" stored="false" multiValued="false"/>
 <field name="_yz_fpn" type="_yz_str" indexed="true" stored="false" multiValued="false"/>
 <field name="_yz_vtag" type="_yz_str" indexed="true" stored="false" multiValued="false"/>
 <field name="_yz_rk" type="_yz_str" indexed="true" stored="true" multiValued="false"/>
 <field name="_yz_rt" type="_yz_str" indexed="true" stored="true" multiValued="false"/>
 <field name="_yz_rb" type="_yz_str" indexed="true" stored="true" multiValued="false"/>
 <field name="_yz_err" type="_yz_str" indexed="true" stored="false" multiValued="false"/>
</fields>
<uniqueKey>_yz_id</uniqueKey>"#;

/// A schema with more entries, which begin at line 15.
fn with(entries: &str) -> String {
    format!("<schema name=\"x\" version=\"1.5\">{NEEDED}\n{entries}\n</schema>")
}

fn read(entries: &str) -> Schema {
    Schema::read(with(entries).as_bytes()).unwrap_or_else(|error| panic!("{entries}: {error}"))
}

/// The problems of a schema as text.
fn problems(xml: &str) -> String {
    Schema::read(xml.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_default_schema_resolves_the_usual_names() {
    let schema = default_schema().unwrap();
    for (name, type_name, is_stored, is_multi_valued) in [
        ("a_s", "string", true, false),
        ("a_ss", "string", true, true),
        ("a_i", "int", true, false),
        ("a_is", "int", true, true),
        ("a_l", "long", true, false),
        ("a_ls", "long", true, true),
        ("a_f", "float", true, false),
        ("a_fs", "float", true, true),
        ("a_d", "double", true, false),
        ("a_ds", "double", true, true),
        ("a_b", "boolean", true, false),
        ("a_bs", "boolean", true, true),
        ("a_dt", "date", true, false),
        ("a_dts", "date", true, true),
        ("a_t", "text_general", false, false),
        ("a_ts", "text_general", false, true),
        ("a_txt", "text_general", false, true),
        ("a_tsd", "text_general", true, false),
        ("a_tssd", "text_general", true, true),
        ("a_ti", "tint", true, false),
        ("a_tl", "tlong", true, false),
        ("float_tf", "tfloat", true, false),
        ("a_td", "tdouble", true, false),
        ("a_tdt", "tdate", true, false),
        ("a_p", "location", true, false),
        ("a_coordinate", "tdouble", false, false),
        ("a_ig", "ignored", false, true),
        ("random_7", "random", true, false),
        ("text", "text_general", false, true),
        ("counter", "int", true, false),
        ("set", "string", true, true),
        ("gset", "string", true, true),
        ("hll", "int", true, false),
        ("a_flag", "boolean", true, false),
        ("a_counter", "int", true, false),
        ("a_register", "string", true, false),
        ("a_set", "string", true, true),
        ("user_map.name_register", "string", true, false),
        ("info.city_s", "string", true, false),
        ("e@a_i", "int", true, false),
        ("_yz_id", "_yz_str", true, false),
        ("_yz_rk", "_yz_str", true, false),
        ("_yz_err", "_yz_str", false, false),
        ("name", "ignored", false, true),
        ("", "ignored", false, true),
    ] {
        let field = schema.field(name).unwrap_or_else(|| panic!("{name}"));
        let is = (field.field_type.name.as_str(), field.properties.is_stored, field.properties.is_multi_valued);
        assert_eq!(is, (type_name, is_stored, is_multi_valued), "{name}");
    }
    let languages = "en ar bg ca cjk ckb cz da de el es eu fa fi fr ga gl hi hu hy id it ja lv nl no pt ro ru sv th tr";
    for language in languages.split(' ') {
        let field = schema.field(&format!("title_{language}")).unwrap();
        assert_eq!(field.field_type.name, format!("text_{language}"));
        assert!(matches!(field.field_type.kind, Kind::Text { .. }));
    }
    assert!(schema.field("name").unwrap().is_ignored());
    assert_eq!(schema.default_search_field, None);
    assert_eq!(schema.copies("a_s").count(), 0);
    // Places are the one thing that has another effect than in Solr.
    assert_eq!(schema.notes.len(), 1);
    assert!(schema.notes[0].what.contains("location"), "{}", schema.notes[0]);
}

#[test]
fn a_field_has_the_properties_of_its_type_unless_it_says_otherwise() {
    let schema = read(
        r#"<fieldType name="m" class="solr.StrField" stored="false" multiValued="true"/>
           <fieldtype name="n" class="solr.TrieField" type="double"/>
           <field name="a" type="m"/> <field name="b" type="m" stored="TRUE" multiValued="false" default="x"/>
           <field name="c" type="n" indexed="yes" docValues="true"/>"#,
    );
    let a = schema.field("a").unwrap();
    assert!(a.properties.is_indexed && !a.properties.is_stored && a.properties.is_multi_valued);
    let b = schema.field("b").unwrap();
    assert!(b.properties.is_stored && !b.properties.is_multi_valued);
    assert_eq!(b.default.as_deref(), Some("x"));
    let c = schema.field("c").unwrap();
    assert_eq!(c.field_type.kind, Kind::Double);
    assert!(!c.properties.is_indexed, "what is not true is false");
    assert_eq!(schema.field("d"), None);
}

#[test]
fn the_longest_pattern_counts_and_exact_names_before_it() {
    let schema = read(
        r#"<field name="a_s" type="t4"/> <dynamicField name="*" type="t1"/> <dynamicField name="*_s" type="t2"/>
           <dynamicField name="aa*" type="t3"/> <dynamicField name="*_long_s" type="t4"/>
           <fieldType name="t1" class="solr.StrField"/> <fieldType name="t2" class="solr.StrField"/>
           <fieldType name="t3" class="solr.StrField"/> <fieldType name="t4" class="solr.StrField"/>"#,
    );
    let type_of = |name: &str| schema.field(name).unwrap().field_type.name.clone();
    assert_eq!(type_of("a_s"), "t4");
    assert_eq!(type_of("b_s"), "t2");
    assert_eq!(type_of("b_long_s"), "t4");
    assert_eq!(type_of("b"), "t1");
    // Of two that are equally long, the one that is written first.
    assert_eq!(type_of("aab_s"), "t2");
    assert_eq!(type_of("aab"), "t3");
}

#[test]
fn values_are_copied_to_other_names() {
    let schema = read(
        r#"<fieldType name="s" class="solr.StrField"/> <dynamicField name="*_s" type="s"/>
           <dynamicField name="*_c" type="s"/> <field name="all" type="s" multiValued="true"/>
           <copyField source="*_s" dest="all" maxChars="3"/> <copyField source="*_s" dest="*_c"/>
           <copyField source="a_s" dest="b_s" maxChars="0"/> <copyField source="*" dest="all"/>"#,
    );
    let copies = |name: &str| -> Vec<(String, Option<usize>)> {
        schema.copies(name).map(|copy| (copy.name, copy.chars_max)).collect()
    };
    let all = || ("all".to_owned(), None);
    assert_eq!(copies("a_s"), [("all".to_owned(), Some(3)), ("a_c".to_owned(), None), ("b_s".to_owned(), None), all()]);
    assert_eq!(copies("a_c"), [all()]);
}

#[test]
fn analyzers_are_kept_as_data() {
    let schema = read(
        r#"<fieldType name="t" class="solr.TextField" positionIncrementGap="100" autoGeneratePhraseQueries="true">
             <analyzer type="index"><charFilter class="solr.HTMLStripCharFilterFactory"/>
               <tokenizer class="solr.StandardTokenizerFactory"/>
               <filter class="org.apache.lucene.analysis.core.StopFilterFactory" words="a.txt" ignoreCase="true"/>
             </analyzer>
             <analyzer type="query"><tokenizer class="solr.WhitespaceTokenizerFactory"/></analyzer>
           </fieldType>
           <fieldType name="u" class="solr.TextField"/> <field name="t" type="t"/> <field name="u" type="u"/>"#,
    );
    let of = |name: &str| schema.field(name).unwrap().field_type.clone();
    let Kind::Text { index, query } = of("t").kind.clone() else { panic!("it is text") };
    assert_eq!(index.char_filters[0].name, "HTMLStripCharFilter");
    assert_eq!(index.tokenizer.name, "StandardTokenizer");
    assert_eq!(index.filters[0].name, "StopFilter");
    assert_eq!(index.filters[0].argument("words"), Some("a.txt"));
    assert_eq!(query.tokenizer.name, "WhitespaceTokenizer");
    assert_eq!((of("t").position_increment_gap, of("t").generates_phrases), (100, true));
    let whole = Box::new(Analyzer::whole_text());
    assert_eq!(of("u").kind, Kind::Text { index: whole.clone(), query: whole });
}

#[test]
fn the_fields_that_riak_needs_are_needed() {
    let whole = with("");
    assert!(Schema::read(whole.as_bytes()).is_ok());
    for (name, _) in YZ_FIELDS {
        let without = whole.replace(&format!("name=\"{name}\" type"), "name=\"other\" type");
        let problems = problems(&without);
        assert!(problems.contains(&format!("<field name=\"{name}\"")), "{problems}");
    }
    for (from, to) in [
        (
            "name=\"_yz_rk\" type=\"_yz_str\" indexed=\"true\" stored=\"true\"",
            "name=\"_yz_rk\" type=\"_yz_str\" stored=\"false\"",
        ),
        ("_yz_err\" type=\"_yz_str\" indexed=\"true\"", "_yz_err\" type=\"_yz_str\" indexed=\"false\""),
        (" required=\"true\"", ""),
        (
            "name=\"_yz_pn\" type=\"_yz_str\" indexed=\"true\" stored=\"false\" multiValued=\"false\"",
            "name=\"_yz_pn\" type=\"_yz_str\" multiValued=\"true\"",
        ),
        (" sortMissingLast=\"true\"", ""),
        ("solr.StrField", "solr.BoolField"),
    ] {
        assert!(problems(&whole.replace(from, to)).contains("missing field"), "{from}");
    }
    // The defaults are enough where they say the same.
    assert!(Schema::read(whole.replace(" indexed=\"true\"", "").as_bytes()).is_ok());
    assert_eq!(problems(&whole.replace("1.5", "1.6")), "line 1: schema 'version' attribute must be 1.5");
    assert!(problems(&whole.replace("Key>_yz_id", "Key>_yz_rk")).contains("<uniqueKey>_yz_id</uniqueKey> is needed"));
}

#[test]
fn what_cannot_be_done_is_told_with_its_line() {
    let types = "<fieldType name=\"s\" class=\"solr.StrField\"/>";
    for (entries, what) in [
        (
            r#"<fieldType name="g" class="solr.CurrencyField"/><field name="a" type="g"/><field name="b" type="g"/>"#,
            "the class solr.CurrencyField is not supported",
        ),
        (
            r#"<field name="a" type="g"/> <fieldType name="g" class="com.me.Type"/>"#,
            "the class com.me.Type is not supported",
        ),
        (r#"<fieldType class="solr.StrField"/>"#, "fieldType needs the attribute name"),
        (r#"<fieldType name="s" class="solr.StrField"/>"#, "the type s is there twice"),
        (r#"<fieldType name="g" class="solr.StrField" stord="true"/>"#, "the attribute stord of a type is unknown"),
        (r#"<fieldType name="g" class="solr.TrieField"/>"#, "the attribute type of a TrieField"),
        (r#"<field name="a" type="x"/>"#, "the type x is not there"),
        (r#"<field name="a"/>"#, "field needs the attribute type"),
        (r#"<field name="_yz_id" type="s"/>"#, "the field _yz_id is there twice"),
        (r#"<field name="*_a" type="s"/>"#, "the name of a field has no *"),
        (r#"<field name="a" type="s" storde="false"/>"#, "the attribute storde of a field is unknown"),
        (r#"<dynamicField name="a*b" type="s"/>"#, "has one *, at its beginning or its end"),
        (r#"<dynamicField name="*_a" type="s" required="true"/>"#, "is not required and has no default"),
        (r#"<dynamicField name="*" type="s"/><dynamicField name="*" type="s"/>"#, "the dynamicField * is there twice"),
        (r#"<copyField source="x" dest="_yz_rk"/>"#, "the source x is no field"),
        (r#"<copyField source="_yz_rk" dest="_yz_rb"/>"#, "the dest _yz_rb is Riak's own"),
        (r#"<copyField source="_yz_rk" dest="x"/>"#, "the dest x is no field"),
        (r#"<copyField source="_yz_rk" dest="*_x"/>"#, "a dest with * needs a source with *"),
        (r#"<copyField source="a*b" dest="_yz_rk"/>"#, "have one * at most"),
        (r#"<copyField source="_yz_rk" dest="_yz_rb" maxChars="x"/>"#, "maxChars is a number"),
        (r#"<solrQueryParser defaultOperator="XOR"/>"#, "is AND or OR"),
        (r#"<defaultSearchField>x</defaultSearchField>"#, "the defaultSearchField x is no field"),
        (r#"<feld name="a" type="s"/>"#, "the element feld is unknown"),
    ] {
        let problems = problems(&with(&format!("{types}\n{entries}")));
        assert!(problems.contains(what), "{entries}: {problems}");
        if !entries.contains("defaultSearchField") && !problems.contains("missing field") {
            assert!(problems.starts_with("line 16: "), "{entries}: {problems}");
        }
    }
}

#[test]
fn analyzers_that_cannot_be_used_are_told() {
    for (analyzer, what) in [
        (r#"<analyzer class="org.apache.lucene.analysis.en.EnglishAnalyzer"/>"#, "and no class"),
        ("<analyzer/>", "an analyzer needs a tokenizer"),
        (
            r#"<analyzer><tokenizer class="solr.MagicTokenizerFactory"/></analyzer>"#,
            "solr.MagicTokenizerFactory is not",
        ),
        (
            r#"<analyzer><tokenizer class="solr.StandardTokenizerFactory"/><filter class="solr.XFilterFactory"/></analyzer>"#,
            "solr.XFilterFactory is not supported",
        ),
        (r#"<analyzer type="both"><tokenizer class="solr.StandardTokenizerFactory"/></analyzer>"#, "the type of an"),
        (r#"<analyser/>"#, "a type has the elements analyzer"),
    ] {
        let problems = problems(&with(&format!(
            "<fieldType name=\"t\" class=\"solr.TextField\">{analyzer}</fieldType><field name=\"a\" type=\"t\"/>"
        )));
        assert!(problems.contains(what) && problems.starts_with("line 15: "), "{analyzer}: {problems}");
    }
}

#[test]
fn a_type_that_cannot_be_used_harms_only_where_it_is_used() {
    let schema = read(
        r#"<fieldType name="phonetic" class="solr.TextField"><analyzer>
             <tokenizer class="solr.StandardTokenizerFactory"/> <filter class="solr.DoubleMetaphoneFilterFactory"/>
           </analyzer></fieldType>"#,
    );
    assert_eq!(schema.notes.len(), 1);
    assert_eq!(schema.notes[0].line, 16);
    assert!(schema.notes[0].what.starts_with("no field uses this type, so it is left out: the class solr.Double"));
}

#[test]
fn settings_and_notes_are_kept() {
    let schema = read(
        "<defaultSearchField>_yz_rk</defaultSearchField>\n<solrQueryParser defaultOperator=\"AND\"/>\n\
         <similarity class=\"x\"/><fieldType name=\"p\" class=\"solr.PointType\"/>",
    );
    assert_eq!(schema.default_search_field.as_deref(), Some("_yz_rk"));
    assert_eq!(schema.default_operator, Operator::And);
    assert_eq!(schema.name, "x");
    let lines: Vec<u32> = schema.notes.iter().map(|note| note.line).collect();
    assert_eq!(lines, [17, 17]);
}

#[test]
fn sections_are_not_needed() {
    let flat = with("").replace("<types>", "").replace("</types>", "").replace("<fields>", "").replace("</fields>", "");
    assert!(Schema::read(flat.as_bytes()).is_ok());
}

#[test]
fn hostile_schemas_are_refused() {
    let bomb = format!("<!DOCTYPE schema [<!ENTITY a \"aaaa\">]>{}", with(""));
    assert_eq!(Schema::read(bomb.as_bytes()).unwrap_err(), SchemaError::Xml(BadXml::Entities));
    let deep = with(&format!("{}{}", "<a>".repeat(200), "</a>".repeat(200)));
    assert_eq!(Schema::read(deep.as_bytes()).unwrap_err(), SchemaError::Xml(BadXml::TooDeep));
    assert_eq!(Schema::read(&vec![b' '; limits::SCHEMA_BYTES_MAX + 1]).unwrap_err(), SchemaError::TooLong);
    assert_eq!(Schema::read(b"<schema>\xff</schema>").unwrap_err(), SchemaError::NotUtf8);
    let truncated = &with("")[..300];
    assert!(matches!(Schema::read(truncated.as_bytes()), Err(SchemaError::Xml(BadXml::NotWellFormed { .. }))));
    let many = with(&"<field name=\"a\" type=\"x\"/>".repeat(4_000));
    let Err(SchemaError::Problems(problems)) = Schema::read(many.as_bytes()) else { panic!("it is refused") };
    assert_eq!(problems.len(), limits::REMARKS_MAX);
    let more = with(&"<field name=\"a\" type=\"x\"/>".repeat(limits::ENTRIES_MAX));
    assert!(self::problems(&more).contains("a schema has at most 4096 fields"));
    let unusable = with(&"<fieldType name=\"a\" class=\"solr.X\"/>\n".repeat(4_000));
    assert_eq!(Schema::read(unusable.as_bytes()).unwrap().notes.len(), 1);
    let long = with(&format!("<field name=\"{}\" type=\"x\"/>", "a".repeat(2_000)));
    assert!(self::problems(&long).contains("at most 1024 bytes"));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(
        entries in "(<(field|dynamicField|copyField|fieldType|analyzer)( (name|type|class|source|dest)=\"[*a_s.]{0,4}\"){0,3}/?>){0,6}",
    ) {
        let _ = Schema::read(with(&entries).as_bytes());
        let _ = Schema::read(entries.as_bytes());
    }
}
