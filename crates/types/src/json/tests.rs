use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn read(text: &str) -> Json {
    Json::read(text.as_bytes()).unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

fn refused(text: &[u8]) -> BadJsonKind {
    Json::read(text).expect_err(&String::from_utf8_lossy(text)).kind
}

fn text(text: &str) -> Json {
    Json::from(text)
}

/// What mochijson2 of Riak 3.2.3 makes of these texts.
#[test]
fn what_riak_takes_beyond_the_standard_is_taken() {
    for (json, value) in [
        (r#""\w*\-\d \é""#, text(r"\w*\-\d \é")),
        (r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000""#, text("\"\\/\u{8}\u{c}\n\r\té😀\0")),
        ("\"a\nb\t\0\u{7f}\"", text("a\nb\t\0\u{7f}")),
        (r#""\u1""#, text(r"\u1")),
        ("[1,]", Json::List(vec![Json::Int(1)])),
        ("[[],{},]", Json::List(vec![Json::List(vec![]), Json::Object(vec![])])),
        (r#"{"a":1,}"#, Json::Object(vec![("a".into(), Json::Int(1))])),
        (r#"{"a":1,"a":2}"#, Json::Object(vec![("a".into(), Json::Int(1)), ("a".into(), Json::Int(2))])),
        ("{1:2,null:3}", Json::Object(vec![("1".into(), Json::Int(2)), ("null".into(), Json::Int(3))])),
        (" \t\r\n1e2 ", Json::Float(100.0)),
        ("-0", Json::Int(0)),
        ("-1.5E-1", Json::Float(-0.15)),
        ("9223372036854775808", Json::Big(BigInt::from(1_u64 << 63))),
        ("-9223372036854775808", Json::Int(i64::MIN)),
    ] {
        assert_eq!(read(json), value, "{json}");
    }
    let members = read(r#"{"inputs":"first","inputs":"second"}"#);
    assert_eq!(member(members.as_object().unwrap(), "inputs"), Some(&text("first")));
}

#[test]
fn what_riak_refuses_is_refused() {
    for (json, kind) in [
        ("", BadJsonKind::UnexpectedEnd),
        ("[", BadJsonKind::UnexpectedEnd),
        ("\"a", BadJsonKind::UnexpectedEnd),
        ("\"a\\", BadJsonKind::UnexpectedEnd),
        ("// c\n1", BadJsonKind::Unexpected),
        ("[/**/]", BadJsonKind::Unexpected),
        ("\u{feff}1", BadJsonKind::Unexpected),
        ("1 2", BadJsonKind::TrailingText),
        ("[1]]", BadJsonKind::TrailingText),
        ("1.", BadJsonKind::TrailingText),
        ("01", BadJsonKind::TrailingText),
        ("nullx", BadJsonKind::TrailingText),
        ("[,]", BadJsonKind::Unexpected),
        ("[1,,]", BadJsonKind::Unexpected),
        ("[1 2]", BadJsonKind::Unexpected),
        ("{,}", BadJsonKind::Unexpected),
        (r#"{"a"}"#, BadJsonKind::Unexpected),
        (r#"{"a":1 "b":2}"#, BadJsonKind::Unexpected),
        ("{[]:1}", BadJsonKind::Unexpected),
        ("nul", BadJsonKind::Unexpected),
        ("'a'", BadJsonKind::Unexpected),
        ("NaN", BadJsonKind::Unexpected),
        ("-", BadJsonKind::BadNumber),
        ("-a", BadJsonKind::BadNumber),
        ("1e", BadJsonKind::BadNumber),
        ("1e+", BadJsonKind::BadNumber),
        ("1e999", BadJsonKind::NumberTooLarge),
        (r#""\u12g4""#, BadJsonKind::BadEscape),
        (r#""\ud800 and""#, BadJsonKind::BadEscape),
        (r#""\ud800\u0041""#, BadJsonKind::BadEscape),
        (r#""\udc00 and""#, BadJsonKind::BadEscape),
    ] {
        assert_eq!(refused(json.as_bytes()), kind, "{json}");
    }
    assert_eq!(refused(b"\"\xff\""), BadJsonKind::NotUtf8);
    assert_eq!(Json::read(b"[1,\n 2 x]").unwrap_err().to_string(), "unexpected character at line 2 column 4");
}

#[test]
fn nesting_and_numbers_are_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Json::read(nested(128).as_bytes()).is_ok());
    assert_eq!(refused(nested(129).as_bytes()), BadJsonKind::TooDeep);
    assert_eq!(refused("[".repeat(1 << 20).as_bytes()), BadJsonKind::TooDeep);
    assert!(Json::read("9".repeat(4096).as_bytes()).is_ok());
    assert_eq!(refused("9".repeat(4097).as_bytes()), BadJsonKind::NumberTooLarge);
    assert!(size_of::<Json>() <= 40, "the memory for two bytes, a digit and a comma");
}

/// Values with integers of so many bits.
fn json(bits: u32) -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i128>().prop_map(move |n| Json::from(n >> (i128::BITS - bits))),
        (-1_000_000_i32..1_000_000).prop_map(|eighths| Json::Float(f64::from(eighths) / 8.0)),
        any::<String>().prop_map(Json::Text),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::List),
            prop::collection::vec((any::<String>(), inner), 0..5).prop_map(Json::Object),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_comes_back_from_its_text(value in json(128)) {
        prop_assert_eq!(Json::read(value.to_string().as_bytes()), Ok(value));
    }

    /// What the standard allows means the same here, as far as `serde_json` has all digits.
    #[test]
    fn standard_json_means_the_same(value in json(65)) {
        let text = value.to_string();
        let standard: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(value.into_value(), standard.clone());
        prop_assert_eq!(Json::read(standard.to_string().as_bytes()).unwrap().into_value(), standard);
    }

    #[test]
    fn any_bytes_are_a_value_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        drop(Json::read(&bytes));
    }

    #[test]
    fn any_text_of_signs_is_a_value_or_refused(text in r#"[\[\]{},:"\\u0-9a-f.eE+\- \n]{0,40}"#) {
        match Json::read(text.as_bytes()) {
            Ok(value) => prop_assert_eq!(Json::read(value.to_string().as_bytes()), Ok(value)),
            // Whatever the standard takes is taken.
            Err(bad) => prop_assert!(serde_json::from_str::<Value>(&text).is_err(), "{}", bad),
        }
    }
}
