use super::*;
use proptest::prelude::*;

fn one(text: &str) -> Term {
    Term::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn wrong(text: &str) -> String {
    match read(text.as_bytes()) {
        Ok(terms) => panic!("{text} was read: {terms:?}"),
        Err(error) => error.to_string(),
    }
}

fn integers(numbers: &[i128]) -> Term {
    Term::List(numbers.iter().copied().map(Term::Integer).collect())
}

#[test]
fn numbers_are_read() {
    for (text, number) in [
        ("42", 42),
        ("-7", -7),
        ("+ 7", 7),
        ("1_000_000", 1_000_000),
        ("16#2A", 42),
        ("-2#1010", -10),
        ("36#zZ", 1295),
        ("$a", 97),
        ("$\\n", 10),
        ("$\\s", 32),
        ("$ ", 32),
        ("-$a", -97),
        ("$\\x{1F600}", 0x1f600),
        ("-170141183460469231731687303715884105728", i128::MIN),
    ] {
        assert_eq!(one(text), Term::Integer(number), "{text}");
    }
    for (text, number) in [("1.5", 1.5), ("-1.0e-3", -0.001), ("1.0E+3", 1000.0), ("1_0.2_5", 10.25)] {
        assert_eq!(one(text), Term::Float(number), "{text}");
    }
}

#[test]
fn atoms_are_read() {
    for (text, name) in [
        ("get", "get"),
        ("node1@host_2", "node1@host_2"),
        ("'quoted atom'", "quoted atom"),
        ("'it\\'s'", "it's"),
        ("''", ""),
        ("éa", "éa"),
    ] {
        assert_eq!(one(text), Term::atom(name), "{text}");
    }
}

#[test]
fn strings_are_read() {
    for (text, content) in [
        (r#""plain""#, "plain"),
        (
            r#""a" "b" % and
            "c""#,
            "abc",
        ),
        (r#""\b\d\e\f\n\r\s\t\v\\\"\q""#, "\x08\x7f\x1b\x0c\n\r \t\x0b\\\"q"),
        (r#""\101\0\x41\x{20ac}\^A\^?""#, "A\0A€\x01\x7f"),
        ("\"two\nlines\"", "two\nlines"),
    ] {
        assert_eq!(one(text), Term::text(content), "{text}");
    }
}

#[test]
fn binaries_are_read() {
    for (text, bytes) in [
        ("<<>>", &b""[..]),
        ("<<\"test\">>", b"test"),
        ("<< 1, 2 , 255 >>", &[1, 2, 255]),
        ("<<\"a\", 0, $b, \"c\" \"d\">>", b"a\0bcd"),
        ("<<256, -1>>", &[0, 255]),
        ("<<\"é\">>", &[0xe9]),
        ("<<\"é\"/utf8>>", "é".as_bytes()),
    ] {
        assert_eq!(one(text), Term::Binary(bytes.to_vec()), "{text}");
    }
}

#[test]
fn files_are_read_with_places() {
    let text = "\u{feff}%% -*- erlang -*-\n{mode, max}. % fast\n\n  {pairs, [{a, 1}, {\"b\", []}]}.%end";
    let terms = read(text.as_bytes()).unwrap();
    let places: Vec<_> = terms.iter().map(|placed| (placed.line, placed.column)).collect();
    assert_eq!(places, [(2, 1), (4, 3)]);
    assert_eq!(terms[0].term, Term::Tuple(vec![Term::atom("mode"), Term::atom("max")]));
    let pair = |name, value| Term::Tuple(vec![name, value]);
    let pairs = Term::List(vec![pair(Term::atom("a"), Term::Integer(1)), pair(Term::text("b"), Term::List(vec![]))]);
    assert_eq!(terms[1].term, pair(Term::atom("pairs"), pairs));
    assert_eq!(read(b"  % nothing\n").unwrap(), []);
}

#[test]
fn old_files_are_latin_1() {
    assert_eq!(read(b"{x, \"\xe9\"}.").unwrap()[0].term, Term::Tuple(vec![Term::atom("x"), Term::text("é")]));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, message) in [
        ("{mode, max}", "1:12: '.' was expected after the term, not the end"),
        ("{a, 1}.{b, 2}.", "1:8: white space was expected after '.', not '{'"),
        ("{a, 1}\n{b, 2}.", "2:1: '.' was expected after the term, not '{'"),
        ("{a,\n [1, 2}.", "2:7: ',' or ']' was expected, not '}'"),
        ("{a, [1, 2.", "1:10: ',' or ']' was expected, not '.'"),
        ("{a, [1,2],}.", "1:11: an element was expected after ',', not '}'"),
        ("{a, 1", "1:1: this is never closed with '}'"),
        ("{a, \"b}.", "1:5: this is never closed with \""),
        ("{a, Max}.", "1:5: Max is a variable, and a configuration has none; an atom would be 'Max'"),
        ("{a, [1|[2]]}.", "1:7: a list with a tail is not understood; write its elements"),
        ("{a, <<1:16>>}.", "1:8: segments with a size are not understood; write the bytes"),
        ("{a, <<1/float>>}.", "1:8: of the types of segments only a string's /utf8 is understood; write the bytes"),
        ("{a, <<b>>}.", "1:7: a binary is made of strings and of numbers from 0 to 255: <<\"a\",0>>"),
        ("{a, <<1.5>>}.", "1:7: a binary is made of strings and of numbers from 0 to 255: <<\"a\",0>>"),
        ("{a, #{b => c}}.", "1:5: maps and records are not allowed in a configuration"),
        ("{a, <0.1.0>}.", "1:5: '<' begins a binary as in <<\"bytes\">>; nothing else does"),
        ("{a, 1e3}.", "1:5: a float has digits on both sides of its point: 1.0e3"),
        ("{a, 1.0e}.", "1:9: an exponent has digits: 1.0e-3"),
        ("{a, 1.0e999}.", "1:5: this number is too large for a float"),
        ("{a, 12ab}.", "1:7: 'a' cannot be part of this number"),
        ("{a, 1_}.", "1:6: '_' cannot be part of this number"),
        ("{a, 37#1}.", "1:5: a base is 2 to 36"),
        ("{a, 16#}.", "1:5: digits of base 16 were expected after '#'"),
        ("{a, -}.", "1:6: a number was expected, not '}'"),
        ("{a, 170141183460469231731687303715884105728}.", "1:5: this number has more than 127 bits"),
        ("{a, \"\\xZZ\"}.", "1:6: a character in hexadecimal is \\x41 or \\x{41}"),
        ("{a, \"\\x{d800}\"}.", "1:6: a character in hexadecimal is \\x41 or \\x{41}"),
        ("{a, \"\\^1\"}.", "1:6: a control character is \\^@ to \\^_"),
        ("{a, \"\\", "1:6: nothing follows the backslash"),
        ("{a, !}.", "1:5: a term was expected, not '!'"),
    ] {
        assert_eq!(wrong(text), message, "{text}");
    }
    assert_eq!(Term::parse("a b").unwrap_err().to_string(), "1:3: one term is wanted, but 'b' follows it");
    assert_eq!(Term::parse("a. b").unwrap_err().to_string(), "1:4: one term is wanted, but 'b' follows it");
    assert_eq!(one(" {a, 1}. % that is all"), one("{a,1}"));
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize, [open, close]: [&str; 2]| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    assert!(Term::parse(&nested(DEPTH_MAX, ["[", "]"])).is_ok());
    for brackets in [["[", "]"], ["{", "}"], ["{[", "]}"], ["<<", ">>"]] {
        let error = Term::parse(&nested(1_000_000, brackets)).unwrap_err();
        assert!(error.what.contains("deeper than 100") || error.what.starts_with("a binary is"), "{error}");
    }
}

#[test]
fn terms_are_written_as_erlang_writes_them() {
    for (term, text) in [
        (Term::Float(1.0), "1.0"),
        (Term::Float(1e22), "1.0e22"),
        (Term::Float(1.5e-7), "1.5e-7"),
        (Term::atom("get"), "get"),
        (Term::atom("Get"), "'Get'"),
        (Term::atom("end"), "'end'"),
        (Term::atom(""), "''"),
        (Term::atom("it's"), "'it\\'s'"),
        (Term::text("a\"\n\x01"), "\"a\\\"\\n\\x{1}\""),
        (Term::Binary(b"test".to_vec()), "<<\"test\">>"),
        (Term::Binary(vec![0, 255]), "<<0,255>>"),
        (Term::Binary(vec![]), "<<>>"),
        (Term::Tuple(vec![integers(&[1, -2]), Term::List(vec![])]), "{[1, -2], []}"),
    ] {
        assert_eq!(term.to_string(), text);
    }
}

#[test]
fn a_term_says_what_it_is() {
    assert_eq!(integers(&[104, 105]).as_text().as_deref(), Some("hi"));
    assert_eq!(integers(&[104, -1]).as_text(), None);
    assert_eq!(Term::atom("a").as_text(), None);
    assert_eq!(Term::text("").as_list(), Some(&[][..]));
    assert_eq!(Term::text("a").as_list(), None);
    assert_eq!((Term::Integer(2).as_number(), Term::Float(0.5).as_number()), (Some(2.0), Some(0.5)));
    assert_eq!((one("{a}").as_tuple(), one("[a]").as_tuple()), (Some(&[Term::atom("a")][..]), None));
    assert_eq!((one("<<1>>").as_binary(), one("1").as_binary()), (Some(&[1u8][..]), None));
}

fn any_term() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        any::<i128>().prop_map(Term::Integer),
        (-1000i128..1000).prop_map(Term::Integer),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Term::Float),
        any::<String>().prop_map(Term::Atom),
        "[a-z][a-z0-9_@]{0,9}".prop_map(Term::Atom),
        any::<String>().prop_map(Term::Text),
        any::<Vec<u8>>().prop_map(Term::Binary),
        "[ -~]{0,9}".prop_map(|text| Term::Binary(text.into_bytes())),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let elements = prop::collection::vec(inner, 0..6);
        prop_oneof![elements.clone().prop_map(Term::Tuple), elements.prop_map(Term::List)]
    })
}

