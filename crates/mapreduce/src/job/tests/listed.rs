//! Inputs that are listed one by one are read without a tree, with the results of a tree.

use super::*;
use crate::job::listed::{ListedJson, ListedTerms};
use crate::job::{from_json as json_jobs, from_term};
use ombak_types::etf::decode;
use ombak_types::json::Json;

/// Reads the inputs of a tree, as simply as possible.
fn from_tree(text: &[u8]) -> Result<Job, JobError> {
    let tree = Json::read(text).map_err(|bad| match bad.kind {
        BadJsonKind::NotUtf8 => JobError::NotAnObject,
        _ => JobError::NotJson(bad.to_string()),
    })?;
    let (mut listed, mut budget) = (ListedJson::default(), DecodeBudget::unlimited());
    let members = tree.as_object().ok_or(JobError::NotAnObject)?;
    let inputs = members.iter().find(|(name, _)| name == "inputs").map(|(_, value)| value);
    let items = inputs.and_then(Json::as_list).unwrap_or_default();
    items.iter().for_each(|item| listed.add(item.clone(), &mut budget).unwrap());
    let job = json_jobs::job(members, listed, &mut budget)?;
    match &job.inputs {
        Inputs::Keys(keys) => {
            let of_items = items.iter().map(|item| Input::from_term(&crate::from_json(item)).unwrap());
            assert_eq!(keys.iter().collect::<Vec<_>>(), of_items.collect::<Vec<_>>());
        }
        Inputs::Bucket { bucket, .. } if !items.is_empty() => {
            let texts: Vec<_> = items.iter().map(|item| item.as_str().unwrap().to_owned()).collect();
            assert_eq!(*bucket, Bucket::typed(texts[0].clone(), texts[1].clone()));
        }
        _ => assert!(items.is_empty()),
    }
    Ok(job)
}

/// A job, or why it is none, with its inputs one by one.
fn shown(job: Result<Job, JobError>) -> String {
    job.map_or_else(
        |error| format!("{error:?}"),
        |job| match &job.inputs {
            Inputs::Keys(keys) => format!("{:?} {:?} {:?}", keys.iter().collect::<Vec<_>>(), job.phases, job.timeout),
            _ => format!("{job:?}"),
        },
    )
}

fn small() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i8>().prop_map(Value::from),
        "[ab\"\\\\é]{0,3}".prop_map(Value::from),
        Just(json!({ "inputs": [["b", "k"]] })),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

fn inputs_value() -> impl Strategy<Value = Value> {
    let text = || "[ab]{0,2}";
    let key = prop_oneof![
        (text(), text()).prop_map(|(b, k)| json!([b, k])),
        (text(), text(), small()).prop_map(|(b, k, d)| json!([b, k, d])),
        (text(), text(), small(), text()).prop_map(|(b, k, d, t)| json!([b, k, d, t])),
    ];
    let item = prop_oneof![8 => key, 1 => text().prop_map(Value::from), 1 => small()];
    prop_oneof![4 => prop::collection::vec(item, 0..5).prop_map(Value::from), 1 => small()]
}

fn request() -> impl Strategy<Value = String> {
    let query = prop_oneof![4 => Just(json!([])), 1 => small()];
    let member = prop_oneof![
        4 => inputs_value().prop_map(|value| format!("\"inputs\":{value}")),
        4 => query.prop_map(|value| format!("\"query\" : {value}")),
        1 => any::<i32>().prop_map(|ms| format!("\"timeout\":{ms}")),
        1 => small().prop_map(|value| format!("\"x\":{value}")),
        1 => small().prop_map(|value| format!("\"inp\\u0075ts\":{value}")),
    ];
    prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_job_in_json_is_that_of_its_tree(text in request(), cut in 0_usize..80, char in prop::option::of("[\\[\\]{},:\"x]")) {
        let mut text = text;
        if let (Some(char), Some((at, old))) = (char, text.char_indices().nth(cut)) {
            text.replace_range(at..at + old.len_utf8(), &char);
        }
        prop_assert_eq!(shown(Job::from_json(text.as_bytes())), shown(from_tree(text.as_bytes())), "{}", text);
    }

    #[test]
    fn a_job_in_terms_is_that_of_its_tree(
        lists in prop::collection::vec(prop::collection::vec((0_u8..9, any::<u8>()), 0..6), 1..3),
        tail in 0..4,
        flip in prop::option::of((0_usize..200, any::<u8>())),
    ) {
        let element = |(kind, byte): &(u8, u8)| match kind {
            0 => Term::Int(i64::from(*byte)),
            1 => Term::atom("x"),
            2 => Term::pair(Term::pair(b("b"), b("k")), Term::Int(i64::from(*byte))),
            _ => Term::pair(Term::binary(&[*byte]), b("k")),
        };
        let of_list = |items: &Vec<(u8, u8)>| {
            let items: Vec<Term> = items.iter().map(element).collect();
            match tail {
                0 if !items.is_empty() => Term::ImproperList(items, Box::new(Term::atom("tail"))),
                1 if !items.is_empty() => Term::ImproperList(items, Box::new(Term::string(b"ab"))),
                2 if !items.is_empty() => Term::ImproperList(items.clone(), Box::new(Term::List(items))),
                _ => Term::from_list(items),
            }
        };
        let mut members: Vec<Term> = lists.iter().map(|list| Term::pair(Term::atom("inputs"), of_list(list))).collect();
        members.push(Term::pair(Term::atom("query"), Term::nil()));
        let mut bytes = encode(&Term::List(members));
        if let Some((at, byte)) = flip && let Some(old) = bytes.get_mut(at) {
            *old = byte;
        }
        let tree = decode(&bytes).map_err(not_a_term);
        let of_tree = tree.and_then(|tree| from_term::job(&tree, ListedTerms::default(), &mut DecodeBudget::unlimited()));
        prop_assert_eq!(shown(Job::from_erlang(&bytes)), shown(of_tree));
    }
}

