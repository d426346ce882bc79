//! Parts of MapReduce jobs.

use super::*;
use crate::jobs::messages::{
    JobAnswer, JobQuestion, decode_job_answer, decode_job_question, encode_job_answer, encode_job_question,
};
use ombak_jobs::{PartAnswer, PartRequest, PartWork, PhaseOfPart};
use ombak_mapreduce::{
    Failure, Input, KeyFilter, LinkMatch, MapFunction, Mapper, Phase, PhaseFailure, ReduceFunction, Reducer,
    ScriptSource, Values, from_json,
};
use ombak_types::etf::Term;
use serde_json::json;
use std::sync::LazyLock;
use std::time::Instant;

/// The deadline travels in the header of the transport.
static DEADLINE: LazyLock<Instant> = LazyLock::new(Instant::now);

fn decode(message: &Bytes) -> Result<JobQuestion, Malformed> {
    decode_job_question(message, NO_RING, *DEADLINE)
}

fn bucket() -> Bucket {
    Bucket { bucket_type: "a type".into(), name: "a bucket".into() }
}

fn map(function: Mapper) -> Option<PhaseOfPart> {
    Some(PhaseOfPart {
        number: 300,
        phase: Phase::Map { function, arg: from_json(&json!({"a": 1}).into()).into(), keep: true },
    })
}

fn reduce(function: Reducer) -> Option<PhaseOfPart> {
    Some(PhaseOfPart { number: 301, phase: Phase::Reduce { function, arg: Term::atom("none").into(), keep: false } })
}

fn piece(work: PartWork, map: Option<PhaseOfPart>, prereduce: Option<PhaseOfPart>) -> JobQuestion {
    let from = prereduce.is_some().then(|| "a place".into());
    let job = u128::from(DIGEST) << 64 | 0x1122_3344;
    JobQuestion::Piece(PartRequest { job, work, from, map, prereduce, deadline: *DEADLINE })
}

fn questions() -> Vec<(&'static str, JobQuestion)> {
    let with_data = Input { key_data: Some(Term::binary(b"data")), ..Input::new(bucket(), "b".into()) };
    let keys = || PartWork::Keys(vec![Input::new(Bucket::untyped("a bucket"), "a key".into()), with_data.clone()]);
    let share = |filter: serde_json::Value| PartWork::Share {
        bucket: bucket(),
        home: 300,
        n: 3,
        ring: NO_RING,
        begun: UnixMicros(DIGEST),
        filter: KeyFilter::parse(&from_json(&filter.into())).unwrap(),
    };
    let links = LinkMatch { bucket: Some("a bucket".into()), tag: None };
    let stored = ScriptSource::Stored { bucket: bucket(), key: "a key".into() };
    let (named, source) = (ScriptSource::Named("a name".into()), ScriptSource::Source("a source".into()));
    vec![
        ("keys", piece(keys(), map(Mapper::Native(MapFunction::ObjectValue)), None)),
        (
            "share",
            piece(
                share(json!([["starts_with", "a"]])),
                map(Mapper::Script(named)),
                reduce(Reducer::Native(ReduceFunction::Sum)),
            ),
        ),
        ("link", piece(keys(), Some(PhaseOfPart { number: 0, phase: Phase::Link { links, keep: false } }), None)),
        ("scripts", piece(share(json!([])), map(Mapper::Script(source)), reduce(Reducer::Script(stored)))),
        ("end", JobQuestion::End { job: u128::from(DIGEST) }),
    ]
}

fn answers() -> Vec<(&'static str, JobAnswer)> {
    let failure = PhaseFailure {
        phase: 300,
        error: "an error".into(),
        input: Some("an input".into()),
        kind: Some("error"),
        stack: Some("[]".into()),
    };
    let bare = PhaseFailure { input: None, stack: None, kind: Some("result"), ..failure.clone() };
    let results = vec![Term::Int(300), Term::binary(b"a value"), Term::Int(1)];
    vec![
        ("piece", JobAnswer::Piece(PartAnswer { results: results.into(), from: Some("a place".into()) })),
        ("last", JobAnswer::Piece(PartAnswer { results: Values::default(), from: None })),
        ("failed", JobAnswer::Failed(Failure::Phase(failure))),
        ("not_begun", JobAnswer::Failed(Failure::Phase(bare))),
        ("timeout", JobAnswer::Failed(Failure::Timeout)),
        ("other", JobAnswer::Failed(Failure::Other("a failure".into()))),
        ("ended", JobAnswer::Ended),
    ]
}

pub(super) fn check_version_2(frozen: &mut FrozenMessages) {
    for (name, question) in questions() {
        check(frozen, &format!("job_question/{name}"), &question, encode_job_question, decode);
    }
    for (name, answer) in answers() {
        check(
            frozen,
            &format!("job_answer/{name}"),
            &answer,
            |answer| encode_job_answer(answer.clone()),
            decode_job_answer,
        );
    }
}
