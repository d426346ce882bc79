//! MapReduce jobs (docs/riak/pb-api.md §9).
//!
//! Each answer has results of one phase, in the encoding of the request. The last one says that the
//! job is done.

use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::refusal::Refusal;
use crate::access::Access;
use crate::jobs::JobClass;
use crate::map_reduce::{JobGate, NO_LINKS, NoJob, read_job};
use crate::memory::Held;
use ombak_mapreduce::{Encoding, Failure as JobFailure};
use ombak_proto::code;
use ombak_proto::messages::{RpbMapRedReq, RpbMapRedResp};
use ombak_proto::reply::write_message;
use ombak_types::etf::{BinaryText, StringText, Term};

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[Handler::streaming::<RpbMapRedReq>(code::MAP_RED_REQ).of_any_size()];

impl Request for RpbMapRedReq {
    /// The permissions depend on the job, which is not read yet.
    fn access(&self) -> Option<Access<'_>> {
        None
    }
}

impl Streaming for RpbMapRedReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { ctx, session, reader, writer, .. } = exchange;
        let gate = JobGate::new(ctx.config.jobs, ctx.config.policy.as_ref(), &session.client);
        // A client that needs permissions is asked for them before.
        if !gate.asks() {
            ctx.config.jobs.check(JobClass::MapReduce)?;
        }
        let Some(encoding) = Encoding::from_content_type(&self.content_type) else {
            ctx.config.jobs.check(JobClass::MapReduce)?;
            let text = format!("{{unknown_content_type,{}}}", BinaryText(&self.content_type));
            return Err(Refusal::new(text).into());
        };
        // What the job takes is held until it has ended.
        let mut held = Held::new(Some(writer.lease()));
        let job = read_job(&ctx.kv, &mut held, encoding, &self.request, gate);
        let job = reader.while_open(job).await??.map_err(|no_job| match no_job {
            NoJob::Bad(error) => Refusal::new(error.to_string()),
            NoJob::Off(error) => error.into(),
            NoJob::Forbidden(why) => Refusal::new(why),
            NoJob::FollowsLinks => Refusal::new(StringText(NO_LINKS).to_string()),
        })?;
        let has_phases = job.has_phases();
        let mut running = job.run(&ctx.map_reduce);
        while let Some(output) = reader.while_open(running.next()).await? {
            let output = output.map_err(refusal)?;
            let response = encode(encoding, has_phases, output.values).map_err(Refusal::new)?;
            let phase = u32::try_from(output.phase).unwrap_or(u32::MAX);
            let answer = RpbMapRedResp { phase: Some(phase), response: Some(response), done: None };
            write_message(code::MAP_RED_RESP, &answer, &mut writer.buffer);
            // The next results may take long, so these are sent first.
            writer.flush().await?;
            writer.begin();
        }
        let end = RpbMapRedResp { phase: None, response: None, done: Some(true) };
        write_message(code::MAP_RED_RESP, &end, &mut writer.buffer);
        Ok(())
    }
}

fn encode(encoding: Encoding, has_phases: bool, values: Vec<Term>) -> Result<bytes::Bytes, String> {
    let encoded = if has_phases { encoding.results(values) } else { encoding.input_results(values) };
    encoded.map_err(|error| JobFailure::Other(error.to_string()).to_json().to_string())
}

fn refusal(failure: JobFailure) -> Refusal {
    match failure {
        JobFailure::Timeout => Refusal::new("timeout"),
        JobFailure::Forbidden(why) => Refusal::new(why),
        JobFailure::Inputs(failure) => Refusal::new(failure.to_string()),
        other => Refusal::new(other.to_json().to_string()),
    }
}