#[test]
fn a_million_inputs_take_less_than_their_text() {
    let text = format!("{{\"inputs\":[{}[\"b\",\"k\"]],\"query\":[]}}", "[\"b\",\"k\"],".repeat(999_999));
    let mut budget = DecodeBudget::of_message(text.len());
    let job = Job::from_json_within(text.as_bytes(), &mut budget).unwrap();
    let Inputs::Keys(keys) = &job.inputs else { panic!("{job:?}") };
    assert_eq!((keys.len(), job.buckets().count()), (1_000_000, 1));
    assert!(budget.bytes_peak() < text.len(), "{} of {}", budget.bytes_peak(), text.len());
    let keys: Vec<Term> = keys.iter().map(|input| input.to_term()).collect();
    let bytes = encode(&Term::List(vec![
        Term::pair(Term::atom("inputs"), Term::List(keys)),
        Term::pair(Term::atom("query"), Term::nil()),
    ]));
    let mut budget = DecodeBudget::of_message(bytes.len());
    let job = Job::from_erlang_within(&bytes, &mut budget).unwrap();
    assert!(matches!(&job.inputs, Inputs::Keys(keys) if keys.len() == 1_000_000));
    assert!(budget.bytes_peak() < bytes.len(), "{} of {}", budget.bytes_peak(), bytes.len());
}

#[test]
fn a_job_that_would_take_too_much_is_refused_with_a_reason() {
    let many = "[],".repeat(100_000);
    for text in [
        format!("{{\"inputs\":[[\"b\",\"k\",[{many}1]]],\"query\":[]}}"),
        format!("{{\"inputs\":\"b\",\"query\":[{{\"map\":{{\"arg\":[{many}1]}}}}]}}"),
        format!("{{\"inputs\":{{\"bucket\":\"b\",\"key_filters\":[{many}1]}},\"query\":[]}}"),
    ] {
        let error = Job::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(error, JobError::TooLarge { bytes_max: 10 * text.len() });
        let (status, _, body) = error.to_http();
        assert!(status == 413 && body.contains(&format!("more than {} bytes", 10 * text.len())), "{body}");
    }
    let nils = Term::List(vec![Term::nil(); 100_000]);
    let bytes = encode(&Term::List(vec![Term::pair(Term::atom("query"), nils)]));
    assert_eq!(Job::from_erlang(&bytes).unwrap_err(), JobError::TooLarge { bytes_max: 10 * bytes.len() });
}

/// A text that is no job is refused for that, however large it is.
#[test]
fn errors_of_large_jobs_show_the_beginning() {
    let long = "x".repeat(1 << 20);
    let error = Job::from_json(format!("{{\"inputs\":[\"{long}\"],\"query\":[]}}").as_bytes()).unwrap_err().to_string();
    assert!(error.contains("xxx") && error.len() < 3_000, "{}", error.len());
    let filters = "[\"eq\",\"a\"],".repeat(10_000);
    let request = format!("{{\"inputs\":{{\"bucket\":\"b\",\"key_filters\":[{filters}[\"eq\",\"a\"]]}},\"query\":[]}}");
    let (mut budget, text) = (DecodeBudget::unlimited(), request.as_bytes());
    let error = Job::from_json_within(text, &mut budget).unwrap_err().to_string();
    assert_eq!(error, "{bad_filter,<<\"a filter has at most 1000 steps, inner ones included\">>}");
}
