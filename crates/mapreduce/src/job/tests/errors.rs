//! The errors of jobs in Erlang's terms.

use super::*;

/// The texts of Riak 3.2.3, with its line breaks.
#[test]
fn errors_of_jobs_in_erlangs_terms_are_riaks() {
    let member = |name: &str, value: Term| Term::pair(Term::atom(name), value);
    let error = |members: Vec<Term>| Job::from_erlang(&encode(&Term::List(members))).unwrap_err().to_string();
    let inputs_must_be = "Inputs must be a binary bucket, a tuple of bucket and key-filters, a list of target \
                          tuples, or a search, index, or modfun tuple:";
    assert_eq!(error(vec![member("inputs", b("b"))]), r#"{query,{"Query takes a list of step tuples",undefined}}"#);
    assert_eq!(error(vec![]), format!("{{inputs,{{\"{inputs_must_be}\",\n         undefined}}}}"));
    let of_inputs = |inputs: Term| error(vec![member("inputs", inputs), member("query", Term::nil())]);
    assert_eq!(of_inputs(Term::atom("foo")), format!("{{inputs,{{\"{inputs_must_be}\",\n         foo}}}}"));
    let target =
        |rest: &str| format!("{{inputs,{{\"Inputs target tuples must be {{B,K}} or {{{{B,K}},KeyData}}:\",{rest}}}}}");
    assert_eq!(of_inputs(Term::from_list(vec![Term::atom("foo")])), target("[foo]"));
    let keys = [Term::pair(b("b"), b("k")), Term::pair(b("b"), Term::Int(1)), Term::atom("x")];
    let rest = target("\n         [{<<\"b\">>,1},x]");
    assert_eq!(of_inputs(Term::List(keys.to_vec())), rest, "what is left of the list, from the first one that is none");
    let index =
        |field: &str, low: Term, high: Term| Term::Tuple(vec![Term::atom("index"), b("b"), b(field), low, high]);
    assert_eq!(of_inputs(index("f", b("1"), b("2"))), r#"{inputs,[{unknown_field_type,<<"f">>}]}"#);
    assert_eq!(
        of_inputs(index("_int", b("1"), b("2"))),
        r#"{inputs,[{unknown_field_type,<<"_int">>}]}"#,
        "an ending alone is no name"
    );
    let steps = |steps: Vec<Term>| error(vec![member("inputs", b("b")), member("query", Term::List(steps))]);
    let step = "A step is {map|reduce,Fun,Arg,Keep} or {link,Bucket,Tag,Keep}:";
    assert_eq!(steps(vec![Term::Int(1)]), format!("{{query,{{\"{step}\",1}}}}"));
    let long = Term::binary(&vec![b'x'; 1 << 20]);
    let cut = of_inputs(Term::Tuple(vec![long]));
    assert!(cut.len() < 20_000 && cut.ends_with("..."), "{} bytes", cut.len());
}
