//! Messages of features that this server does not have. Each gets the error that Riak returns if
//! the feature is switched off, not loaded or not supported. No such message ends the connection.
//!
//! A feature that comes to exist registers its messages in a module of its own, and they leave this
//! one.

use super::handler::{Exchange, Handler, Immediate, Request};
use super::message::bucket;
use super::refusal::Refusal;
use crate::access::{Access, Permission};
use crate::jobs::JobClass;
use bytes::Bytes;
use ombak_proto::code;
use ombak_proto::messages::{DtFetchReq, DtUpdateReq, RpbCounterUpdateReq};
use ombak_types::Error;
use ombak_types::etf::BinaryText;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::props::DataType;

/// The messages that are refused.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::bare(code::START_TLS, start_tls),
    Handler::bare(code::MAP_RED_REQ, map_reduce),
    Handler::immediate::<RpbCounterUpdateReq>(code::COUNTER_UPDATE_REQ),
    Handler::bare(code::COUNTER_GET_REQ, counter_get),
    Handler::immediate::<DtFetchReq>(code::DT_FETCH_REQ),
    Handler::immediate::<DtUpdateReq>(code::DT_UPDATE_REQ),
    Handler::bare(code::FETCH_REQ, queue),
    Handler::bare(code::PUSH_REQ, queue),
    Handler::bare(code::MEMBERSHIP_REQ, not_supported),
    Handler::bare(code::AAE_MERGE_ROOT_NVAL_REQ, not_supported),
    Handler::bare(code::AAE_MERGE_BRANCH_NVAL_REQ, not_supported),
    Handler::bare(code::AAE_FETCH_CLOCKS_NVAL_REQ, not_supported),
    Handler::bare(code::AAE_MERGE_TREES_RANGE_REQ, not_supported),
    Handler::bare(code::AAE_FETCH_CLOCKS_RANGE_REQ, not_supported),
    Handler::bare(code::AAE_FIND_KEYS_REQ, not_supported),
    Handler::bare(code::AAE_OBJECT_STATS_REQ, not_supported),
    Handler::bare(code::AAE_REPL_KEYS_REQ, not_supported),
    Handler::bare(code::AAE_FIND_TOMBS_REQ, not_supported),
    Handler::bare(code::AAE_REPAIR_KEYS_REQ, not_supported),
    Handler::bare(code::AAE_LIST_BUCKETS_REQ, not_supported),
    Handler::bare(code::AAE_REAP_TOMBS_REQ, not_supported),
    Handler::bare(code::AAE_ERASE_KEYS_REQ, not_supported),
];

fn start_tls(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::new("Security not enabled; STARTTLS not allowed."))
}

fn map_reduce(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(Error::JobDisabled(JobClass::MapReduce.term()).into())
}

fn queue(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::new("queue_not_defined"))
}

fn not_supported(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::new("not_supported"))
}

fn counter_get(_: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    Err(counters_unsupported())
}

impl Request for RpbCounterUpdateReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::Put, None, &self.bucket))
    }
}

impl Immediate for RpbCounterUpdateReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        let props = exchange.ctx.kv.buckets().props(&bucket(None, self.bucket)?)?;
        Err(if props.allow_mult {
            counters_unsupported()
        } else {
            Refusal::new("\"Counters require bucket property 'allow_mult=true'\"")
        })
    }
}

/// Riak prints this text with `~p`, which puts it in quotes (docs/riak/pb-api.md §1.1).
fn counters_unsupported() -> Refusal {
    Refusal::new("\"Counters are not supported\"")
}

impl Request for DtFetchReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::Get, Some(&self.r#type), &self.bucket))
    }
}

impl Immediate for DtFetchReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        refuse_data_type(exchange, self.r#type, self.bucket)
    }
}

impl Request for DtUpdateReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::Put, Some(&self.r#type), &self.bucket))
    }
}

impl Immediate for DtUpdateReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        refuse_data_type(exchange, self.r#type, self.bucket)
    }
}

fn refuse_data_type(exchange: &Exchange<'_, '_>, bucket_type: Bytes, name: Bytes) -> Result<(), Refusal> {
    if bucket_type == DEFAULT_TYPE {
        return Err(counters_unsupported());
    }
    let bucket = bucket(Some(bucket_type), name)?;
    let props = exchange.ctx.kv.buckets().props(&bucket).map_err(|error| match error {
        Error::NoType(bucket) => Refusal::new(format!("Error no bucket type `{}`", BinaryText(&bucket.bucket_type))),
        other => other.into(),
    })?;
    Err(Refusal::new(match props.datatype {
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
