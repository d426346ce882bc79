//! The counters of Riak 1.4 (docs/riak/pb-api.md §11).

use super::datatype_messages::{bounded, quorum};
use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::message::{bucket, non_empty};
use super::refusal::Refusal;
use crate::access::{Access, Permission};
use crate::data_types;
use crate::memory::Lease;
use bytes::Bytes;
use ombak_datatypes::legacy_put;
use ombak_kv::{GetOptions, Kv, PutOptions};
use ombak_proto::code;
use ombak_proto::messages::dt_fetch_resp::DataType as KindCode;
use ombak_proto::messages::{
    DtFetchResp, DtUpdateResp, DtValue, RpbCounterGetReq, RpbCounterGetResp, RpbCounterUpdateReq, RpbCounterUpdateResp,
};
use ombak_proto::reply::write_message;
use ombak_types::{Bucket, Error};

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::streaming::<RpbCounterUpdateReq>(code::COUNTER_UPDATE_REQ),
    Handler::streaming::<RpbCounterGetReq>(code::COUNTER_GET_REQ),
];

impl Request for RpbCounterUpdateReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::PUT, None, &self.bucket))
    }
}

impl Streaming for RpbCounterUpdateReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let options = PutOptions {
            w: quorum(self.w),
            dw: quorum(self.dw),
            pw: quorum(self.pw),
            node_confirms: quorum(self.node_confirms),
            return_body: self.returnvalue.unwrap_or(false),
            ..PutOptions::default()
        };
        let (bucket, key) = (bucket(None, self.bucket)?, non_empty("Key", self.key)?);
        let Exchange { ctx, writer, .. } = exchange;
        let mut lease = writer.lease();
        let sum = count(&ctx.kv, bucket, key, self.amount, options, &mut lease).await?;
        let answer = RpbCounterUpdateResp { value: sum.map(bounded) };
        write_message(code::COUNTER_UPDATE_RESP, &answer, &mut writer.buffer);
        Ok(())
    }
}

impl Request for RpbCounterGetReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::GET, None, &self.bucket))
    }
}

impl Streaming for RpbCounterGetReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let options = GetOptions {
            r: quorum(self.r),
            pr: quorum(self.pr),
            node_confirms: quorum(self.node_confirms),
            basic_quorum: self.basic_quorum,
            notfound_ok: self.notfound_ok,
            ..GetOptions::default()
        };
        let (bucket, key) = (bucket(None, self.bucket)?, non_empty("Key", self.key)?);
        let Exchange { ctx, writer, .. } = exchange;
        let mut lease = writer.lease();
        let read = ctx.kv.read_into(&data_types::fetch(bucket, key, options), &mut lease).await?;
        let answer = RpbCounterGetResp { value: data_types::fetched_counter(read)?.map(bounded) };
        write_message(code::COUNTER_GET_RESP, &answer, &mut writer.buffer);
        Ok(())
    }
}

/// The answer to a fetch of a data type in the default type.
pub(super) async fn fetched(
    kv: &Kv,
    bucket: Bucket,
    key: Bytes,
    options: GetOptions,
    lease: &mut Lease<'_>,
) -> Result<DtFetchResp, Error> {
    let read = kv.read_into(&data_types::fetch(bucket, key, options), lease).await?;
    let value = data_types::fetched_counter(read)?
        .map(|sum| DtValue { counter_value: Some(bounded(sum)), ..DtValue::default() });
    Ok(DtFetchResp { context: None, r#type: KindCode::Counter as i32, value })
}

/// The answer to an update of a data type in the default type. The server chooses no key there.
pub(super) async fn updated(
    kv: &Kv,
    bucket: Bucket,
    key: Option<Bytes>,
    amount: i64,
    options: PutOptions,
    lease: &mut Lease<'_>,
) -> Result<DtUpdateResp, Refusal> {
    let key = key.ok_or(Error::ZeroLength("Key"))?;
    let sum = count(kv, bucket, key, amount, options, lease).await?;
    Ok(DtUpdateResp { counter_value: sum.map(bounded), ..DtUpdateResp::default() })
}

async fn count(
    kv: &Kv,
    bucket: Bucket,
    key: Bytes,
    amount: i64,
    options: PutOptions,
    lease: &mut Lease<'_>,
) -> Result<Option<i128>, Refusal> {
    if !kv.buckets().props(&bucket)?.allow_mult {
        // Riak prints this text with `~p`, which puts it in quotes (docs/riak/pb-api.md §1.1).
        return Err(Refusal::new(format!("\"{}\"", data_types::COUNTERS_NEED_SIBLINGS)));
    }
    let reply = kv.put_into(legacy_put(bucket, key, amount, options), lease).await?;
    Ok(data_types::updated_counter(&reply))
}
