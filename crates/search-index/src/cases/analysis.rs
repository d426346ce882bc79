//! Texts in the languages of the default schema, and components that other schemas ask for.

use super::harness::TestIndex;
use crate::analysis::{Chain, analysis_notes};
use ombak_search::schema::{DEFAULT_SCHEMA_XML, Kind, Schema, default_schema};

fn json_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn texts_are_found_in_their_languages() {
    let cases = [
        ("a_en", "The dogs' running", "run", true),
        ("a_en", "Bryan's dogs", "bryan", true),
        ("a_en", "to be", "to", false),
        ("a_de", "Die Häuser stehen", "haus", true),
        ("a_de", "Straße", "strasse", true),
        ("a_de", "Die Häuser", "die", false),
        ("a_fr", "l'avion des enfants", "avion", true),
        ("a_fr", "les chevaux", "cheval", true),
        ("a_it", "dell'amico", "amico", true),
        ("a_es", "los libros", "libro", true),
        ("a_nl", "de boeken", "boek", true),
        ("a_ru", "большие дома", "дом", true),
        ("a_sv", "husen", "hus", true),
        ("a_pt", "meninos", "menino", true),
        ("a_tr", "KITAPLAR", "kıtap", true),
        ("a_el", "ΑΘΗΝΑΣ", "αθήνας", true),
        ("a_ca", "l'amic", "amic", true),
        ("a_ar", "الكتاب", "كتاب", true),
        ("a_ar", "مَدْرَسَة", "مدرسه", true),
        ("a_fa", "کتاب", "كتاب", true),
        ("a_t", "שלום עולם", "שלום", true),
        ("a_t", "שלום עולם", "עולם", true),
        ("a_t", "שלום", "של", false),
        ("a_t", "مرحبا بالعالم", "مرحبا", true),
        ("a_cjk", "我购买了道具和服装", "购买", true),
        ("a_cjk", "我购买了道具和服装", "道服", false),
        ("a_cjk", "ＡＢＣ abc", "ABC", true),
        ("a_cjk", "ｶﾞｷﾞ", "ガギ", true),
        ("a_ja", "私はハイスペックが大好きです", "大好き", true),
        ("a_ja", "私はハイスペックが大好きです", "大好", true),
        ("a_ja", "私はハイスペックが大好きです", "私", true),
        ("a_ja", "私はハイスペックが大好きです", "好大", false),
        ("a_ja", "大きな好き", "大好き", false),
        ("a_ja", "東京2020", "東京", true),
        ("a_th", "ภาษาไทย", "ไทย", true),
        ("a_th", "ภาษาไทย", "ยไท", false),
        ("a_t", "O'Neil's e-mail 3.14 foo_bar a:b", "\"O'Neil's\"", true),
        ("a_t", "O'Neil's e-mail 3.14 foo_bar a:b", "mail", true),
        ("a_t", "O'Neil's e-mail 3.14 foo_bar a:b", "3.14", true),
        ("a_t", "O'Neil's e-mail 3.14 foo_bar a:b", "14", false),
        ("a_t", "O'Neil's e-mail 3.14 foo_bar a:b", "foo_bar", true),
        ("a_t", "one,two 1,000", "two", true),
        ("a_t", "one,two 1,000", "1,000", true),
        ("a_hi", "लड़के", "लड़का", true),
        ("a_id", "membaca", "baca", true),
    ];
    let index = TestIndex::new();
    let changes = (0..).zip(&cases).map(|(at, (field, text, ..))| {
        index.change(0, 1, &format!("k{at}"), &[&format!("{{\"{field}\":{}}}", json_text(text))])
    });
    index.get().write(changes.collect(), "").unwrap();
    for (at, (field, text, query, is_found)) in (0..).zip(cases) {
        let found = index.found(&format!("{field}:{query}"));
        assert_eq!(found.contains(&format!("k{at}")), is_found, "{field}: {query} in {text}");
    }
}

