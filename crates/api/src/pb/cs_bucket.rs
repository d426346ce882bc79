//! The objects of a range of keys, in the order of the keys (`RpbCSBucketReq`, spec/pb-api.md §10).
//!
//! Stores keep no order, so the range is found by listing the bucket and keeping the smallest keys beyond the last one
//! answered: one listing for every [`PAGE_KEYS_MAX`] objects, with memory bounded by one page.

use super::context::PbContext;
use super::dispatch::Failure;
use super::listing::next_batch;
use super::object;
use super::reader::Reader;
use super::refusal::Refusal;
use super::writer::Writer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use ombak_kv::{GetOptions, GetReply, GetRequest};
use ombak_proto::code;
use ombak_proto::messages::{RpbCsBucketReq, RpbCsBucketResp, RpbGetResp, RpbIndexObject};
use ombak_proto::reply::{content_message, write_message};
use ombak_types::stored::encode_clock;
use ombak_types::{Bucket, Error};
use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

/// Keys that are held at once.
const PAGE_KEYS_MAX: usize = 10_000;

/// A continuation is the base64 text of the external term format of the last key: these bytes, its length as u32, it.
const TERM_PREFIX: [u8; 2] = [131, 109];

/// A range of keys.
struct Range {
    from: Bound<Bytes>,
    to: Bound<Bytes>,
}

impl Range {
    fn of(req: &RpbCsBucketReq) -> Result<Self, Refusal> {
        let from = match &req.continuation {
            Some(continuation) => Bound::Excluded(last_key(continuation)?),
            None if req.start_incl() => Bound::Included(req.start_key.clone()),
            None => Bound::Excluded(req.start_key.clone()),
        };
        let to = match &req.end_key {
            None => Bound::Unbounded,
            Some(key) if req.end_incl() => Bound::Included(key.clone()),
            Some(key) => Bound::Excluded(key.clone()),
        };
        Ok(Self { from, to })
    }

    fn contains(&self, key: &Bytes) -> bool {
        RangeBounds::<Bytes>::contains(&(self.from.as_ref(), self.to.as_ref()), key)
    }
}

pub(super) async fn objects(
    ctx: &PbContext,
    req: RpbCsBucketReq,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let bucket = object::bucket(req.r#type.clone(), req.bucket.clone())?;
    let mut range = Range::of(&req)?;
    let mut left = req.max_results.map_or(usize::MAX, |n| n as usize);
    let mut last = None;
    while left > 0 {
        let page = smallest_keys(ctx, &bucket, &range, left.min(PAGE_KEYS_MAX), &req, reader).await?;
        let Some(page_end) = page.last().cloned() else { break };
        for key in page {
            let Some(object) = read(ctx, &bucket, &key, &req).await? else { continue };
            let objects = vec![RpbIndexObject { key: key.clone(), object }];
            let reply = RpbCsBucketResp { objects, ..RpbCsBucketResp::default() };
            write_message(code::CS_BUCKET_RESP, &reply, &mut writer.buffer);
            writer.relieve().await?;
            last = Some(key);
            left -= 1;
        }
        range.from = Bound::Excluded(page_end);
    }
    let continuation = last.filter(|_| left == 0).map(|key| continuation(&key));
    let end = RpbCsBucketResp { objects: Vec::new(), continuation, done: Some(true) };
    write_message(code::CS_BUCKET_RESP, &end, &mut writer.buffer);
    Ok(())
}

/// The smallest keys of a range, in order.
async fn smallest_keys(
    ctx: &PbContext,
    bucket: &Bucket,
    range: &Range,
    count_max: usize,
    req: &RpbCsBucketReq,
    reader: &mut Reader<'_>,
) -> Result<BTreeSet<Bytes>, Failure> {
    let mut listing = ctx.kv.list_keys(bucket, object::timeout(req.timeout))?;
    let mut keys = BTreeSet::new();
    while let Some(batch) = next_batch(&mut listing, reader).await? {
        for key in batch.into_iter().filter(|key| range.contains(key)) {
            keys.insert(key);
            if keys.len() > count_max {
                keys.pop_last();
            }
        }
    }
    Ok(keys)
}

/// The object of a key, unless it has gone since it was listed.
async fn read(
    ctx: &PbContext,
    bucket: &Bucket,
    key: &Bytes,
    req: &RpbCsBucketReq,
) -> Result<Option<RpbGetResp>, Error> {
    let options = GetOptions { timeout: object::timeout(req.timeout), ..GetOptions::default() };
    match ctx.kv.get(GetRequest { bucket: bucket.clone(), key: key.clone(), options }).await? {
        GetReply::NotFound { .. } => Ok(None),
        GetReply::Found(object) => Ok(Some(RpbGetResp {
            content: object.siblings.iter().map(content_message).collect(),
            vclock: Some(encode_clock(&object.clock).into()),
            unchanged: None,
        })),
    }
}

fn continuation(key: &Bytes) -> Bytes {
    let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
    let term = [&TERM_PREFIX[..], &length.to_be_bytes(), key].concat();
    BASE64.encode(term).into()
}

fn last_key(continuation: &Bytes) -> Result<Bytes, Refusal> {
    let term = BASE64.decode(continuation).ok();
    let key = term.as_deref().and_then(|term| term.strip_prefix(&TERM_PREFIX)).and_then(|rest| {
        let (length, key) = rest.split_first_chunk::<4>()?;
        (usize::try_from(u32::from_be_bytes(*length)) == Ok(key.len())).then(|| Bytes::copy_from_slice(key))
    });
    key.ok_or_else(|| Refusal::new("Error processing incoming message: the continuation is none that was given out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continuation_names_the_last_key() {
        for key in [&b""[..], b"o1", &[0xff; 300]] {
            let key = Bytes::copy_from_slice(key);
            assert_eq!(last_key(&continuation(&key)), Ok(key));
        }
        for bad in ["", "%%%", "g20AAAAC", "zork"] {
            assert!(last_key(&Bytes::from(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_range_starts_inclusive_and_ends_exclusive_unless_told_otherwise() {
        let req = RpbCsBucketReq { start_key: "b".into(), end_key: Some("d".into()), ..RpbCsBucketReq::default() };
        let inside = |req: &RpbCsBucketReq| {
            let range = Range::of(req).unwrap();
            ["a", "b", "c", "d", "e"].into_iter().filter(|k| range.contains(&Bytes::from(*k))).collect::<String>()
        };
        assert_eq!(inside(&req), "bc");
        assert_eq!(inside(&RpbCsBucketReq { start_incl: Some(false), end_incl: Some(true), ..req.clone() }), "cd");
        assert_eq!(inside(&RpbCsBucketReq { end_key: None, ..req.clone() }), "bcde");
        assert_eq!(inside(&RpbCsBucketReq { continuation: Some(continuation(&"c".into())), ..req }), "");
    }
}
