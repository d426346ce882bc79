//! Values cross unchanged, whatever they are, and searches find what they should.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53)..(1_i64 << 53)).prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..6).prop_map(|members| Value::Object(
                members.into_iter().filter(|(name, _)| name != "__proto__").collect()
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn values_cross_unchanged(value in json_value()) {
        let mut identity = session("function(a, b, c) { return [a, b, c]; }");
        let text = value.to_string();
        prop_assert_eq!(values_in(&identity.map(&text, &text, &text).unwrap()), vec![value.clone(), value.clone(), value]);
    }

    /// Any text is a program that works or fails, and never more.
    #[test]
    fn any_source_gives_a_result_or_an_error(source in ".{0,60}") {
        let opened = Program::source(&source).and_then(|program| Session::open(program, limits(), clock()));
        drop(opened.and_then(|mut session| session.map("[1]", "null", "null")));
    }

    /// The searches that are cut into pieces find what other searches find.
    #[test]
    fn searches_in_pieces_find_the_same(
        prefix in 0_usize..9000, what in 800_usize..2000, at in -2_i64..10_000, hit in any::<bool>(),
    ) {
        let source = "function(n, m, arg) { var where = 'a'.repeat(n) + (arg.hit ? 'b' : '') + 'a'.repeat(m); \
                      var what = 'a'.repeat(m) + 'b'; \
                      return [where.indexOf(what, arg.at), where.includes(what, arg.at)]; }";
        let limits = Limits { call_time_max: Duration::from_secs(60), ..limits() };
        let mut search = Session::open(Program::source(source).unwrap(), limits, clock()).unwrap();
        let arg = serde_json::json!({ "at": at, "hit": hit }).to_string();
        let values = values_in(&search.map(&prefix.to_string(), &what.to_string(), &arg).unwrap());
        let found = (hit && prefix >= what).then(|| (prefix - what) as i64).filter(|first| at <= *first);
        prop_assert_eq!(values[0].as_i64().unwrap(), found.unwrap_or(-1));
        prop_assert_eq!(values[1].as_bool().unwrap(), found.is_some());
    }
}