/// The query of the suite of the Python client.
#[test]
fn the_japanese_query_of_a_client_is_found() {
    let index =
        TestIndex::of(&[("k", r#"{"text_ja":"私はハイスペックな大好きです"}"#), ("l", r#"{"text_ja":"私は"}"#)]);
    assert_eq!(index.found_text("text_ja:大好き AND  _yz_rk:k"), "k");
    assert_eq!(index.found_text("text_ja:大好き"), "k");
}

#[test]
fn values_of_a_field_are_apart() {
    let index = TestIndex::of(&[("k", r#"{"v_txt":["one two","three"],"w_txt":["four"]}"#)]);
    assert_eq!(index.found_text("v_txt:\"two three\""), "");
    assert_eq!(index.found_text("v_txt:\"two three\"~99"), "");
    assert_eq!(index.found_text("v_txt:\"two three\"~100"), "k");
    assert_eq!(index.found_text("v_txt:\"three four\"~1000"), "");
}

/// A chain of components, each with attributes.
fn chain(tokenizer: &str, filters: &[&str]) -> Chain {
    let filters: Vec<String> = filters
        .iter()
        .map(|filter| {
            let (class, attributes) = filter.split_once(' ').unwrap_or((filter, ""));
            let element = if class.ends_with("CharFilter") { "charFilter" } else { "filter" };
            format!("<{element} class=\"solr.{class}Factory\" {attributes}/>")
        })
        .collect();
    let (class, attributes) = tokenizer.split_once(' ').unwrap_or((tokenizer, ""));
    let field_type = format!(
        "<fieldType name=\"mine\" class=\"solr.TextField\"><analyzer><tokenizer class=\"solr.{class}Factory\" \
         {attributes}/>{}</analyzer></fieldType></types>",
        filters.join("")
    );
    let xml = DEFAULT_SCHEMA_XML
        .replace("</types>", &field_type)
        .replace("</fields>", "<field name=\"mine\" type=\"mine\"/></fields>");
    let schema = Schema::read(xml.as_bytes()).unwrap();
    match &schema.field("mine").unwrap().field_type.kind {
        Kind::Text { index, .. } => Chain::for_documents(index),
        other => panic!("{other:?}"),
    }
}

#[test]
fn components_do_what_they_do_in_solr() {
    let lower = &["LowerCaseFilter"][..];
    let delimiter = &["WordDelimiterFilter"][..];
    let joining = &["WordDelimiterFilter catenateAll=\"1\" preserveOriginal=\"1\""][..];
    let cases: &[(&str, &[&str], &str, &str)] = &[
        ("KeywordTokenizer", lower, "A b C", "0a b c"),
        ("WhitespaceTokenizer", &[], " a  b,c ", "0a 1b,c"),
        ("LetterTokenizer", &[], "a1b c", "0a 1b 2c"),
        ("LowerCaseTokenizer", &[], "A1B", "0a 1b"),
        ("PathHierarchyTokenizer", &[], "/a/b", "0/a 0/a/b"),
        ("PatternTokenizer pattern=\",\"", &[], "a,b,,c", "0a 1b 2c"),
        ("PatternTokenizer pattern=\"x(.)\" group=\"1\"", &[], "xaxb", "0a 1b"),
        ("NGramTokenizer minGramSize=\"2\" maxGramSize=\"3\"", &[], "abcd", "0ab 1abc 2bc 3bcd 4cd"),
        ("WhitespaceTokenizer", &["EdgeNGramFilter minGramSize=\"1\" maxGramSize=\"2\""], "abc d", "0a 0ab 1d"),
        ("WhitespaceTokenizer", &["LengthFilter min=\"2\" max=\"3\""], "a bb ccc dddd", "1bb 2ccc"),
        ("WhitespaceTokenizer", &["ASCIIFoldingFilter"], "Éluård Æ ß", "0Eluard 1AE 2ss"),
        ("WhitespaceTokenizer", &["ReverseStringFilter"], "abc", "0cba"),
        ("WhitespaceTokenizer", &["PatternReplaceFilter pattern=\"(a)(b)\" replacement=\"$2$1x\""], "abab", "0baxbax"),
        ("WhitespaceTokenizer", &["PatternReplaceFilter pattern=\"a\" replacement=\"\" replace=\"first\""], "aa", "0a"),
        ("KeywordTokenizer", &["TrimFilter"], " a ", "0a"),
        ("StandardTokenizer", &["StopFilter words=\"lang/stopwords_en.txt\""], "fox the dog", "0fox 2dog"),
        ("StandardTokenizer", &["HTMLStripCharFilter"], "<b>a</b> &amp; &#98;<!-- c -->d", "0a 1b 2d"),
        ("WhitespaceTokenizer", delimiter, "Wi-Fi PowerShot500 a", "0Wi 1Fi 2Power 3Shot 4500 5a"),
        ("WhitespaceTokenizer", joining, "wi-fi x", "0wi-fi 0wi 0wifi 1fi 2x"),
        ("StandardTokenizer", &["ClassicFilter"], "U.S.A. dog's", "0USA 1dog"),
        ("StandardTokenizer", &["CJKBigramFilter"], "一二三 a 四", "0一二 1二三 2a 3四"),
        ("WhitespaceTokenizer", &["KStemFilter", "RemoveDuplicatesTokenFilter"], "dogs dogs", "0dog 1dog"),
        ("WhitespaceTokenizer", &["TurkishLowerCaseFilter"], "IİI\u{307}", "0ıii"),
        ("WhitespaceTokenizer", &["IrishLowerCaseFilter"], "nAthair Bean", "0n-athair 1bean"),
        ("WhitespaceTokenizer", &["JapaneseKatakanaStemFilter"], "サーバー コピー", "0サーバ 1コピー"),
        (
            "WhitespaceTokenizer",
            &["GermanNormalizationFilter"],
            "weiß Äpfel aepfel quelle neue",
            "0weiss 1Äpfel 2apfel 3quelle 4neue",
        ),
    ];
    for (tokenizer, filters, text, terms) in cases {
        let found: Vec<String> = chain(tokenizer, filters)
            .terms(text)
            .iter()
            .map(|token| format!("{}{}", token.position, token.text))
            .collect();
        assert_eq!(found.join(" "), *terms, "{tokenizer} {filters:?}");
    }
}

#[test]
fn long_words_become_several() {
    let word = "x".repeat(256);
    for tokenizer in ["StandardTokenizer", "WhitespaceTokenizer", "LetterTokenizer"] {
        let terms = chain(tokenizer, &[]).terms(&format!("{word} a"));
        let lengths: Vec<(usize, u32)> = terms.iter().map(|token| (token.text.len(), token.position)).collect();
        assert_eq!(lengths, [(255, 0), (1, 1), (1, 2)], "{tokenizer}");
        assert_eq!(chain(tokenizer, &[]).terms(&word[1..]).len(), 1, "{tokenizer}");
    }
    // What joins two words does not join them over the end of what is looked at together.
    let terms = chain("StandardTokenizer", &[]).terms(&format!("{}'b", &word[2..]));
    let lengths: Vec<usize> = terms.iter().map(|token| token.text.len()).collect();
    assert_eq!(lengths, [254, 1]);
    let grams = chain("NGramTokenizer minGramSize=\"1\" maxGramSize=\"1000000\"", &[]).terms(&word);
    assert!(grams.iter().all(|token| token.text.len() <= 64));
}

/// With a look at the whole rest of the text for each word, this would take minutes.
#[test]
fn a_long_text_without_separators_is_split_in_one_pass() {
    for text in ["x".repeat(4 << 20), "\u{e01}".repeat(1 << 20), "1234,".repeat(1 << 19)] {
        let words = chain("StandardTokenizer", &[]).terms(&text);
        assert!(words.len() > text.len() / 1_024);
    }
}

#[test]
fn what_has_another_effect_than_in_solr_is_told() {
    let notes = analysis_notes(&default_schema().unwrap());
    for part in [
        "type text_ja: JapaneseTokenizer: there is no dictionary",
        "type text_th: ThaiWordFilter: there is no dictionary",
        "type text_bg: BulgarianStemFilter: this has no effect",
        "type text_bg: StopFilter: the list lang/stopwords_bg.txt is empty here",
        "type text_general: SynonymFilter: this has no effect",
        "type text_de: GermanLightStemFilter: the stemmer is that of the Snowball project",
    ] {
        assert!(notes.iter().any(|note| note.starts_with(part)), "{part}: {notes:#?}");
    }
    assert!(
        !notes.iter().any(|note| note.contains("LowerCaseFilter") || note.contains("PorterStemFilter")),
        "{notes:#?}"
    );
}

#[test]
fn every_component_of_a_schema_has_an_effect_or_a_note() {
    // The names that a schema can have are in the error for one that it cannot.
    let xml = DEFAULT_SCHEMA_XML.replacen("solr.LowerCaseFilterFactory", "solr.NoFilterFactory", 1);
    let error = Schema::read(xml.as_bytes()).unwrap_err().to_string();
    let (_, names) = error.split_once("supported are ").unwrap();
    let names: Vec<&str> = names.split([' ', ',', '(']).filter(|name| name.ends_with("Filter")).collect();
    assert!(names.len() > 50, "{names:?}");
    for name in names {
        let component = ombak_search::schema::Component { name: name.to_owned(), arguments: Vec::new() };
        let mut notes = Vec::new();
        let has_effect = crate::analysis::has_effect(&component, &mut notes);
        let is_nothing_in_solr = matches!(name, "StandardFilter" | "ReversedWildcardFilter");
        // Without their arguments these are refused by Solr.
        let needs_argument = matches!(name, "StopFilter" | "PatternReplaceFilter");
        assert!(has_effect || !notes.is_empty() || is_nothing_in_solr || needs_argument, "{name}");
    }
}
