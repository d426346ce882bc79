//! Tests of what clients get, against the recorded exchanges.

use super::*;
use ombak_types::Bucket;

fn job(query: &Value) -> Job {
    Job::from_json(json!({ "inputs": "ix", "query": query }).to_string().as_bytes()).unwrap()
}

fn phase(kind: &str, function: &str, keep: bool) -> Value {
    json!({ kind: { "language": "erlang", "module": "riak_kv_mapreduce", "function": function, "keep": keep } })
}

fn text(text: &str) -> Term {
    Term::binary(text.as_bytes())
}

fn collected(keeps: [bool; 2]) -> String {
    let phases = [("map", "map_object_value"), ("reduce", "reduce_count_inputs")];
    let query: Vec<Value> = phases.iter().zip(keeps).map(|((kind, f), keep)| phase(kind, f, keep)).collect();
    let mut collected = Collected::new(&job(&json!(query)), 1 << 20);
    collected.add(0, vec![text("v1")]).unwrap();
    collected.add(1, vec![Term::Int(1)]).unwrap();
    collected.to_json().unwrap()
}

#[test]
fn the_results_of_several_kept_phases_are_lists_of_lists() {
    assert_eq!(collected([true, true]), r#"[["v1"],[1]]"#);
    assert_eq!(collected([true, false]), r#"["v1"]"#);
    assert_eq!(collected([false, true]), "[1]");
    assert_eq!(collected([false, false]), "[]");
}

#[test]
fn inputs_that_cannot_be_found_say_why_in_riaks_words() {
    let failure = InputsFailure { problem: InputsProblem::Missing, why: "No index <<\"x\">> found.".to_owned() };
    let text = r#"{"error":"Error sending inputs: No index <<\"x\">> found."}"#;
    assert_eq!(Failure::Inputs(failure).to_json().to_string(), text);
}

#[test]
fn a_job_without_phases_gives_its_inputs() {
    let key = Input::new(Bucket::untyped("ix"), Bytes::from_static(b"o05"));
    let typed = Input { bucket: Bucket::typed("t", "b"), key_data: Some(text("kd")), ..key.clone() };
    let inputs = vec![key.to_term(), typed.to_term()];
    let json = Encoding::Json.input_results(inputs.clone()).unwrap();
    assert_eq!(json, r#"[["ix","o05"],["b","o05","kd","t"]]"#);
    let erlang = Encoding::Erlang.input_results(inputs.clone()).unwrap();
    assert_eq!(ombak_types::etf::decode(&erlang).unwrap(), Term::List(inputs));
}

#[test]
fn results_that_take_too_much_are_refused() {
    let mut collected = Collected::new(&job(&json!([phase("map", "map_object_value", true)])), 1000);
    collected.add(0, vec![text("x")]).unwrap();
    collected.add(5, vec![text(&"x".repeat(2000))]).unwrap();
    assert_eq!(collected.add(0, vec![text(&"x".repeat(2000))]), Err(TooLarge));
}

#[test]
fn failures_have_riaks_form() {
    let input = Input::new(Bucket::untyped("pbix"), Bytes::from_static(b"none"));
    let failure = Failure::Phase(PhaseFailure::of_map(0, "function_clause", &input, false));
    let json = failure.to_json();
    assert_eq!(json["phase"], 0);
    assert_eq!(json["error"], "function_clause");
    assert_eq!(json["input"], r#"{{error,notfound},{<<"pbix">>,<<"none">>},undefined}"#);
    assert_eq!(json["type"], "error");
    assert!(json["stack"].is_string());
    let reduce = Failure::Phase(PhaseFailure::of_reduce(1, "badarg")).to_json();
    assert_eq!(reduce.to_string(), r#"{"phase":1,"error":"badarg","input":null,"type":null,"stack":null}"#);
    assert_eq!(Failure::Timeout.to_json().to_string(), r#"{"error":"timeout"}"#);
    assert_eq!(Failure::Other("map_reduce_error".to_owned()).to_json().to_string(), r#"{"error":"map_reduce_error"}"#);
    let long = PhaseFailure::of_reduce(0, &"é".repeat(600));
    assert_eq!(long.error.chars().count(), 503);
}

#[test]
fn content_types_name_encodings() {
    assert_eq!(Encoding::from_content_type(b"application/json; charset=utf-8"), Some(Encoding::Json));
    assert_eq!(Encoding::from_content_type(b"application/x-erlang-binary"), Some(Encoding::Erlang));
    assert_eq!(Encoding::from_content_type(b"text/plain"), None);
}
