//! Texts of queries, what Lucene makes of them, and the rule that each shows; and properties of all
//! texts and trees.

use super::*;
use proptest::prelude::*;
use std::ops::Bound;

fn read(text: &str) -> Result<Query, QueryError> {
    Reader { default_field: Some("f"), operator: Operator::Or }.read(text)
}

/// The tree of a query as a text; the default field is `f`.
fn tree(text: &str, operator: Operator) -> String {
    match (Reader { default_field: Some("f"), operator }).read(text) {
        Ok(query) => query.to_string(),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn clauses_are_required_as_in_lucene() {
    for (text, with_or, with_and) in [
        // One clause is no group.
        ("a", "f:a", "f:a"),
        ("((a))", "f:a", "f:a"),
        // A sign keeps it one.
        ("+a", "+f:a", "+f:a"),
        ("-a", "-f:a", "-f:a"),
        ("NOT a", "-f:a", "-f:a"),
        ("(NOT a)", "-f:a", "-f:a"),
        // Nothing between clauses is the default operator.
        ("a b", "f:a f:b", "+f:a +f:b"),
        // OR makes both sides optional, whatever the default operator is.
        ("a OR b", "f:a f:b", "f:a f:b"),
        ("a || b", "f:a f:b", "f:a f:b"),
        // AND makes both sides required.
        ("a AND b", "+f:a +f:b", "+f:a +f:b"),
        ("a && b", "+f:a +f:b", "+f:a +f:b"),
        // No operator binds more than another: each changes its two neighbours, from left to right.
        ("a OR b AND c", "f:a +f:b +f:c", "f:a +f:b +f:c"),
        ("a AND b OR c", "+f:a +f:b f:c", "+f:a f:b f:c"),
        ("a OR b c", "f:a f:b f:c", "f:a f:b +f:c"),
        ("a b AND c", "f:a +f:b +f:c", "+f:a +f:b +f:c"),
        // AND and OR do not touch a prohibited clause before them, NOT and - win behind them.
        ("a AND NOT b", "+f:a -f:b", "+f:a -f:b"),
        ("a OR NOT b", "f:a -f:b", "f:a -f:b"),
        ("a NOT b", "f:a -f:b", "+f:a -f:b"),
        ("-a AND b", "-f:a +f:b", "-f:a +f:b"),
        ("-a OR b", "-f:a f:b", "-f:a f:b"),
        ("a AND -b AND c", "+f:a -f:b +f:c", "+f:a -f:b +f:c"),
        // OR behind + makes a clause optional only where the default operator is AND.
        ("+a OR b", "+f:a f:b", "f:a f:b"),
        // With the default operator AND, even + does not require what stands behind OR.
        ("a OR +b", "f:a +f:b", "f:a f:b"),
        // ! needs no spaces, - inside a word is part of it.
        ("a!b", "f:a -f:b", "+f:a -f:b"),
        ("!a", "-f:a", "-f:a"),
        ("a-b+c", r"f:a\-b\+c", r"f:a\-b\+c"),
        // An operator with spaces on both sides is a word.
        ("a - b", r"f:a f:\- f:b", r"+f:a +f:\- +f:b"),
        ("a ! b", r"f:a f:\! f:b", r"+f:a +f:\! +f:b"),
        // Operators are in capitals.
        ("a and b", "f:a f:and f:b", "+f:a +f:and +f:b"),
        ("ANDROID", "f:ANDROID", "f:ANDROID"),
        ("a&&b", "f:a&&b", "f:a&&b"),
        // Groups are counted as a clause.
        ("(a OR b) AND c", "+(f:a f:b) +f:c", "+(f:a f:b) +f:c"),
        ("a (b c)", "f:a (f:b f:c)", "+f:a +(+f:b +f:c)"),
        ("-(a b)", "-(f:a f:b)", "-(+f:a +f:b)"),
    ] {
        assert_eq!(tree(text, Operator::Or), with_or, "{text}");
        assert_eq!(tree(text, Operator::And), with_and, "{text} with AND");
    }
}

#[test]
fn words_fields_and_patterns_are_read_as_in_lucene() {
    for (text, is) in [
        // A field is for one clause, or for a group; one inside the group counts more.
        ("g:a b", "g:a f:b"),
        ("g:(a b)", "g:a g:b"),
        ("g:(a h:b (c))", "g:a h:b g:c"),
        ("g : a", "g:a"),
        ("info.city_s:x", "info.city_s:x"),
        ("e@a:x", "e@a:x"),
        (r"a\:b:c", r"a\:b:c"),
        ("text_ja:大好き AND  _yz_rk:k", "+text_ja:大好き +_yz_rk:k"),
        ("a\u{3000}b", "f:a f:b"),
        // Escapes.
        (r"a\ b", r"f:a\ b"),
        (r"\u0041\*", r"f:A\*"),
        (r"\AND", r"f:\AND"),
        (r"\(1\+1\)\:2", r"f:\(1\+1\)\:2"),
        // Quotes are left as they are; slop is cut to a whole number.
        ("\"a  b\"", "f:\"a  b\""),
        ("\"a\"", "f:\"a\""),
        ("\"\"", "f:\"\""),
        ("\"a b\"~2", "f:\"a b\"~2"),
        ("\"a b\"~2.7^3", "f:\"a b\"~2^3"),
        ("\"a b\"~", "f:\"a b\""),
        (r#""a \"b\" * \\""#, r#"f:"a \"b\" * \\""#),
        ("a\"b\"", "f:a f:\"b\""),
        // Wildcards, also leading ones.
        ("t*", "f:t*"),
        ("*Gi*", "f:*Gi*"),
        ("b?t", "f:b?t"),
        ("?", "f:?"),
        ("t**", "f:t*"),
        (r"t\**", r"f:t\**"),
        (r"t\*", r"f:t\*"),
        // Everything, and everything with a value.
        ("*:*", "*:*"),
        ("*", "*:*"),
        ("g:*", "g:*"),
        ("g:**", "g:*"),
        ("g:[* TO *]", "g:[* TO *]"),
        ("g:{* TO *}", "g:[* TO *]"),
        ("_yz_vtag:* AND _yz_err:1", "+_yz_vtag:* +_yz_err:1"),
        // Fuzzy words: 2 edits without a number, at most 2, and Lucene's older similarities.
        ("roam~", "f:roam~2"),
        ("roam~1", "f:roam~1"),
        ("roam~7", "f:roam~2"),
        ("roam~0", "f:roam~0"),
        ("roam~0.5", "f:roam~2"),
        ("roamer~0.8", "f:roamer~1"),
        ("roam~0.8", "f:roam~0"),
        // 1 - 0.8 is a little less than 0.2 in Java's numbers, so 5 characters have no edit.
        ("roams~0.8", "f:roams~0"),
        ("roam~1^2", "f:roam~1^2"),
        ("roam^2~1", "f:roam~1^2"),
        // A pattern is not fuzzy.
        ("roa*~1", "f:roa*"),
        // Factors; the last one counts, and 1 is none.
        ("a^2", "f:a^2"),
        ("a^0.5 b", "f:a^0.5 f:b"),
        ("a^1", "f:a"),
        ("(a b)^3", "(f:a f:b)^3"),
        ("((a b)^3)^2", "(f:a f:b)^2"),
        ("g:[a TO b]^2", "g:[a TO b]^2"),
        ("a^2b", "f:a^2 f:b"),
        // Ranges.
        ("g:[30 TO 33]", "g:[30 TO 33]"),
        ("g:{30 TO 33}", "g:{30 TO 33}"),
        ("g:{30 TO 33]", "g:{30 TO 33]"),
        ("g:[30 TO 33}", "g:[30 TO 33}"),
        ("g:[* TO 33}", "g:[* TO 33}"),
        ("g:{30 TO *]", "g:{30 TO *]"),
        // A bound that is not there is neither in nor out.
        ("g:{* TO 33]", "g:[* TO 33]"),
        ("g:[a b]", "g:[a TO b]"),
        ("g:[  a  TO  b  ]", "g:[a TO b]"),
        ("g:[\"a b\" TO \"*\"]", "g:[\"a b\" TO \"*\"]"),
        ("g:[-5 TO 5]", "g:[\"-5\" TO 5]"),
        ("g:[NOW/DAY-7DAYS TO NOW]", "g:[\"NOW/DAY-7DAYS\" TO NOW]"),
        ("g:[2012-01-01T00:00:00Z TO *]", "g:[\"2012-01-01T00:00:00Z\" TO *]"),
        ("g:[TOM TO TONY]", "g:[TOM TO TONY]"),
        // The longest token counts in ranges too: quotes can be part of a bound, and so can a tab.
        ("g:[\"a\"b TO c]", "g:[\"\\\"a\\\"b\" TO c]"),
        ("g:[\"a TO b]", "g:[\"\\\"a\" TO b]"),
        ("g:[a\tTO b]", "g:[\"a\tTO\" TO b]"),
        ("g:[a \t TO b]", "g:[a TO b]"),
        ("g:[\ta TO b]", "g:[\"\ta\" TO b]"),
        // Regular expressions.
        ("/br.*/", "f:/br.*/"),
        (r"g:/a\/b|c/", r"g:/a\/b|c/"),
        ("/a/ b", "f:/a/ f:b"),
    ] {
        assert_eq!(tree(text, Operator::Or), is, "{text}");
    }
}

#[test]
fn what_the_clients_of_riak_send_is_read() {
    for (text, is) in [
        ("*:*", "*:*"),
        ("f:(F OR H)", "f:F f:H"),
        ("type_s:a AND NOT age_i:3", "+type_s:a -age_i:3"),
        ("(NOT f:x)", "-f:x"),
        ("age_i:[30 TO 33]", "age_i:[30 TO 33]"),
        ("name_s:\"bryan fink\"", "name_s:\"bryan fink\""),
        ("name_s:*ryan*", "name_s:*ryan*"),
        ("multi_ss:t*", "multi_ss:t*"),
        ("groups_ss:*", "groups_ss:*"),
        ("name_s:/br.*/", "name_s:/br.*/"),
        ("text_he:בירושלים", "text_he:בירושלים"),
        ("text_ar:أردت", "text_ar:أردت"),
        ("counter:83475", "counter:83475"),
        ("set:frijoles", "set:frijoles"),
        ("arroz_register:frijoles", "arroz_register:frijoles"),
        ("float_tf:3.14", "float_tf:3.14"),
        ("user_map.name_register:Chris*", "user_map.name_register:Chris*"),
    ] {
        let query = Reader::default().read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(query.to_string(), is, "{text}");
    }
    for (text, is) in [("bitcask", "text:bitcask"), ("\"bitcask\"", "text:\"bitcask\"")] {
        let reader = Reader { default_field: Some("text"), operator: Operator::Or };
        assert_eq!(reader.read(text).unwrap().to_string(), is);
        assert_eq!(Reader::default().read(text).unwrap_err().problem, QueryProblem::NoField);
    }
}

#[test]
fn errors_name_the_place() {
    use QueryProblem as P;
    let unexpected = |found: &str, wanted| P::Unexpected { found: found.to_owned(), wanted };
    let clause = "a word, a phrase, a range or a group";
    for (text, offset_chars, problem) in [
        ("", 0, P::Empty),
        (" \t\u{3000}", 0, P::Empty),
        ("a AND", 5, unexpected("the end of the query", clause)),
        ("AND a", 0, unexpected("AND", clause)),
        ("a AND OR b", 6, unexpected("OR", clause)),
        ("NOT NOT a", 4, unexpected("NOT", clause)),
        ("a OR -", 6, unexpected("the end of the query", clause)),
        ("()", 1, unexpected(")", clause)),
        ("(é b", 0, P::Unclosed('(')),
        ("é)", 1, unexpected(")", "( before it, or \\ if it is part of a word,")),
        ("g:", 2, unexpected("the end of the query", clause)),
        ("g:-a", 2, unexpected("-", clause)),
        ("g:h:a", 3, unexpected(":", clause)),
        (":a", 0, unexpected(":", clause)),
        ("\"g\":a", 3, unexpected(":", clause)),
        ("~2", 0, unexpected("~2", clause)),
        ("a~1~1", 3, unexpected("~1", clause)),
        ("éé \"a", 3, P::Unclosed('"')),
        ("a /b", 2, P::Unclosed('/')),
        ("g:[a TO b", 2, P::Unclosed('[')),
        ("g:[a TO b c]", 10, P::BadRange),
        ("g:[TO b]", 3, P::BadRange),
        ("g:[a TO]", 7, P::BadRange),
        ("a]", 1, unexpected("]", "an opening bracket before it, or \\ if it is part of a word,")),
        ("a^", 1, P::BadBoost),
        ("a^ 2", 1, P::BadBoost),
        ("a^x", 1, P::BadBoost),
        ("a~1.5", 1, P::FractionalEdits),
        (r"ab\", 2, P::LoneBackslash),
        (r"éa\u12g4", 2, P::BadUnicodeEscape),
        ("*:a", 2, P::AnyField),
        ("*:(a b)", 2, P::AnyField),
        ("{!term f=a}b", 0, P::LocalParameters),
        ("/*a*/ b", 0, P::Comment),
        ("//", 0, P::EmptyRegex),
        ("é /a(/", 5, P::BadRegex(BadRegex::EmptyAlternative)),
    ] {
        assert_eq!(read(text), Err(QueryError { offset_chars, problem }), "{text}");
    }
}

#[test]
fn a_word_without_a_field_is_an_error() {
    let reader = Reader::default();
    for (text, offset_chars) in [("ffffff", 0), ("g:a \"b\"", 4), ("g:a (*)", 5), ("[a TO b]", 0)] {
        let error = QueryError { offset_chars, problem: QueryProblem::NoField };
        assert_eq!(reader.read(text), Err(error), "{text}");
    }
    assert_eq!(reader.read("g:(a OR b) -h:c").unwrap().to_string(), "(g:a g:b) -h:c");
    assert_eq!(reader.read("*:*").unwrap(), Query::All);
    assert_eq!(
        QueryError { offset_chars: 4, problem: QueryProblem::BadBoost }.to_string(),
        "at character 4: ^ needs a number directly behind it, such as ^2 or ^0.5"
    );
}

#[test]
fn a_clause_says_what_it_makes_of_the_one_before_it() {
    let before = |text: &str, operator| match (Reader { default_field: Some("f"), operator }).read(text) {
        Ok(Query::Group(clauses)) => clauses.iter().map(|clause| clause.before).collect::<Vec<_>>(),
        other => panic!("{text}: {other:?}"),
    };
    let text = "a AND b OR c d";
    assert_eq!(before(text, Operator::Or), [None, Some(Occur::Required), None, None]);
    assert_eq!(before(text, Operator::And), [None, Some(Occur::Required), Some(Occur::Optional), None]);
}

#[test]
fn what_costs_too_much_is_refused() {
    let problem = |text: String| read(&text).unwrap_err().problem;
    let nested = |depth: usize| format!("{}a b{}", "(".repeat(depth), ")".repeat(depth));
    assert!(read(&nested(limits::DEPTH_MAX)).is_ok());
    assert_eq!(problem(nested(limits::DEPTH_MAX + 1)), QueryProblem::TooDeep);
    assert_eq!(problem("(".repeat(limits::QUERY_BYTES_MAX)), QueryProblem::TooDeep);
    assert_eq!(problem("a".repeat(limits::QUERY_BYTES_MAX + 1)), QueryProblem::TooLong);
    assert_eq!(problem("a".repeat(limits::TERM_BYTES_MAX + 1)), QueryProblem::TermTooLong);
    assert_eq!(problem(format!("{}:a", "f".repeat(limits::FIELD_BYTES_MAX + 1))), QueryProblem::FieldTooLong);
    assert!(read(&"a ".repeat(limits::GROUP_CLAUSES_MAX)).is_ok());
    assert_eq!(problem("a ".repeat(limits::GROUP_CLAUSES_MAX + 1)), QueryProblem::TooManyClausesInGroup);
    assert_eq!(problem(format!("({})", "a ".repeat(1_000)).repeat(5)), QueryProblem::TooManyClauses);
    assert_eq!(problem("a*b ".repeat(limits::PATTERNS_MAX + 1)), QueryProblem::TooManyPatterns);
    assert_eq!(problem("a~ ".repeat(limits::PATTERNS_MAX + 1)), QueryProblem::TooManyPatterns);
    assert_eq!(problem(format!("{}*", "é".repeat(limits::PATTERN_CHARS_MAX))), QueryProblem::PatternTooLong);
    assert_eq!(problem("*a".repeat(limits::WILDCARDS_MAX + 1)), QueryProblem::TooManyWildcards);
    assert_eq!(problem(format!("/{}/", "a".repeat(300))), QueryProblem::PatternTooLong);
    assert!(problem(format!("a^{}", "9".repeat(100))) == QueryProblem::BadBoost);
}

/// Characters that mean something to the parser, and some that do not.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[abAu0 *?+!:~/&|(){}^\\[\\]\"\\\\-]{1,8}",
        "\\PC{1,6}",
        prop::sample::select(vec!["AND", "OR", "NOT", "&&", "||", "TO", "*", "-", "\u{3000}", "\n"])
            .prop_map(str::to_owned),
    ]
}

fn bound() -> impl Strategy<Value = Bound<String>> {
    prop_oneof![
        Just(Bound::Unbounded),
        word().prop_map(Bound::Included),
        word().prop_map(Bound::Excluded),
        Just(Bound::Included(String::new())),
    ]
}

fn piece() -> impl Strategy<Value = WildcardPiece> {
    prop_oneof![Just(WildcardPiece::Any), Just(WildcardPiece::One), word().prop_map(WildcardPiece::Text)]
}

fn leaf() -> impl Strategy<Value = Query> {
    let field = || word().prop_filter("`*` is no field", |name| name != "*");
    prop_oneof![
        Just(Query::All),
        field().prop_map(|field| Query::Exists { field }),
        (field(), word()).prop_map(|(field, text)| Query::Term { field, text }),
        (field(), "\\PC{0,9}", 0..3_u32).prop_map(|(field, text, slop)| Query::Phrase { field, text, slop }),
        (field(), word()).prop_map(|(field, text)| Query::Prefix { field, text }),
        (field(), word(), 0..=2_u8).prop_map(|(field, text, edits)| Query::Fuzzy { field, text, edits }),
        (field(), "[ab.]{1,3}([*+?]|\\{2\\})?")
            .prop_map(|(field, source)| { Query::Regex { field, regex: LuceneRegex::read(&source).unwrap() } }),
        (field(), bound(), bound()).prop_map(|(field, from, to)| Query::Range { field, from, to }),
        (field(), prop::collection::vec(piece(), 1..5)).prop_filter_map(
            "the parser has simpler trees",
            |(field, p)| {
                let pattern = Wildcard::of(p);
                match pattern.pieces() {
                    [WildcardPiece::Any | WildcardPiece::Text(_)] => None,
                    [WildcardPiece::Text(_), WildcardPiece::Any] => None,
                    _ => Some(Query::Wildcard { field, pattern }),
                }
            }
        ),
    ]
}

fn occur() -> impl Strategy<Value = Occur> {
    prop::sample::select(vec![Occur::Optional, Occur::Required, Occur::Prohibited])
}

fn any_query() -> impl Strategy<Value = Query> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let clause = (occur(), inner.clone()).prop_map(|(occur, query)| {
            let has_sign = occur != Occur::Optional;
            Clause { occur, query, before: None, has_sign }
        });
        let group = prop::collection::vec(clause, 1..4)
            .prop_filter("one clause without a sign is no group", |clauses| {
                clauses.len() > 1 || clauses[0].occur != Occur::Optional
            })
            .prop_map(Query::Group);
        prop_oneof![3 => group, 1 => (inner, 0.0_f32..1e6).prop_map(|(query, factor)| query.boosted(factor))]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_text_of_a_tree_is_read_as_the_same_tree(query in any_query()) {
        let text = query.to_string();
        let again = Reader::default().read(&text);
        prop_assert_eq!(again, Ok(query), "{}", text);
    }

    #[test]
    fn what_is_read_is_the_same_after_printing(text in "([abfu: *?~^2+!&|()\"/\\[\\]{}\\\\-]|AND|OR|TO|NOT){0,24}") {
        for operator in [Operator::Or, Operator::And] {
            let reader = Reader { default_field: Some("f"), operator };
            if let Ok(query) = reader.read(&text) {
                let printed = query.to_string();
                let again = Reader::default().read(&printed).map(|query| query.to_string());
                prop_assert_eq!(again, Ok(printed));
            }
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let result = read(&text);
        if let Err(error) = result {
            prop_assert!(error.offset_chars <= text.chars().count());
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn long_hostile_texts_are_read_quickly() {
    for piece in
        ["(", "\"", "a^2", "a~", "*", "?a", "[a TO b]", "\\", "/a/", "f:", "+", "- ", "a:(", "{a", "\\u0041", "NOT "]
    {
        let text = piece.repeat(limits::QUERY_BYTES_MAX / piece.len());
        // The result does not matter here, only that there is one.
        let _ = read(&text);
    }
}
