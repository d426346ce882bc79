//! Data types of bucket types: fetch and update (docs/riak/pb-api.md §11). In the default type they
//! are the counters of Riak 1.4.

use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::message::{bucket, non_empty};
use super::refusal::Refusal;
use super::{counters, datatype_messages as messages};
use crate::access::{Access, Permission};
use crate::data_types;
use bytes::Bytes;
use ombak_datatypes::typed_put;
use ombak_kv::Kv;
use ombak_proto::code;
use ombak_proto::messages::{DtFetchReq, DtUpdateReq};
use ombak_proto::reply::write_message;
use ombak_types::etf::BinaryText;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::props::DataType;
use ombak_types::{Bucket, BucketProps, Error};
use prost::Message;
use std::sync::Arc;

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] =
    &[Handler::streaming::<DtFetchReq>(code::DT_FETCH_REQ), Handler::streaming::<DtUpdateReq>(code::DT_UPDATE_REQ)];

impl Request for DtFetchReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::GET, Some(&self.r#type), &self.bucket))
    }
}

impl Streaming for DtFetchReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { ctx, writer, .. } = exchange;
        let (kv, mut lease) = (&ctx.kv, writer.lease());
        let (options, with_context) = (messages::get_options(&self), self.include_context.unwrap_or(true));
        let key = non_empty("Key", self.key)?;
        let answer = if self.r#type == DEFAULT_TYPE {
            counters::fetched(kv, bucket(None, self.bucket)?, key, options, &mut lease).await?
        } else {
            let (bucket, props, kind) = typed_bucket(kv, self.r#type, self.bucket)?;
            let read = kv.read_into(&data_types::fetch(bucket, key, options), &mut lease).await?;
            messages::fetched(kind, data_types::fetched(&props, read)?.value(), with_context)
        };
        // The memory is counted twice: the value as it was read, and its encoded form.
        lease.add(answer.encoded_len() as u64).await?;
        write_message(code::DT_FETCH_RESP, &answer, &mut writer.buffer);
        writer.hold(lease);
        Ok(())
    }
}

impl Request for DtUpdateReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::PUT, Some(&self.r#type), &self.bucket))
    }
}

impl Streaming for DtUpdateReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { ctx, writer, .. } = exchange;
        let (kv, mut lease) = (&ctx.kv, writer.lease());
        let (options, with_context) = (messages::put_options(&self), self.include_context.unwrap_or(true));
        let key = self.key.map(|key| non_empty("Key", key)).transpose()?;
        let answer = if self.r#type == DEFAULT_TYPE {
            let op = self.op.counter_op.ok_or_else(|| Refusal::new("non-counter operation on default bucket"))?;
            let amount = op.increment.unwrap_or(1);
            counters::updated(kv, bucket(None, self.bucket)?, key, amount, options, &mut lease).await?
        } else {
            let (bucket, props, kind) = typed_bucket(kv, self.r#type, self.bucket)?;
            let change = messages::change(self.op, self.context, kind, kv.wall_clock())?;
            let reply = kv.put_into(typed_put(bucket, key, &change, options), &mut lease).await?;
            let state = data_types::updated(&props, &reply)?;
            messages::updated(reply.key, state.as_ref(), with_context)
        };
        lease.add(answer.encoded_len() as u64).await?;
        write_message(code::DT_UPDATE_RESP, &answer, &mut writer.buffer);
        writer.hold(lease);
        Ok(())
    }
}

/// The bucket of a request, its properties and its data type.
fn typed_bucket(kv: &Kv, bucket_type: Bytes, name: Bytes) -> Result<(Bucket, Arc<BucketProps>, DataType), Refusal> {
    let bucket = bucket(Some(bucket_type), name)?;
    let props = kv.buckets().props(&bucket).map_err(|error| match error {
        Error::NoType(bucket) => Refusal::new(format!("Error no bucket type `{}`", BinaryText(&bucket.bucket_type))),
        other => other.into(),
    })?;
    let kind = props.datatype.ok_or_else(|| Refusal::new("`undefined` is not a supported type"))?;
    Ok((bucket, props, kind))
}
