//! Listings of buckets and keys (docs/riak/pb-api.md §7).
//!
//! A streamed answer has no empty batch before its end, because several clients take an empty batch
//! for the end.

use super::context::PbContext;
use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::message;
use super::reader::Reader;
use super::refusal::Refusal;
use super::writer::Writer;
use crate::access::{Access, Permission};
use crate::bulk::give_way;
use crate::jobs::JobClass;
use crate::memory::Lease;
use bytes::Bytes;
use ombak_kv::Listing;
use ombak_proto::code;
use ombak_proto::messages::{RpbListBucketsReq, RpbListBucketsResp, RpbListKeysReq, RpbListKeysResp};
use ombak_proto::reply::write_message;
use ombak_types::Error;
use ombak_types::names::DEFAULT_TYPE;

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::streaming::<RpbListKeysReq>(code::LIST_KEYS_REQ),
    Handler::streaming::<RpbListBucketsReq>(code::LIST_BUCKETS_REQ),
];

impl Request for RpbListKeysReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::LIST_KEYS, self.r#type.as_deref(), &self.bucket))
    }
}

impl Streaming for RpbListKeysReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { ctx, reader, writer, .. } = exchange;
        keys(ctx, self, reader, writer).await
    }
}

impl Request for RpbListBucketsReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_type(Permission::LIST_BUCKETS, self.r#type.as_deref()))
    }
}

impl Streaming for RpbListBucketsReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { ctx, reader, writer, .. } = exchange;
        buckets(ctx, self, reader, writer).await
    }
}

async fn keys(
    ctx: &PbContext,
    req: RpbListKeysReq,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    ctx.config.jobs.check(JobClass::StreamListKeys)?;
    let bucket = message::bucket(req.r#type, req.bucket)?;
    let listing = ctx.kv.list_keys(&bucket, message::timeout(req.timeout)).map_err(named_type)?;
    let mut listing = listing.in_group(writer.address_group());
    while let Some(keys) = next_batch(&mut listing, reader).await? {
        write_message(code::LIST_KEYS_RESP, &RpbListKeysResp { keys, done: None }, &mut writer.buffer);
        writer.flush_if_full().await?;
        give_way().await;
    }
    let end = RpbListKeysResp { keys: Vec::new(), done: Some(true) };
    write_message(code::LIST_KEYS_RESP, &end, &mut writer.buffer);
    Ok(())
}

async fn buckets(
    ctx: &PbContext,
    req: RpbListBucketsReq,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let streamed = req.stream.unwrap_or(false);
    ctx.config.jobs.check(if streamed { JobClass::StreamListBuckets } else { JobClass::ListBuckets })?;
    let bucket_type = message::non_empty("Type", req.r#type.unwrap_or(Bytes::from_static(DEFAULT_TYPE)))?;
    let listing = ctx.kv.list_buckets(&bucket_type, message::timeout(req.timeout)).map_err(named_type)?;
    let mut listing = listing.in_group(writer.address_group());
    if !streamed {
        let mut lease = writer.lease();
        let buckets = all_names(&mut listing, reader, ctx.config.frame_bytes_max, &mut lease).await?;
        writer.hold(lease);
        write_message(code::LIST_BUCKETS_RESP, &RpbListBucketsResp { buckets, done: None }, &mut writer.buffer);
        return Ok(());
    }
    while let Some(buckets) = next_batch(&mut listing, reader).await? {
        write_message(code::LIST_BUCKETS_RESP, &RpbListBucketsResp { buckets, done: None }, &mut writer.buffer);
        writer.flush_if_full().await?;
        give_way().await;
    }
    let end = RpbListBucketsResp { buckets: Vec::new(), done: Some(true) };
    write_message(code::LIST_BUCKETS_RESP, &end, &mut writer.buffer);
    Ok(())
}

fn named_type(error: Error) -> Refusal {
    match error {
        Error::NoType(bucket) => Refusal::no_such_type(&bucket.bucket_type),
        other => other.into(),
    }
}

/// The next names. If the peer closes the connection meanwhile, the connection ends.
async fn next_batch(listing: &mut Listing, reader: &mut Reader<'_>) -> Result<Option<Vec<Bytes>>, Failure> {
    loop {
        match reader.while_open(listing.next()).await?.transpose()? {
            Some(names) if names.is_empty() => {}
            batch => return Ok(batch),
        }
    }
}

/// The memory of names until they have been sent: the names themselves, and once more their encoded
/// form.
pub(super) fn held_bytes(names: usize, bytes: usize) -> u64 {
    (names * size_of::<Bytes>() + 2 * bytes) as u64
}

/// All names at once, if one frame can hold them.
async fn all_names(
    listing: &mut Listing,
    reader: &mut Reader<'_>,
    bytes_max: usize,
    lease: &mut Lease<'_>,
) -> Result<Vec<Bytes>, Failure> {
    let (mut names, mut bytes) = (Vec::new(), 0usize);
    while let Some(batch) = next_batch(listing, reader).await? {
        let batch_bytes = batch.iter().map(|name| name.len() + 6).sum::<usize>();
        bytes += batch_bytes;
        lease.add(held_bytes(batch.len(), batch_bytes)).await?;
        if bytes > bytes_max {
            let text = format!("The list does not fit into one answer of {bytes_max} bytes; ask with stream=true");
            return Err(Failure::Refused(Refusal::new(text)));
        }
        names.extend(batch);
    }
    Ok(names)
}
