//! Tests of jobs: the exchanges that were recorded from a Riak, and both encodings.

mod errors;
mod lenient;
mod listed;

use super::*;
use crate::native::{MapFunction, ReduceFunction};
use crate::{Encoding, Input, LinkMatch};
use bytes::Bytes;
use ombak_types::etf::{Term, encode};
use ombak_types::{Bucket, IndexTerm};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The requests and responses of the recorded exchanges with a number.
fn recorded() -> Vec<(String, Vec<u8>, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/recordings/http");
    let mut exchanges = Vec::new();
    for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap_or_default();
        if !name.contains("_mr_") || !text.contains("POST /mapred") || !text.contains("Content-Type: application/json")
        {
            continue;
        }
        let (request, response) = text.split_once("--- RESPONSE").unwrap();
        let body = request.split_once("\r\n\r\n").unwrap().1;
        let body = body.strip_suffix("\r\n").or_else(|| body.strip_suffix('\n')).unwrap_or(body);
        exchanges.push((name, body.as_bytes().to_vec(), response.to_owned()));
    }
    exchanges.sort();
    exchanges
}

#[test]
fn recorded_requests_are_jobs_or_have_riaks_errors() {
    let exchanges = recorded();
    assert!(exchanges.len() > 30, "{}", exchanges.len());
    let refused = [
        ("405_mr_keyfilter_bad", 500, r#"{"bad_filter":"zork"}"#),
        (
            "413_mr_reduce_index_identity",
            400,
            "{\"phase\":1,\"error\":\"invalid function named in PhaseSpec function:\\n riak_kv_mapreduce:",
        ),
        ("417_mr_typed_input", 400, "An error occurred parsing the \"inputs\" field.\n"),
        ("422_mr_badjson", 400, "The POST body was not valid JSON.\nThe error from the parser was:\n"),
        ("423_mr_noquery", 400, "The post body was missing the \"inputs\" or \"query\" field.\n"),
        ("424_mr_noinputs", 400, "The post body was missing the \"inputs\" or \"query\" field.\n"),
        (
            "425_mr_badmodule",
            400,
            "{\"phase\":0,\"error\":\"invalid module named in PhaseSpec function:\\n must be a valid module name \
             (failed to load zork: nofile)",
        ),
        ("426_mr_badphase", 400, "An error occurred parsing the \"query\" field.\n"),
        ("432_mr_strfun", 500, r#"{"phase":0,"error":""#),
    ];
    for (name, request, response) in exchanges {
        let job = Job::from_json(&request);
        let Some((_, status, beginning)) = refused.iter().find(|(refused, ..)| *refused == name) else {
            assert!(job.is_ok(), "{name}: {job:?}");
            continue;
        };
        let (found, content_type, body) = job.unwrap_err().to_http();
        assert_eq!(found, *status, "{name}");
        assert!(body.starts_with(beginning), "{name}: {body}");
        if response.trim() == "withheld" {
            continue;
        }
        assert!(response.contains(&format!("HTTP/1.1 {status} ")), "{name}");
        assert!(response.contains(&format!("Content-Type: {content_type}")), "{name}");
    }
}

fn job(inputs: &Value, query: &Value) -> Result<Job, JobError> {
    Job::from_json(json!({ "inputs": inputs, "query": query }).to_string().as_bytes())
}

fn inputs(inputs: &Value) -> Inputs {
    job(inputs, &json!([])).unwrap().inputs
}

#[test]
fn inputs_have_many_forms() {
    assert!(matches!(inputs(&json!("b")), Inputs::Bucket { bucket, .. } if bucket == Bucket::untyped("b")));
    assert!(matches!(inputs(&json!(["t", "b"])), Inputs::Bucket { bucket, .. } if bucket == Bucket::typed("t", "b")));
    let Inputs::Keys(keys) = inputs(&json!([["b", "k"], ["b", "k", {"x": 1}], ["b", "k", "kd", "t"]])) else {
        panic!("keys")
    };
    let plain = Input::new(Bucket::untyped("b"), Bytes::from_static(b"k"));
    let with = Input { key_data: Some(crate::from_json(&json!({"x": 1}).into())), ..plain.clone() };
    let typed = Input { bucket: Bucket::typed("t", "b"), key_data: Some(Term::binary(b"kd")), ..plain.clone() };
    assert_eq!(keys.iter().collect::<Vec<_>>(), [plain, with, typed]);
    let Inputs::Bucket { bucket, filter } =
        inputs(&json!({"bucket": ["t", "b"], "key_filters": [["starts_with", "a"]]}))
    else {
        panic!("filter")
    };
    assert_eq!(bucket, Bucket::typed("t", "b"));
    assert!(filter.takes(b"abc", &|| false).unwrap() && !filter.takes(b"bc", &|| false).unwrap());
    let Inputs::Index(query) = inputs(&json!({"bucket": "b", "index": "N_int", "start": 1, "end": "3"})) else {
        panic!("index")
    };
    assert_eq!((query.low, query.high), (IndexTerm::Int(1.into()), IndexTerm::Int(3.into())));
    assert_eq!(query.field, "n_int");
    assert!(matches!(
        inputs(&json!({"bucket": "b", "index": "$key", "start": "a", "end": "b"})),
        Inputs::Index(IndexQuery { low: IndexTerm::Bin(_), .. })
    ));
    assert!(matches!(
        inputs(&json!({"bucket": "b", "query": "a:b", "filter": "c:d"})),
        Inputs::Search { filter: Some(_), .. }
    ));
    assert!(matches!(inputs(&json!({"index": "i", "query": "a:b"})), Inputs::Search { filter: None, .. }));
    assert!(matches!(inputs(&json!({"module": "m", "function": "f", "arg": null})), Inputs::Function { .. }));
}

/// The index, the query and the filter of a search.
fn search(inputs: &Inputs) -> Option<(&str, &str, Option<&str>)> {
    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }
    match inputs {
        Inputs::Search { index, query, filter } => Some((text(index), text(query), filter.as_deref().map(text))),
        _ => None,
    }
}

#[test]
fn searches_have_the_forms_of_both_searches_of_riak() {
    let function = |module: &str, arg: Value| json!({"module": module, "function": "mapred_search", "arg": arg});
    for (form, filter) in [
        (json!({"index": "i", "query": "a:b"}), None),
        (json!({"bucket": "i", "query": "a:b"}), None),
        (json!({"bucket": "other", "index": "i", "query": "a:b", "filter": "c:d"}), Some("c:d")),
        (json!({"index": "i", "query": "a:b", "filter": ""}), None),
        (function("yokozuna", json!(["i", "a:b"])), None),
        (function("yokozuna", json!(["i", "a:b", "c:d"])), Some("c:d")),
        (function("yokozuna", json!(["i", "a:b", ""])), None),
        (function("riak_search", json!(["i", "a:b"])), None),
        (function("riak_search", json!(["i", "a:b", "c:d"])), Some("c:d")),
    ] {
        assert_eq!(search(&inputs(&form)), Some(("i", "a:b", filter)), "{form}");
    }
    for form in [
        function("yokozuna", json!(["i"])),
        function("yokozuna", json!(["i", "a:b", "c:d", "e:f"])),
        function("yokozuna", json!(["i", {"q": "a:b"}])),
        function("yokozuna", json!(["i", "a:b", null])),
        function("yokozuna", json!("i")),
        function("yokozuna", json!(null)),
        function("other", json!(["i", "a:b"])),
        json!({"module": "yokozuna", "function": "search", "arg": ["i", "a:b"]}),
    ] {
        assert!(matches!(inputs(&form), Inputs::Function { .. }), "{form}");
    }
    let request = |form: &Term| {
        let members = [("inputs", form.clone()), ("query", Term::List(Vec::new()))];
        let members = members.into_iter().map(|(name, value)| Term::pair(Term::atom(name), value));
        Job::from_erlang(&encode(&Term::List(members.collect()))).unwrap().inputs
    };
    let [index, query, filter, none] = [b"i".as_slice(), b"a:b", b"c:d", b""].map(Term::binary);
    let chars = Term::string(b"a:b");
    let tagged = |tag: &str, parts: &[&Term]| {
        Term::Tuple(std::iter::once(Term::atom(tag)).chain(parts.iter().map(|part| (*part).clone())).collect())
    };
    let modfun = |module: &str, arg: &[&Term]| {
        let arg = Term::List(arg.iter().map(|part| (*part).clone()).collect());
        tagged("modfun", &[&Term::atom(module), &Term::atom("mapred_search"), &arg])
    };
    let empty = Term::List(Vec::new());
    for (form, filter) in [
        (tagged("search", &[&index, &query]), None),
        (tagged("search", &[&index, &query, &filter]), Some("c:d")),
        (tagged("search", &[&index, &chars, &empty]), None),
        (modfun("yokozuna", &[&index, &query]), None),
        (modfun("yokozuna", &[&index, &chars, &none]), None),
        (modfun("riak_search", &[&index, &query, &filter]), Some("c:d")),
        (modfun("riak_search", &[&index, &query, &empty]), None),
    ] {
        assert_eq!(search(&request(&form)), Some(("i", "a:b", filter)), "{form}");
    }
    assert!(matches!(request(&modfun("yokozuna", &[&index, &Term::Int(1)])), Inputs::Function { .. }));
}

#[test]
fn what_is_no_input_is_refused() {
    let error = |inputs: Value| match job(&inputs, &json!([])) {
        Err(JobError::Inputs(Why::Text(text))) => text,
        Err(JobError::Inputs(Why::Term(term))) => term.to_string(),
        other => panic!("{inputs}: {other:?}"),
    };
    assert_eq!(error(json!([])), "No inputs were given.\n");
    assert_eq!(
        error(json!({"bucket": "b", "index": "n_int", "key": "x"})),
        "[{field_parsing_failed,{<<\"n_int\">>,<<\"x\">>}}]"
    );
    assert_eq!(error(json!({"bucket": "b", "index": "Zork", "key": "x"})), "[{unknown_field_type,<<\"zork\">>}]");
    let both = job(&json!({"bucket": "b", "index": "n_int", "start": "y", "end": "x"}), &json!([])).unwrap_err();
    let reasons =
        "[{field_parsing_failed,{<<\"n_int\">>,<<\"x\">>}},\n {field_parsing_failed,{<<\"n_int\">>,<<\"y\">>}}]";
    assert_eq!(both.to_http().2, format!("An error occurred parsing the \"inputs\" field.\n{reasons}\n"));
    for bad in [
        json!(5),
        json!(null),
        json!({}),
        json!({"bucket": "b"}),
        json!({"bucket": "b", "key_filters": []}),
        json!({"bucket": "b", "index": "n_int", "start": 1}),
        json!([["b"]]),
        json!([["b", 1]]),
        json!([["b", "k", 1, 2]]),
        json!(["b", "k", "x"]),
        json!([[["t", "b"], "k"]]),
    ] {
        assert!(error(bad).contains("Unrecognized format"));
    }
}

#[test]
fn phases_have_functions_arguments_and_keep() {
    let query = json!([
        {"map": {"language": "erlang", "module": "riak_kv_mapreduce", "function": "map_object_value", "arg": "filter_notfound"}},
        {"link": {"bucket": "_", "tag": "t"}},
        {"map": {"language": "javascript", "name": "Riak.mapValuesJson", "keep": true}},
        {"map": {"language": "javascript", "source": "function(v) { return [v]; }"}},
        {"map": {"language": "javascript", "bucket": "code", "key": "f"}},
        {"reduce": {"language": "erlang", "module": "riak_kv_mapreduce", "function": "reduce_sort",
                    "arg": {"reduce_phase_batch_size": 7, "reduce_phase_only_1": true}}},
    ]);
    let job = job(&json!("b"), &query).unwrap();
    let [first, link, named, anonymous, stored, reduce] = job.phases.as_slice() else { panic!("{job:?}") };
    assert!(matches!(first, Phase::Map { function: Mapper::Native(MapFunction::ObjectValue), keep: false, .. }));
    let links = LinkMatch { bucket: None, tag: Some(Bytes::from_static(b"t")) };
    assert_eq!(*link, Phase::Link { links, keep: false });
    assert!(matches!(named, Phase::Map { function: Mapper::Script(ScriptSource::Named(_)), arg, keep: true }
        if arg.as_atom() == Some("none")));
    assert!(matches!(anonymous, Phase::Map { function: Mapper::Script(ScriptSource::Source(_)), .. }));
    assert!(matches!(stored, Phase::Map { function: Mapper::Script(ScriptSource::Stored { .. }), .. }));
    assert!(matches!(reduce, Phase::Reduce { function: Reducer::Native(ReduceFunction::Sort), keep: true, .. }));
    assert_eq!(reduce.batching(), Batching { values_min: Some(7), only_once: true });
    assert_eq!((job.kept_phases(), job.buckets().count()), (2, 1));
}

#[test]
fn what_is_no_phase_is_refused() {
    let erlang = |function: &str| json!({"language": "erlang", "module": "riak_kv_mapreduce", "function": function});
    for bad in [
        json!({}),
        json!([{"map": {}, "reduce": {}}]),
        json!([{"map": 1}]),
        json!([{"map": {"name": "Riak.mapValues"}}]),
        json!([{"map": {"language": "zork"}}]),
        json!([{"map": {"language": "javascript"}}]),
        json!([{"map": {"language": "javascript", "bucket": "b"}}]),
        json!([{"map": {"language": "erlang"}}]),
        json!([{"map": {"language": "javascript", "name": "f", "keep": 1}}]),
        json!([{"link": {"bucket": 1}}]),
        Value::Array(vec![json!({"link": {}}); PHASES_MAX + 1]),
    ] {
        assert!(matches!(job(&json!("b"), &bad), Err(JobError::Query(_))), "{bad}");
    }
    // A reduce function is no map function.
    for (phase, bad) in
        [json!([{"map": erlang("reduce_sort")}]), json!([{"link": {}}, {"reduce": erlang("map_identity")}])]
            .iter()
            .enumerate()
    {
        assert!(matches!(job(&json!("b"), bad), Err(JobError::UnknownFunction { phase: found, .. }) if found == phase));
    }
    let error = job(&json!("b"), &json!([{"map": {"language": "erlang", "source": "fun() -> 1 end."}}])).unwrap_err();
    assert!(error.to_http().2.contains("JavaScript"), "{error}");
}

/// Riak 3 does not have the function. Nodes of earlier versions send it to others in parts of jobs.
#[test]
fn reduce_index_identity_is_refused_in_requests_and_read_in_parts() {
    let named = json!({"language": "erlang", "module": "riak_kv_mapreduce", "function": "reduce_index_identity"});
    let error = job(&json!("b"), &json!([{"reduce": named}])).unwrap_err();
    let (status, _, text) = error.to_http();
    assert_eq!(status, 400, "{text}");
    let (refused, known) = text.split_once("there are").unwrap();
    assert!(refused.contains("reduce_index_identity") && !known.contains("reduce_index_identity"), "{text}");
    let function = ["modfun", "riak_kv_mapreduce", "reduce_index_identity"].map(Term::atom);
    let phase = step("reduce", Term::Tuple(function.into()));
    let error = Job::from_erlang(&encode(&Term::List(vec![
        Term::pair(Term::atom("inputs"), b("b")),
        Term::pair(Term::atom("query"), Term::List(vec![phase.clone()])),
    ])));
    assert!(matches!(error, Err(JobError::UnknownFunction { phase: 0, .. })), "{error:?}");
    assert!(Phase::from_term(&phase, 0).is_ok());
}

#[test]
fn a_time_that_is_no_positive_number_is_riaks() {
    let timeout = |value: Value| {
        Job::from_json(json!({"inputs": "b", "query": [], "timeout": value}).to_string().as_bytes()).unwrap().timeout
    };
    assert_eq!(timeout(json!(1)), Duration::from_millis(1));
    assert_eq!(timeout(json!(1500.5)), Duration::from_millis(1500));
    for odd in [json!("zork"), json!(0), json!(-1), json!(null)] {
        assert_eq!(timeout(odd), TIMEOUT_DEFAULT);
    }
    assert_eq!(timeout(json!(1e300)), Duration::from_millis(u64::from(u32::MAX)));
}

fn erlang(inputs: Term, phases: Vec<Term>) -> Result<Job, JobError> {
    let request = [("inputs", inputs), ("query", Term::List(phases)), ("timeout", Term::Int(9))];
    let request = request.into_iter().map(|(name, value)| Term::pair(Term::atom(name), value));
    Job::from_erlang(&encode(&Term::List(request.collect())))
}

fn b(text: &str) -> Term {
    Term::binary(text.as_bytes())
}

fn step(kind: &str, function: Term) -> Term {
    Term::Tuple(vec![Term::atom(kind), function, Term::atom("none"), Term::atom("true")])
}

#[test]
fn jobs_in_erlangs_encoding_are_the_same_jobs() {
    let modfun =
        |name: &str| Term::Tuple(vec![Term::atom("modfun"), Term::atom("riak_kv_mapreduce"), Term::atom(name)]);
    let typed = Term::pair(Term::pair(b("t"), b("b")), b("k"));
    let keys = Term::List(vec![
        Term::pair(b("b"), b("k")),
        Term::pair(Term::pair(b("b"), b("k")), Term::Int(5)),
        Term::pair(typed, b("kd")),
    ]);
    let phases = vec![
        step("map", modfun("map_object_value")),
        step("map", Term::pair(Term::atom("jsfun"), b("Riak.mapValues"))),
        step("map", Term::pair(Term::atom("jsanon"), b("function(v) { return [v]; }"))),
        step("map", Term::pair(Term::atom("jsanon"), Term::pair(b("code"), b("f")))),
        Term::Tuple(vec![Term::atom("link"), Term::atom("_"), b("t"), Term::atom("false")]),
        step("reduce", modfun("reduce_sum")),
    ];
    let job = erlang(keys, phases).unwrap();
    assert_eq!((job.phases.len(), job.kept_phases(), job.timeout), (6, 5, Duration::from_millis(9)));
    let Inputs::Keys(keys) = &job.inputs else { panic!("{job:?}") };
    let keys: Vec<Input> = keys.iter().collect();
    assert_eq!(keys[1].key_data, Some(Term::Int(5)));
    assert_eq!(keys[2].bucket, Bucket::typed("t", "b"));
    assert_eq!(keys[2].key_data, Some(b("kd")));

    assert!(matches!(erlang(b("b"), vec![]).unwrap().inputs, Inputs::Bucket { .. }));
    assert!(matches!(erlang(Term::pair(b("t"), b("b")), vec![]).unwrap().inputs, Inputs::Bucket { bucket, .. }
        if bucket == Bucket::typed("t", "b")));
    let filtered = Term::pair(b("b"), Term::List(vec![Term::List(vec![b("eq"), b("k")])]));
    assert!(
        matches!(erlang(filtered, vec![]).unwrap().inputs, Inputs::Bucket { filter, .. } if !filter.takes(b"x", &|| false).unwrap())
    );
    let index = Term::Tuple(vec![Term::atom("index"), b("b"), b("n_int"), Term::Int(1), Term::Int(2)]);
    assert!(matches!(erlang(index, vec![]).unwrap().inputs, Inputs::Index(_)));
    let modfun = Term::Tuple(vec![Term::atom("modfun"), Term::atom("m"), Term::atom("f"), Term::nil()]);
    assert!(matches!(erlang(modfun, vec![]).unwrap().inputs, Inputs::Function { .. }));
    assert!(matches!(erlang(Term::nil(), vec![]).unwrap().inputs, Inputs::Keys(keys) if keys.is_empty()));
}

#[test]
fn the_module_of_indexes_gives_the_inputs_of_a_query() {
    let inputs = |bucket: Term, query: Vec<Term>| {
        let arg = Term::List(vec![bucket, Term::Tuple(query)]);
        let names = ["modfun", "riak_index", "mapred_index"].map(Term::atom);
        erlang(Term::Tuple([&names[..], &[arg]].concat()), vec![]).map(|job| job.inputs)
    };
    let query = |bucket: Term, query: Vec<Term>| match inputs(bucket, query) {
        Ok(Inputs::Index(query)) => query,
        other => panic!("{other:?}"),
    };
    let range = query(b("b"), vec![Term::atom("range"), b("n_int"), Term::Int(1), Term::Int(9)]);
    let same = Term::Tuple(vec![Term::atom("index"), b("b"), b("n_int"), Term::Int(1), Term::Int(9)]);
    assert!(matches!(erlang(same, vec![]).unwrap().inputs, Inputs::Index(same) if same == range));
    let eq = query(Term::pair(b("t"), b("b")), vec![Term::atom("eq"), b("$bucket"), b("b")]);
    assert_eq!((eq.bucket, &eq.field[..], eq.low == eq.high), (Bucket::typed("t", "b"), &b"$bucket"[..], true));
    for unknown in [vec![Term::atom("riak_kv_index_v3"), b("n_int")], vec![Term::atom("eq"), b("n_int")], vec![]] {
        assert!(matches!(inputs(b("b"), unknown), Ok(Inputs::Function { .. })));
    }
    let not_a_number = inputs(b("b"), vec![Term::atom("eq"), b("n_int"), b("x")]);
    assert!(matches!(not_a_number, Err(JobError::Inputs(_))));
}

#[test]
fn erlang_functions_are_refused_with_what_to_use() {
    let strfun = step("map", Term::pair(Term::atom("strfun"), b("fun() -> 1 end.")));
    assert_eq!(erlang(b("b"), vec![strfun]).unwrap_err(), JobError::ErlangSource { phase: 0 });
    let qfun = step("map", Term::pair(Term::atom("qfun"), Term::atom("f")));
    assert_eq!(erlang(b("b"), vec![qfun]).unwrap_err(), JobError::ErlangFun);
    // The bytes of a function: tags 112 and 113.
    for tag in [112, 113, 117] {
        let error = Job::from_erlang(&[131, 104, 1, tag, 0, 0]).unwrap_err();
        assert_eq!(error, JobError::ErlangFun);
        assert!(error.to_string().contains("JavaScript"));
    }
    let unknown = Term::Tuple(vec![Term::atom("modfun"), Term::atom("zork"), Term::atom("z")]);
    let text = erlang(b("b"), vec![step("map", unknown)]).unwrap_err().to_string();
    assert!(text.starts_with(
        "Phase 0: invalid module named in PhaseSpec function:\n must be a valid module name (failed to load zork: nofile)"
    ));
    assert!(text.contains("map_object_value"), "it says what to use");
}

#[test]
fn errors_have_riaks_words_over_protocol_buffers() {
    assert!(Job::from_json(b"{\"inputs\":").unwrap_err().to_string().starts_with("{invalid_json,"));
    assert_eq!(Job::from_json(b"{\"inputs\": \"pbix\"}").unwrap_err().to_string(), "missing_field");
    assert_eq!(Job::from_json(b"[]").unwrap_err().to_string(), "not_json");
    assert_eq!(job(&json!("b"), &json!([{"map": {}}])).unwrap_err().to_string().split(',').next(), Some("{query"));
    assert_eq!(Encoding::from_content_type(b"text/plain"), None);
}

/// As in Riak, whose list comprehension takes such a value for false, and whose last phase gives
/// its results unless it says `false`.
#[test]
fn a_keep_that_is_no_boolean_keeps_the_results_of_the_last_phase() {
    let phase = |keep: Term| {
        let function = ["modfun", "riak_kv_mapreduce", "reduce_sort"].map(Term::atom);
        Term::Tuple(vec![Term::atom("reduce"), Term::Tuple(function.to_vec()), Term::atom("none"), keep])
    };
    let kept = |phases: Vec<Term>| erlang(b("b"), phases).unwrap().phases.iter().map(Phase::keep).collect::<Vec<_>>();
    assert_eq!(kept(vec![phase(Term::Int(1)), phase(Term::atom("maybe"))]), [false, true]);
    assert_eq!(kept(vec![phase(Term::atom("true")), phase(Term::atom("false"))]), [true, false]);
}

/// Riak sorts the ends of a range.
#[test]
fn the_ends_of_a_range_may_come_in_any_order() {
    let Inputs::Index(query) = inputs(&json!({"bucket": "b", "index": "n_int", "start": 10, "end": "9"})) else {
        panic!("index")
    };
    assert_eq!((query.low, query.high), (IndexTerm::Int(9.into()), IndexTerm::Int(10.into())));
}

proptest! {
    #[test]
    fn any_bytes_are_a_job_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(Job::from_json(&bytes));
        drop(Job::from_erlang(&bytes));
        let mut term = vec![131];
        term.extend(&bytes);
        drop(Job::from_erlang(&term));
    }

    #[test]
    fn inputs_come_back_from_their_terms(typed in any::<bool>(), key in ".{0,4}", data in prop::option::of(any::<i64>())) {
        let bucket = if typed { Bucket::typed("t", "b") } else { Bucket::untyped("b") };
        let input = Input { bucket, key: Bytes::from(key), key_data: data.map(Term::Int) };
        prop_assert_eq!(Input::from_term(&input.to_term()), Some(input.clone()));
        let json = Input::from_term(&input.to_json_term()).unwrap();
        prop_assert_eq!((json.bucket, json.key), (input.bucket, input.key));
    }
}
