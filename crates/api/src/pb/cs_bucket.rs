//! The objects of a range of keys, ordered by key (`RpbCSBucketReq`, docs/riak/pb-api.md §10).
//!
//! The request queries the keys as a query of `$key` does, and reads each object in turn. An object
//! that was deleted in the meantime is skipped.

use super::context::PbContext;
use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::reader::Reader;
use super::refusal::Refusal;
use super::writer::Writer;
use super::{index, message};
use crate::access::{Access, Permission};
use crate::bulk::give_way;
use crate::index_query;
use crate::memory::Lease;
use bytes::Bytes;
use ombak_kv::{GetOptions, GetReply, GetRequest, IndexQuery, QueryRange};
use ombak_proto::code;
use ombak_proto::messages::{RpbCsBucketReq, RpbCsBucketResp, RpbGetResp, RpbIndexObject};
use ombak_proto::reply::{content_message, write_message};
use ombak_types::stored_object::encode_clock;
use ombak_types::{Bucket, Error};
use prost::Message;
use std::ops::Bound;

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[Handler::streaming::<RpbCsBucketReq>(code::CS_BUCKET_REQ)];

/// The number of objects in an answer to a request that sets no maximum. The answer has a
/// continuation then, as if the request had set this maximum.
const PAGE_OBJECTS: usize = 10_000;

impl Request for RpbCsBucketReq {
    /// Riak asks for no permission (docs/riak/pb-api.md §5), although the answer has the values of
    /// objects. Here the request needs the permission of the query that it is.
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::INDEX, self.r#type.as_deref(), &self.bucket))
    }
}

impl Streaming for RpbCsBucketReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { ctx, reader, writer, .. } = exchange;
        objects(ctx, self, reader, writer).await
    }
}

/// The query for the keys of a request.
fn keys(req: &RpbCsBucketReq) -> Result<IndexQuery, Refusal> {
    let bucket = message::bucket(req.r#type.clone(), req.bucket.clone())?;
    let from = match req.start_incl() {
        true => Bound::Included(req.start_key.clone()),
        false => Bound::Excluded(req.start_key.clone()),
    };
    let to = match &req.end_key {
        None => Bound::Unbounded,
        Some(key) if req.end_incl() => Bound::Included(key.clone()),
        Some(key) => Bound::Excluded(key.clone()),
    };
    let range = QueryRange::Keys { from, to };
    let after = req.continuation.as_ref().map(|text| index_query::read_continuation(&range, text)).transpose();
    let after = after.map_err(|bad| Refusal::new(bad.to_string()))?;
    Ok(IndexQuery { bucket, range, after, results_max: None, pattern: None, shows_tombstones: false })
}

async fn objects(
    ctx: &PbContext,
    req: RpbCsBucketReq,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let query = keys(&req)?;
    let bucket = query.bucket.clone();
    let mut left = req.max_results.map_or(PAGE_OBJECTS, |n| n as usize);
    let mut last = None;
    let mut found = ctx.kv.query(query, index::limit(req.timeout))?.in_group(writer.address_group());
    while left > 0 {
        let Some(batch) = index::next_batch(&mut found, reader).await? else { break };
        for found in batch {
            if left == 0 {
                break;
            }
            let mut lease = writer.lease();
            let Some(object) = read(ctx, &bucket, &found.key, &req, &mut lease).await? else { continue };
            let objects = vec![RpbIndexObject { key: found.key.clone(), object }];
            let reply = RpbCsBucketResp { objects, ..RpbCsBucketResp::default() };
            // The memory is counted twice: the object as it was read, and its encoded form.
            lease.add(reply.encoded_len() as u64).await?;
            write_message(code::CS_BUCKET_RESP, &reply, &mut writer.buffer);
            writer.hold(lease);
            writer.flush_if_full().await?;
            give_way().await;
            last = Some(found);
            left -= 1;
        }
    }
    let continuation = last.filter(|_| left == 0).map(|last| index_query::continuation(&last).into());
    let end = RpbCsBucketResp { objects: Vec::new(), continuation, done: Some(true) };
    write_message(code::CS_BUCKET_RESP, &end, &mut writer.buffer);
    Ok(())
}

/// Reads the object of a key; `None` if it was deleted after it was listed.
async fn read(
    ctx: &PbContext,
    bucket: &Bucket,
    key: &Bytes,
    req: &RpbCsBucketReq,
    lease: &mut Lease<'_>,
) -> Result<Option<RpbGetResp>, Error> {
    let options = GetOptions { timeout: message::timeout(req.timeout), ..GetOptions::default() };
    let request = GetRequest { bucket: bucket.clone(), key: key.clone(), options };
    match ctx.kv.read_into(&request, lease).await?.into_reply()? {
        GetReply::NotFound { .. } => Ok(None),
        GetReply::Found(object) => Ok(Some(RpbGetResp {
            content: object.siblings.iter().map(content_message).collect(),
            vclock: Some(encode_clock(&object.clock).into()),
            unchanged: None,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_starts_inclusive_and_ends_exclusive_unless_told_otherwise() {
        let req = RpbCsBucketReq {
            bucket: "b".into(),
            start_key: "b".into(),
            end_key: Some("d".into()),
            ..RpbCsBucketReq::default()
        };
        let range = |req: &RpbCsBucketReq| match keys(req).unwrap().range {
            QueryRange::Keys { from, to } => (from, to),
            other => panic!("{other:?}"),
        };
        assert_eq!(range(&req), (Bound::Included("b".into()), Bound::Excluded("d".into())));
        let other = RpbCsBucketReq { start_incl: Some(false), end_incl: Some(true), ..req.clone() };
        assert_eq!(range(&other), (Bound::Excluded("b".into()), Bound::Included("d".into())));
        let open = RpbCsBucketReq { end_key: None, ..req.clone() };
        assert_eq!(range(&open), (Bound::Included("b".into()), Bound::Unbounded));
        let bad = RpbCsBucketReq { continuation: Some("zork".into()), ..req };
        assert_eq!(keys(&bad).unwrap_err(), Refusal::new("{invalid_continuation,<<\"zork\">>}"));
    }
}
