//! Properties of buckets and bucket types (docs/riak/pb-api.md §8).

use super::context::PbContext;
use super::failure::Failure;
use super::handler::{Exchange, Handler, Immediate, Request, Streaming};
use super::refusal::Refusal;
use super::{message, props};
use crate::access::{Access, Permission};
use bytes::Bytes;
use ombak_kv::buckets::{BucketRegistry, PropsError};
use ombak_proto::code;
use ombak_proto::messages::{
    RpbGetBucketReq, RpbGetBucketResp, RpbGetBucketTypeReq, RpbResetBucketReq, RpbSetBucketReq, RpbSetBucketTypeReq,
};
use ombak_proto::reply::{write_empty, write_message};
use ombak_types::etf::BinaryText;
use ombak_types::{Bucket, Error};

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::immediate::<RpbGetBucketReq>(code::GET_BUCKET_REQ),
    Handler::streaming::<RpbSetBucketReq>(code::SET_BUCKET_REQ),
    Handler::streaming::<RpbResetBucketReq>(code::RESET_BUCKET_REQ),
    Handler::immediate::<RpbGetBucketTypeReq>(code::GET_BUCKET_TYPE_REQ),
    Handler::streaming::<RpbSetBucketTypeReq>(code::SET_BUCKET_TYPE_REQ),
];

impl Request for RpbGetBucketReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::GET_BUCKET, self.r#type.as_deref(), &self.bucket))
    }
}

impl Immediate for RpbGetBucketReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        write_message(code::GET_BUCKET_RESP, &get(exchange.ctx, self)?, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbSetBucketReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::SET_BUCKET, self.r#type.as_deref(), &self.bucket))
    }
}

impl Streaming for RpbSetBucketReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        set(exchange.ctx, self).await?;
        write_empty(code::SET_BUCKET_RESP, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbResetBucketReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::SET_BUCKET, self.r#type.as_deref(), &self.bucket))
    }
}

impl Streaming for RpbResetBucketReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        reset(exchange.ctx, self).await?;
        write_empty(code::RESET_BUCKET_RESP, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbGetBucketTypeReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_type(Permission::GET_BUCKET_TYPE, Some(&self.r#type)))
    }
}

impl Immediate for RpbGetBucketTypeReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        write_message(code::GET_BUCKET_RESP, &get_type(exchange.ctx, &self)?, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbSetBucketTypeReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_type(Permission::SET_BUCKET_TYPE, Some(&self.r#type)))
    }
}

impl Streaming for RpbSetBucketTypeReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        set_type(exchange.ctx, self).await?;
        write_empty(code::SET_BUCKET_RESP, &mut exchange.writer.buffer);
        Ok(())
    }
}

fn get(ctx: &PbContext, req: RpbGetBucketReq) -> Result<RpbGetBucketResp, Refusal> {
    let bucket = message::bucket(req.r#type, req.bucket)?;
    let map = ctx.kv.buckets().bucket_map(&bucket).map_err(|error| match error {
        Error::NoType(bucket) => Refusal::no_such_type(&bucket.bucket_type),
        other => other.into(),
    })?;
    Ok(RpbGetBucketResp { props: props::to_message(&map) })
}

async fn set(ctx: &PbContext, req: RpbSetBucketReq) -> Result<(), Refusal> {
    let bucket = message::bucket(req.r#type, req.bucket)?;
    let changes = props::from_message(&req.props);
    change_bucket(ctx, bucket, move |buckets, bucket| buckets.set_bucket(bucket, &changes)).await
}

async fn reset(ctx: &PbContext, req: RpbResetBucketReq) -> Result<(), Refusal> {
    let bucket = message::bucket(req.r#type, req.bucket)?;
    change_bucket(ctx, bucket, |buckets, bucket| buckets.reset_bucket(bucket)).await
}

fn get_type(ctx: &PbContext, req: &RpbGetBucketTypeReq) -> Result<RpbGetBucketResp, Refusal> {
    let map = ctx.kv.buckets().type_map(&req.r#type).map_err(|error| match error {
        Error::NoType(_) => Refusal::new(format!("Invalid bucket type: {}", BinaryText(&req.r#type))),
        other => other.into(),
    })?;
    Ok(RpbGetBucketResp { props: props::to_message(&map) })
}

async fn set_type(ctx: &PbContext, req: RpbSetBucketTypeReq) -> Result<(), Refusal> {
    let (bucket_type, changes) = (detached(&req.r#type), props::from_message(&req.props));
    let changed = change(ctx, move |buckets| buckets.update_type(&bucket_type, &changes)).await?;
    changed.map_err(|error| match error {
        // Riak has the same error for an unknown type and for an inactive one (docs/riak/pb-api.md
        // §18).
        PropsError::NoType => invalid(&PropsError::NotActive),
        other => invalid(&other),
    })
}

async fn change_bucket(
    ctx: &PbContext,
    bucket: Bucket,
    apply: impl FnOnce(&BucketRegistry, &Bucket) -> Result<(), PropsError> + Send + 'static,
) -> Result<(), Refusal> {
    let bucket = Bucket::typed(detached(&bucket.bucket_type), detached(&bucket.name));
    let bucket_type = bucket.bucket_type.clone();
    let changed = change(ctx, move |buckets| apply(buckets, &bucket)).await?;
    changed.map_err(|error| match error {
        PropsError::NoType => Refusal::no_such_type(&bucket_type),
        other => invalid(&other),
    })
}

/// Runs a change on a blocking thread, because a change is written to disk before it returns and
/// network threads must not wait for that.
async fn change(
    ctx: &PbContext,
    apply: impl FnOnce(&BucketRegistry) -> Result<(), PropsError> + Send + 'static,
) -> Result<Result<(), PropsError>, Refusal> {
    let kv = ctx.kv.clone();
    let changed = tokio::task::spawn_blocking(move || apply(kv.buckets())).await;
    changed.map_err(|error| Refusal::new(format!("Error processing incoming message: {error}")))
}

fn invalid(error: &PropsError) -> Refusal {
    Refusal::new(format!("Invalid bucket properties: {error}"))
}

/// Copies a name. The registry keeps names for ever, and without a copy they would keep the whole
/// frame in memory.
fn detached(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}
