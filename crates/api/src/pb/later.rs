//! Messages of features that this server does not have. Each gets the error that Riak returns if
//! the feature is switched off, not loaded or not supported. No such message ends the connection.

use super::context::PbContext;
use super::dispatch::decode;
use super::object;
use super::refusal::{ErlangBinary, Refusal};
use crate::jobs::JobClass;
use bytes::Bytes;
use ombak_proto::Frame;
use ombak_proto::code::{self, Direction, Service};
use ombak_proto::messages::{DtFetchReq, DtUpdateReq, RpbCounterUpdateReq};
use ombak_types::Error;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::props::DataType;

/// The refusal of a message that no other module serves. An `Err` is also a refusal, from a check
/// on the way.
pub(super) fn refuse(ctx: &PbContext, frame: &Frame) -> Result<Refusal, Refusal> {
    let body = &frame.body;
    let info = match code::info(frame.code) {
        Some(info) if info.service == Service::Registered => info,
        _ => return Ok(Refusal::new(format!("Unknown message code: {}", frame.code))),
    };
    if info.direction == Direction::Response {
        let (name, code) = (info.name, info.code);
        return Ok(Refusal::new(format!("Error processing incoming message: {name} ({code}) is not a request")));
    }
    match frame.code {
        code::START_TLS => Ok(Refusal::new("Security not enabled; STARTTLS not allowed.")),
        code::MAP_RED_REQ => Ok(job_disabled(JobClass::MapReduce)),
        code::COUNTER_UPDATE_REQ => counter_update(ctx, decode(body)?),
        code::COUNTER_GET_REQ => Ok(counters_unsupported()),
        code::DT_FETCH_REQ => {
            let req: DtFetchReq = decode(body)?;
            data_type(ctx, req.r#type, req.bucket)
        }
        code::DT_UPDATE_REQ => {
            let req: DtUpdateReq = decode(body)?;
            data_type(ctx, req.r#type, req.bucket)
        }
        code::FETCH_REQ | code::PUSH_REQ => Ok(Refusal::new("queue_not_defined")),
        _ => Ok(Refusal::new("not_supported")),
    }
}

fn job_disabled(class: JobClass) -> Refusal {
    Error::JobDisabled(class.term()).into()
}

/// Riak prints this text with `~p`, which puts it in quotes (docs/riak/pb-api.md §1.1).
fn counters_unsupported() -> Refusal {
    Refusal::new("\"Counters are not supported\"")
}

fn counter_update(ctx: &PbContext, req: RpbCounterUpdateReq) -> Result<Refusal, Refusal> {
    let props = ctx.kv.buckets().props(&object::bucket(None, req.bucket)?)?;
    Ok(if props.allow_mult {
        counters_unsupported()
    } else {
        Refusal::new("\"Counters require bucket property 'allow_mult=true'\"")
    })
}

fn data_type(ctx: &PbContext, bucket_type: Bytes, name: Bytes) -> Result<Refusal, Refusal> {
    if bucket_type == DEFAULT_TYPE {
        return Ok(counters_unsupported());
    }
    let bucket = object::bucket(Some(bucket_type), name)?;
    let props = ctx.kv.buckets().props(&bucket).map_err(|error| match error {
        Error::NoType(bucket) => Refusal::new(format!("Error no bucket type `{}`", ErlangBinary(&bucket.bucket_type))),
        other => other.into(),
    })?;
    Ok(Refusal::new(match props.datatype {
        None => "`undefined` is not a supported type".to_owned(),
        Some(datatype) => format!("Bucket datatype `{}` is not a supported type", word(datatype)),
    }))
}

fn word(datatype: DataType) -> &'static str {
    match datatype {
        DataType::Counter => "counter",
        DataType::Set => "set",
        DataType::Map => "map",
        DataType::Hll => "hll",
        DataType::Gset => "gset",
    }
}
