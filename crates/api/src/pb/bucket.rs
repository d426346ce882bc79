//! Properties of buckets and bucket types (docs/riak/pb-api.md §8).

use super::context::PbContext;
use super::refusal::{ErlangBinary, Refusal};
use super::{object, props};
use bytes::Bytes;
use ombak_kv::buckets::{BucketRegistry, PropsError};
use ombak_proto::messages::{
    RpbGetBucketReq, RpbGetBucketResp, RpbGetBucketTypeReq, RpbResetBucketReq, RpbSetBucketReq, RpbSetBucketTypeReq,
};
use ombak_types::{Bucket, Error};

pub(super) fn get(ctx: &PbContext, req: RpbGetBucketReq) -> Result<RpbGetBucketResp, Refusal> {
    let bucket = object::bucket(req.r#type, req.bucket)?;
    let map = ctx.kv.buckets().bucket_map(&bucket).map_err(|error| match error {
        Error::NoType(bucket) => Refusal::no_such_type(&bucket.bucket_type),
        other => other.into(),
    })?;
    Ok(RpbGetBucketResp { props: props::to_message(&map) })
}

pub(super) async fn set(ctx: &PbContext, req: RpbSetBucketReq) -> Result<(), Refusal> {
    let bucket = object::bucket(req.r#type, req.bucket)?;
    let changes = props::from_message(&req.props);
    change_bucket(ctx, bucket, move |buckets, bucket| buckets.set_bucket(bucket, &changes)).await
}

pub(super) async fn reset(ctx: &PbContext, req: RpbResetBucketReq) -> Result<(), Refusal> {
    let bucket = object::bucket(req.r#type, req.bucket)?;
    change_bucket(ctx, bucket, |buckets, bucket| buckets.reset_bucket(bucket)).await
}

pub(super) fn get_type(ctx: &PbContext, req: &RpbGetBucketTypeReq) -> Result<RpbGetBucketResp, Refusal> {
    let map = ctx.kv.buckets().type_map(&req.r#type).map_err(|error| match error {
        Error::NoType(_) => Refusal::new(format!("Invalid bucket type: {}", ErlangBinary(&req.r#type))),
        other => other.into(),
    })?;
    Ok(RpbGetBucketResp { props: props::to_message(&map) })
}

pub(super) async fn set_type(ctx: &PbContext, req: RpbSetBucketTypeReq) -> Result<(), Refusal> {
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