proptest! {
    #[test]
    fn written_terms_read_the_same(terms in prop::collection::vec(any_term(), 0..4)) {
        let text: String = terms.iter().map(|term| format!("{term}.\n")).collect();
        let again: Vec<Term> = read(text.as_bytes()).unwrap().into_iter().map(|placed| placed.term).collect();
        prop_assert_eq!(again, terms);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        drop(read(&bytes));
    }

    #[test]
    fn any_punctuation_is_read_or_refused(text in "[a-c1-9 .,{}\\[\\]<>\"'$#\\\\^x_%/:|-]{0,60}") {
        if let Ok(terms) = read(text.as_bytes()) {
            let again: String = terms.iter().map(|placed| format!("{}. ", placed.term)).collect();
            let terms: Vec<Term> = terms.into_iter().map(|placed| placed.term).collect();
            let read_again: Vec<Term> = read(again.as_bytes()).unwrap().into_iter().map(|placed| placed.term).collect();
            prop_assert_eq!(read_again, terms);
        }
    }

    #[test]
    fn broken_terms_are_refused_with_a_place_in_them(term in any_term(), cut in any::<prop::sample::Index>()) {
        let text = format!("{term}.");
        let cut = cut.index(text.chars().count());
        let part: String = text.chars().take(cut).collect();
        if let Err(error) = read(part.as_bytes()) {
            prop_assert!(error.line >= 1 && error.line <= part.matches('\n').count() + 1);
            prop_assert!(error.column >= 1 && error.column <= part.chars().count() + 1);
        }
    }
}
