//! MapReduce jobs: `POST /mapred` (docs/riak/http-api.md §7).
//!
//! With `chunked=true`, results are sent as they are made, as parts of a multipart body. Otherwise
//! they are collected, up to a limit.

use crate::JobClass;
use crate::http::base62;
use crate::http::context::HttpContext;
use crate::http::decision_graph;
use crate::http::error_status::{self, RequestKind};
use crate::http::offload;
use crate::http::path::Part::Word;
use crate::http::path::{Call, Path};
use crate::http::reply::{self, Reply};
use crate::http::request::Request;
use crate::http::wire::request_lines::line;
use crate::map_reduce::{AdmittedJob, JobGate, NO_LINKS, NoJob, RESULTS_BYTES_MAX, read_job};
use crate::memory::Held;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::{Method, StatusCode};
use ombak_jobs::{Output, RunningJob};
use ombak_mapreduce::{Collected, Encoding, Failure, InputsProblem, JobError, bytes_held};
use ombak_types::Error;
use ombak_types::etf::Term;

/// The paths of this resource.
pub const PATHS: &[Path] = &[Path::plain("MapReduce", &[Word(b"mapred")], run).ends_with_client()];

const READ_OR_POST: &str = "GET, HEAD, POST";

const USAGE: &str = "This resource accepts POSTs with bodies containing JSON of the form:\n{\n \"inputs\":[...list of \
                     inputs...],\n \"query\":[...list of map/reduce phases...]\n}\n";

