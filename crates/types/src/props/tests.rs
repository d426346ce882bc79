use super::check::TTL_SECS_MAX;
use super::*;
use proptest::prelude::*;
use serde_json::json;

const ACTIVE: PropScope = PropScope::UpdateType { active: true };

fn map(value: Value) -> PropMap {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

fn with(mut defaults: PropMap, changes: Value) -> PropMap {
    defaults.extend(map(changes));
    defaults
}

fn bucket(changes: Value) -> Result<PropMap, PropErrors> {
    check(PropScope::Bucket, &default_type_defaults(), &map(changes))
}

fn create(changes: Value) -> Result<PropMap, PropErrors> {
    check(PropScope::CreateType, &created_type_defaults(), &map(changes))
}

/// The JSON form and the Erlang form of the answer.
fn refusal(result: Result<PropMap, PropErrors>) -> (String, String) {
    let errors = result.expect_err("refused");
    (errors.to_json().to_string(), errors.to_string())
}

#[test]
fn defaults_are_what_a_riak_node_shows() {
    let shown = r#"{"allow_mult":false,"basic_quorum":false,"big_vclock":50,"chash_keyfun":{"mod":"riak_core_util","fun":"chash_std_keyfun"},"dvv_enabled":false,"dw":"quorum","last_write_wins":false,"linkfun":{"mod":"riak_kv_wm_link_walker","fun":"mapreduce_linkfun"},"n_val":3,"node_confirms":0,"notfound_ok":true,"old_vclock":86400,"postcommit":[],"pr":0,"precommit":[],"pw":0,"r":"quorum","repl":true,"rw":"quorum","small_vclock":50,"sync_on_write":"backend","w":"quorum","write_once":false,"young_vclock":20}"#;
    assert_eq!(Value::Object(default_type_defaults()).to_string(), shown);
    let shown = r#"{"young_vclock":20,"w":"quorum","sync_on_write":"backend","small_vclock":50,"rw":"quorum","r":"quorum","pw":0,"precommit":[],"pr":0,"postcommit":[],"old_vclock":86400,"notfound_ok":true,"node_confirms":0,"n_val":3,"linkfun":{"mod":"riak_kv_wm_link_walker","fun":"mapreduce_linkfun"},"last_write_wins":false,"dw":"quorum","dvv_enabled":true,"chash_keyfun":{"mod":"riak_core_util","fun":"chash_std_keyfun"},"big_vclock":50,"basic_quorum":false,"allow_mult":true}"#;
    assert_eq!(Value::Object(created_type_defaults()).to_string(), shown);
}

#[test]
fn the_typed_defaults_are_the_shown_ones() {
    assert_eq!(BucketProps::from_map(&PropMap::new()), BucketProps::default());
    assert_eq!(BucketProps::from_map(&default_type_defaults()), BucketProps::default());
    let created = BucketProps { allow_mult: true, dvv_enabled: true, ..BucketProps::default() };
    assert_eq!(BucketProps::from_map(&created_type_defaults()), created);
}

#[test]
fn every_property_reaches_the_engine() {
    let props = BucketProps::from_map(&map(json!({
        "n_val": 5, "allow_mult": true, "last_write_wins": true, "dvv_enabled": true, "r": 1, "pr": "one", "w": "all",
        "dw": 0, "pw": 2, "rw": "all", "node_confirms": 2, "notfound_ok": false, "basic_quorum": true,
        "sync_on_write": "all", "precommit": [{"mod": "m", "fun": "f"}], "postcommit": [{"name": "js"}],
        "old_vclock": 1, "young_vclock": 2, "big_vclock": 3, "small_vclock": 4, "backend": "fast", "datatype": "hll",
        "hll_precision": 12, "consistent": true, "write_once": true, "aae_tree_exclude": true, "ttl": 7,
        "search_index": "famous",
        "chash_keyfun": {"mod": "riak_core_util", "fun": "chash_bucketonly_keyfun"}, "active": true, "zork": 1,
    })));
    let expected = BucketProps {
        n_val: 5,
        allow_mult: true,
        last_write_wins: true,
        dvv_enabled: true,
        r: Quorum::Count(1),
        pr: Quorum::One,
        w: Quorum::All,
        dw: Quorum::Count(0),
        pw: Quorum::Count(2),
        rw: Quorum::All,
        node_confirms: Quorum::Count(2),
        notfound_ok: false,
        basic_quorum: true,
        sync_on_write: SyncOnWrite::All,
        precommit: vec![Hook::ModFun { module: "m".into(), function: "f".into() }],
        postcommit: vec![Hook::Named("js".into())],
        old_vclock: 1,
        young_vclock: 2,
        big_vclock: 3,
        small_vclock: 4,
        backend: Some(Bytes::from_static(b"fast")),
        datatype: Some(DataType::Hll),
        hll_precision: Some(12),
        consistent: true,
        write_once: true,
        hash_bucket_only: true,
        aae_tree_exclude: true,
        search_index: Some("famous".into()),
        ttl: 7,
    };
    assert_eq!(props, expected);
    let props = BucketProps::from_map(&map(json!({"search_index": "_dont_index_"})));
    assert_eq!(props.search_index, None, "the bucket is taken out of the index of its type");
    let props = expected;
    assert_eq!(props.pruning(), Pruning { small: 4, big: 3, young_secs: 2, old_secs: 1 });
}

#[test]
fn refusals_read_like_riaks() {
    let cases = [
        (json!({"n_val": 0}), r#"{"n_val":"not_integer"}"#, "[{n_val,not_integer}]"),
        (json!({"n_val": "x"}), r#"{"n_val":"not_integer"}"#, "[{n_val,not_integer}]"),
        (json!({"allow_mult": "maybe"}), r#"{"allow_mult":"not_boolean"}"#, "[{allow_mult,not_boolean}]"),
        (json!({"r": "foo"}), r#"{"r":"not_valid_quorum"}"#, "[{r,not_valid_quorum}]"),
        (
            json!({"sync_on_write": "some"}),
            r#"{"sync_on_write":"not_valid_sync_param"}"#,
            "[{sync_on_write,not_valid_sync_param}]",
        ),
        (
            json!({"r": 0, "n_val": -1}),
            r#"{"r":"not_valid_quorum","n_val":"not_integer"}"#,
            "[{r,not_valid_quorum},{n_val,not_integer}]",
        ),
        (
            json!({"nval": 3}),
            r#"{"nval":"unknown property, did you mean n_val?"}"#,
            "[{nval,<<\"unknown property, did you mean n_val?\">>}]",
        ),
        (json!({"zork!": 3}), r#"{"zork!":"unknown property"}"#, "[{'zork!',<<\"unknown property\">>}]"),
    ];
    for (changes, json, erlang) in cases {
        assert_eq!(refusal(bucket(changes)), (json.into(), erlang.into()));
    }
}

#[test]
fn a_data_type_cannot_be_set_later() {
    let text = "`datatype` must not be defined.";
    let codes: Vec<String> = text.bytes().map(|b| b.to_string()).collect();
    let expected = (format!(r#"{{"datatype":[{}]}}"#, codes.join(",")), format!(r#"[{{datatype,"{text}"}}]"#));
    let changes = map(json!({"datatype": "counter"}));
    for scope in [PropScope::Bucket, ACTIVE] {
        assert_eq!(refusal(check(scope, &created_type_defaults(), &changes)), expected);
    }
    let sets = with(created_type_defaults(), json!({"datatype": "set"}));
    assert_eq!(
        refusal(check(ACTIVE, &sets, &changes)).1,
        r#"[{datatype,"Cannot update datatype on existing bucket"}]"#
    );
    assert_eq!(check(ACTIVE, &sets, &map(json!({"datatype": "set"}))), Ok(map(json!({"datatype": "set"}))));
}

/// Thirteen values are wrong, one is accepted as a boolean and one as a number, as a Riak node
/// answers.
#[test]
fn all_that_is_wrong_is_named_at_once() {
    let errors = bucket(json!({
        "allow_mult": "elephant", "basic_quorum": "fasle", "big_vclock": 89.90, "dw": "qurum", "last_write_wins": 90,
        "n_val": "3", "notfound_ok": "truish", "old_vclock": -9890, "pr": -90, "pw": "seventeen", "r": "florum",
        "rw": -9090.9093, "small_vclock": "wibble", "w": "a horse a horse my kingdom", "young_vclock": "12",
    }))
    .expect_err("refused");
    assert_eq!(errors.iter().count(), 13);
    assert_eq!(errors.to_lines().lines().next(), Some("allow_mult: not_boolean"));
}

#[test]
fn words_and_numbers_become_what_they_stand_for() {
    let changes = json!({
        "allow_mult": "True", "basic_quorum": 1, "notfound_ok": 0, "last_write_wins": "false", "young_vclock": "12",
        "repl": "true", "r": "one", "pr": 0, "w": 9, "node_confirms": "all", "sync_on_write": "one",
    });
    let kept = json!({
        "allow_mult": true, "basic_quorum": true, "notfound_ok": false, "last_write_wins": false, "young_vclock": 12,
        "repl": true, "r": "one", "pr": 0, "w": 9, "node_confirms": "all", "sync_on_write": "one",
    });
    assert_eq!(bucket(changes), Ok(map(kept)));
}

#[test]
fn a_time_to_live_is_in_seconds() {
    for (given, kept) in [(json!(0), 0), (json!(60), 60), (json!("60"), 60), (json!(TTL_SECS_MAX), TTL_SECS_MAX)] {
        assert_eq!(bucket(json!({ "ttl": given })), Ok(map(json!({ "ttl": kept }))));
    }
    for bad in [json!(-1), json!(1.5), json!(TTL_SECS_MAX + 1), json!("1h"), json!(""), json!(null), json!([60])] {
        let (json, _) = refusal(bucket(json!({ "ttl": bad })));
        assert_eq!(json, r#"{"ttl":"must be a whole number of seconds from 1 to 1000000000, or 0 for no end"}"#);
    }
}

#[test]
fn quorums_have_bounds() {
    for name in ["r", "w", "rw"] {
        assert!(bucket(json!({name: 0})).is_err() && bucket(json!({name: 1})).is_ok(), "{name}");
    }
    for name in ["pr", "pw", "dw", "node_confirms"] {
        assert!(bucket(json!({name: 0})).is_ok() && bucket(json!({name: -1})).is_err(), "{name}");
    }
    for bad in [json!("default"), json!(4_294_967_293u32), json!(1u64 << 40), json!(1.5), json!(null), json!([1])] {
        assert!(bucket(json!({"r": bad})).is_err(), "{bad}");
    }
    assert!(bucket(json!({"n_val": 1024})).is_ok() && bucket(json!({"n_val": 1025})).is_err());
}

#[test]
fn functions_have_their_forms() {
    let good = [
        json!({"precommit": [{"mod": "nomod", "fun": "nofun"}, {"name": "Foo.bar"}], "postcommit": []}),
        json!({"linkfun": {"mod": "riak_kv_wm_link_walker", "fun": "mapreduce_linkfun"}}),
        json!({"linkfun": {"jsfun": "f"}}),
        json!({"linkfun": {"jsanon": "function(v) {}"}}),
        json!({"linkfun": {"jsanon": {"bucket": "b", "key": "k"}}}),
        json!({"chash_keyfun": {"mod": "riak_core_util", "fun": "chash_bucketonly_keyfun"}}),
        json!({"search": true, "search_index": "famous", "search_extractor": {"mod": "m", "fun": "f"}}),
        json!({"repl": "realtime", "backend": "fast"}),
    ];
    for changes in good {
        assert_eq!(bucket(changes.clone()), Ok(map(changes)));
    }
    let bad = [
        json!({"precommit": "zork"}),
        json!({"precommit": {"mod": "m", "fun": "f"}}),
        json!({"postcommit": [{"mod": "m"}]}),
        json!({"linkfun": "zork"}),
        json!({"linkfun": {"jsanon": {"bucket": "b"}}}),
        json!({"chash_keyfun": {"mod": "mine", "fun": "hash"}}),
        json!({"repl": "sometimes"}),
        json!({"backend": ""}),
        json!({"search_index": 5}),
    ];
    for changes in bad {
        assert!(bucket(changes.clone()).is_err(), "{changes}");
    }
}

#[test]
fn data_types_keep_siblings() {
    assert_eq!(create(json!({"datatype": "map"})), Ok(map(json!({"datatype": "map"}))));
    assert!(create(json!({"datatype": "counter", "allow_mult": true})).is_ok());
    let refused = r#"[{allow_mult,"Data Type buckets must be allow_mult=true"}]"#;
    assert_eq!(refusal(create(json!({"datatype": "set", "allow_mult": false}))).1, refused);
    assert_eq!(
        refusal(create(json!({"datatype": "zork"}))).1,
        r#"[{datatype,"zork not supported for bucket datatype property"}]"#
    );
    let maps = with(created_type_defaults(), json!({"datatype": "map"}));
    for scope in [ACTIVE, PropScope::Bucket] {
        assert_eq!(refusal(check(scope, &maps, &map(json!({"allow_mult": "false"})))).1, refused);
        assert!(check(scope, &maps, &map(json!({"n_val": 1}))).is_ok());
    }
}

#[test]
fn the_precision_of_a_hyperloglog_only_falls() {
    assert_eq!(create(json!({"datatype": "hll"})), Ok(map(json!({"datatype": "hll", "hll_precision": 14}))));
    assert_eq!(
        create(json!({"datatype": "hll", "hll_precision": 16})).map(|p| p["hll_precision"].clone()),
        Ok(json!(16))
    );
    for bad in [json!(3), json!(17), json!("many")] {
        let errors = create(json!({"datatype": "hll", "hll_precision": bad})).expect_err("refused");
        assert_eq!(errors.iter().map(|e| e.property.as_str()).collect::<Vec<_>>(), ["hll_precision"]);
    }
    let hlls = with(created_type_defaults(), json!({"datatype": "hll", "hll_precision": 12}));
    let update = |bits: Value| check(ACTIVE, &hlls, &map(json!({"hll_precision": bits})));
    assert!(update(json!(12)).is_ok());
    assert_eq!(update(json!("11")), Ok(map(json!({"hll_precision": 11}))));
    assert!(update(json!(13)).is_err());
    assert_eq!(check(ACTIVE, &hlls, &map(json!({"r": 1}))), Ok(map(json!({"r": 1}))));
}

#[test]
fn write_once_and_consistent_are_decided_with_the_type() {
    assert!(create(json!({"write_once": true})).is_ok());
    assert!(create(json!({"consistent": true, "n_val": 5})).is_ok());
    assert!(create(json!({"write_once": true, "datatype": "set"})).is_err());
    assert!(create(json!({"write_once": true, "consistent": true})).is_err());
    let plain = created_type_defaults();
    let special = with(plain.clone(), json!({"write_once": true, "consistent": true}));
    for (name, refused) in [
        ("write_once", r#"[{write_once,"cannot update write_once property"}]"#),
        ("consistent", r#"[{consistent,"cannot update consistent property"}]"#),
    ] {
        for scope in [ACTIVE, PropScope::Bucket] {
            assert_eq!(refusal(check(scope, &plain, &map(json!({name: true})))).1, refused);
            assert_eq!(refusal(check(scope, &special, &map(json!({name: "false"})))).1, refused);
            assert!(check(scope, &plain, &map(json!({name: false}))).is_ok());
            assert!(check(scope, &special, &map(json!({name: true}))).is_ok());
        }
        let inactive = PropScope::UpdateType { active: false };
        assert!(check(inactive, &plain, &map(json!({name: true}))).is_ok(), "nobody has used the type yet");
    }
    assert!(check(ACTIVE, &special, &map(json!({"n_val": 5}))).is_err());
    assert!(check(ACTIVE, &special, &map(json!({"n_val": 3}))).is_ok());
}

#[test]
fn last_write_wins_excludes_dots() {
    let refused = r#"[{dvv_enabled,"If last_write_wins is true, dvv_enabled must be false"}]"#;
    assert_eq!(refusal(create(json!({"last_write_wins": true}))).1, refused);
    assert!(create(json!({"last_write_wins": true, "allow_mult": false, "dvv_enabled": false})).is_ok());
    assert!(bucket(json!({"last_write_wins": true})).is_ok(), "untyped buckets have no dots");
}

#[test]
fn an_answer_can_be_sent_back() {
    for extra in [json!({}), json!({"datatype": "hll", "hll_precision": 14}), json!({"write_once": true})] {
        let mut shown = with(created_type_defaults(), extra);
        let effective = shown.clone();
        shown.extend(map(json!({"name": "b", "active": true, "claimant": "riak@127.0.0.1"})));
        let kept = check(PropScope::Bucket, &effective, &shown).expect("taken");
        for name in ["name", "active", "claimant", "datatype", "write_once"] {
            assert!(!kept.contains_key(name), "{name} is not the bucket's");
        }
    }
    assert!(bucket(Value::Object(default_type_defaults())).is_ok());
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-2..20i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        "true|one|all|default|backend|counter|hll|both".prop_map(Value::from),
        Just(json!([{"mod": "m", "fun": "f"}])),
        Just(json!({"mod": "riak_core_util", "fun": "chash_std_keyfun"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Accepted changes are accepted again, and no set of changes is partly accepted.
    #[test]
    fn checked_changes_pass_again(
        names in prop::collection::vec(prop::sample::select(vec![
            "n_val", "allow_mult", "r", "pr", "sync_on_write", "precommit", "chash_keyfun", "linkfun", "young_vclock",
            "repl", "datatype", "hll_precision", "consistent", "write_once", "last_write_wins", "dvv_enabled", "zork",
        ]), 0..6),
        values in prop::collection::vec(any_value(), 6),
        scope in prop::sample::select(vec![PropScope::CreateType, ACTIVE, PropScope::Bucket]),
    ) {
        let changes: PropMap = names.into_iter().map(str::to_owned).zip(values).collect();
        let current = created_type_defaults();
        match check(scope, &current, &changes) {
            Ok(kept) => {
                prop_assert_eq!(check(scope, &current, &kept), Ok(kept.clone()));
                let mut effective = current.clone();
                effective.extend(kept);
                let props = BucketProps::from_map(&effective);
                prop_assert!(props.n_val >= 1 && (props.datatype.is_none() || props.allow_mult));
                prop_assert!(!(props.last_write_wins && props.dvv_enabled));
            }
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                prop_assert!(errors.iter().all(|e| changes.contains_key(&e.property)
                    || e.property == "dvv_enabled" || e.property == "allow_mult"));
            }
        }
    }
}