fn run(call: Call<'_>) -> BoxFuture<'_, Reply> {
    Box::pin(async move {
        // What the job takes is held until it has ended.
        let mut held = call.request.holds();
        match read(call.ctx, call.request, &mut held).await {
            Ok(job) if call.request.parameter_is("chunked", "true") => {
                held.keep_for_answer();
                stream_of(call.ctx, job).await
            }
            Ok(job) => document(call.request, job.run(&call.ctx.map_reduce)).await,
            Err(refusal) => refusal,
        }
    })
}

/// Reads the job of a request and checks that it may run.
async fn read(ctx: &HttpContext, request: &Request, held: &mut Held<'_>) -> Result<AdmittedJob, Reply> {
    decision_graph::admit(ctx, request, READ_OR_POST, None).await?;
    let refused = |error: &Error| error_status::reply_for(error, RequestKind::Other);
    ctx.jobs.check(JobClass::MapReduce).map_err(|error| refused(&error))?;
    if request.method != Method::POST {
        return Err(reply::text(StatusCode::BAD_REQUEST, USAGE));
    }
    let content_type = request.header(line::CONTENT_TYPE);
    if content_type.and_then(|text| Encoding::from_content_type(&text)) != Some(Encoding::Json) {
        return Err(reply::page(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let gate = JobGate::new(ctx.jobs, ctx.policy.as_ref(), request.session());
    let job = read_job(&ctx.kv, held, Encoding::Json, &request.body, gate).await.map_err(|error| refused(&error))?;
    job.map_err(|no_job| match no_job {
        NoJob::Bad(error) => bad(&error),
        NoJob::Off(error) => refused(&error),
        NoJob::Forbidden(why) => reply::text(StatusCode::FORBIDDEN, why),
        NoJob::FollowsLinks => reply::text(StatusCode::FORBIDDEN, NO_LINKS),
    })
}

/// The answer to a request that is no job.
fn bad(error: &JobError) -> Reply {
    let (status, content_type, body) = error.to_http();
    reply::typed(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), content_type, body)
}

/// Answers with all results at once.
async fn document(request: &Request, mut running: RunningJob) -> Reply {
    let (mut collected, mut held) = (Collected::new(running.job(), RESULTS_BYTES_MAX), request.holds());
    let has_phases = !running.job().phases.is_empty();
    let mut bytes = 0;
    while let Some(output) = running.next().await {
        let output = match output {
            Ok(output) => output,
            Err(failure) => return failed(&failure),
        };
        let values = if has_phases { output.values } else { Encoding::inputs_as_json(output.values) };
        bytes += values.iter().map(bytes_held).sum::<usize>();
        // The text of the results takes about as much again.
        if let Err(error) = held.resize(2 * bytes as u64).await {
            return error_status::reply_for(&error, RequestKind::Other);
        }
        if let Err(error) = collected.add(output.phase, values) {
            return failed(&Failure::Other(error.to_string()));
        }
    }
    held.keep_for_answer();
    match offload::run(bytes, move || collected.to_json()).await {
        Ok(Ok(json)) => reply::json(StatusCode::OK, json),
        Ok(Err(error)) => failed(&Failure::Other(error.to_string())),
        Err(refusal) => refusal,
    }
}

fn failed(failure: &Failure) -> Reply {
    let status = match failure {
        Failure::Forbidden(why) => return reply::text(StatusCode::FORBIDDEN, why.clone()),
        Failure::Inputs(inputs) => status_of(inputs.problem),
        Failure::Timeout | Failure::Phase(_) | Failure::Other(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    reply::json(status, failure.to_json().to_string())
}

/// The status that a search of its own would have.
const fn status_of(problem: InputsProblem) -> StatusCode {
    match problem {
        InputsProblem::Missing => StatusCode::NOT_FOUND,
        InputsProblem::Bad => StatusCode::BAD_REQUEST,
        InputsProblem::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Begins a job and answers with its results as they are made. If a bucket or a search may be
/// refused, the head of the answer waits for the first results, so that a refusal in front of them
/// has its status.
async fn stream_of(ctx: &HttpContext, job: AdmittedJob) -> Reply {
    let (may_be_refused, mut running) = (job.may_be_refused(), job.run(&ctx.map_reduce));
    if !may_be_refused {
        return parts(running, None);
    }
    match running.next().await {
        Some(Err(refused @ (Failure::Forbidden(_) | Failure::Inputs(_)))) => failed(&refused),
        first => parts(running, Some(first)),
    }
}

/// What a job gives next: results, its failure, or its end.
type Next = Option<Result<Output, Failure>>;

/// Answers with a multipart stream: a part for each piece of results, or the failure. `first` is
/// what the job has given already.
fn parts(running: RunningJob, first: Option<Next>) -> Reply {
    let boundary = base62::boundary(b"mapred");
    let content_type = format!("multipart/mixed;boundary={boundary}");
    let has_phases = !running.job().phases.is_empty();
    let state = Some((running, first, boundary, false));
    let parts = stream::unfold(state, move |state| async move {
        let (mut running, first, boundary, is_over) = state?;
        let end = |boundary: &str| Bytes::from(format!("\r\n--{boundary}--\r\n"));
        let output = match first {
            Some(first) => first,
            None if is_over => None,
            None => running.next().await,
        };
        let json = match output {
            None => return Some((end(&boundary), None)),
            Some(Ok(output)) => part(has_phases, output.phase, output.values),
            Some(Err(failure)) => Err(failure),
        };
        let (json, is_over) = match json {
            Ok(json) => (json, false),
            Err(failure) => (failure.to_json().to_string(), true),
        };
        let bytes = Bytes::from(format!("\r\n--{boundary}\r\nContent-Type: application/json\r\n\r\n{json}"));
        Some((bytes, Some((running, None, boundary, is_over))))
    });
    reply::stream(&content_type, parts)
}

/// The JSON of a piece of results.
fn part(has_phases: bool, phase: usize, values: Vec<Term>) -> Result<String, Failure> {
    let data = if has_phases { Encoding::Json.results(values) } else { Encoding::Json.input_results(values) };
    let data = data.map_err(|error| Failure::Other(error.to_string()))?;
    Ok(format!("{{\"phase\":{phase},\"data\":{}}}", String::from_utf8_lossy(&data)))
}
