//! The bodies of get, put and delete as requests for the engine (docs/riak/pb-api.md §6.1 – §6.3).
//! Hot.

use super::message::{bucket, decode, non_empty, timeout};
use super::refusal::Refusal;
use bytes::Bytes;
use ombak_kv::{DeleteRequest, GetOptions, GetRequest, PutCondition, PutOptions, PutRequest};
use ombak_proto::get_req::GetReq;
use ombak_proto::messages::RpbDelReq;
use ombak_proto::put_req::{self, Content, PutReq};
use ombak_types::error::PrecommitReason;
use ombak_types::object::BadIndexEntry;
use ombak_types::stored_object::decode_clock;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, IndexEntry, Link, Object, Quorum, Sibling, SiblingMeta, VectorClock};

/// The options of a get that decide what the answer shows.
#[derive(Debug, Default)]
pub(super) struct GetView {
    /// Answer "unchanged" if the object still has this clock.
    pub(super) if_modified: Option<VectorClock>,
    /// Whether the clock of a tombstone is shown.
    pub(super) deletedvclock: bool,
}

/// Decodes a get; `None` if it has no bucket or no key.
pub(super) fn get(body: &Bytes) -> Result<Option<(GetRequest, GetView)>, Refusal> {
    let req = GetReq::decode(body).map_err(|e| Refusal::undecodable("RpbGetReq", e))?;
    let slice = |bytes| body.slice_ref(bytes);
    let (Some(name), Some(key)) = (req.bucket, req.key) else { return Ok(None) };
    let bucket = bucket(req.bucket_type.map(slice), slice(name))?;
    let key = non_empty("Key", slice(key))?;
    let options = GetOptions {
        r: quorum(req.r),
        pr: quorum(req.pr),
        node_confirms: quorum(req.node_confirms),
        basic_quorum: req.basic_quorum,
        notfound_ok: req.notfound_ok,
        n_val: req.n_val,
        sloppy_quorum: req.sloppy_quorum.unwrap_or(true),
        timeout: timeout(req.timeout),
        head: req.head.unwrap_or(false),
        as_stored: false,
    };
    let view = GetView {
        if_modified: req.if_modified.map(decode_clock).transpose()?,
        deletedvclock: req.deletedvclock.unwrap_or(false),
    };
    Ok(Some((GetRequest { bucket, key, options }, view)))
}

/// Decodes a put.
pub(super) fn put(body: &Bytes) -> Result<PutRequest, Refusal> {
    let req = PutReq::decode(body).map_err(|e| Refusal::undecodable("RpbPutReq", e))?;
    let slice = |bytes| body.slice_ref(bytes);
    let bucket = bucket(req.bucket_type.map(slice), slice(req.bucket.unwrap_or_default()))?;
    let key = req.key.map(|key| non_empty("Key", slice(key))).transpose()?;
    let clock = req.vclock.map(decode_clock).transpose()?.unwrap_or_default();
    let asis = req.asis.unwrap_or(false);
    let condition = if req.if_none_match == Some(true) {
        PutCondition::IfNoneMatch
    } else if req.if_not_modified == Some(true) {
        PutCondition::IfNotModified(clock.clone())
    } else {
        PutCondition::None
    };
    let options = PutOptions {
        w: quorum(req.w),
        dw: quorum(req.dw),
        pw: quorum(req.pw),
        node_confirms: quorum(req.node_confirms),
        n_val: req.n_val,
        sloppy_quorum: req.sloppy_quorum.unwrap_or(true),
        sync_on_write: None,
        timeout: timeout(req.timeout),
        asis,
        condition,
        return_body: req.return_body.unwrap_or(false),
        return_head: req.return_head.unwrap_or(false),
        operation: None,
    };
    let object = Object { clock, siblings: vec![sibling(body, &req.content.unwrap_or_default())?] };
    Ok(PutRequest { bucket, key, object, options })
}

/// Decodes a delete; `None` if it has no bucket or no key.
pub(super) fn delete(body: &Bytes) -> Result<Option<DeleteRequest>, Refusal> {
    let req: RpbDelReq = decode(body)?;
    let (Some(name), Some(key)) = (req.bucket, req.key) else { return Ok(None) };
    let bucket = bucket(req.r#type, name)?;
    let key = non_empty("Key", key)?;
    let sloppy_quorum = req.sloppy_quorum.unwrap_or(true);
    let (n_val, timeout) = (req.n_val, timeout(req.timeout));
    let (r, w) = (quorum(req.r), quorum(req.w));
    Ok(Some(DeleteRequest {
        bucket,
        key,
        clock: req.vclock.as_deref().map(decode_clock).transpose()?,
        get: GetOptions { r, pr: quorum(req.pr), n_val, sloppy_quorum, timeout, ..GetOptions::default() },
        put: PutOptions {
            w,
            dw: quorum(req.dw),
            pw: quorum(req.pw),
            n_val,
            sloppy_quorum,
            timeout,
            ..PutOptions::default()
        },
        // If r or w is given, rw has no effect (docs/riak/pb-api.md §6.3).
        rw: quorum(req.rw).filter(|_| r.is_none() && w.is_none()),
    }))
}

/// The bucket and key of a put, without decoding the rest of it.
pub(super) fn names_of_put(body: &Bytes) -> Result<(Bucket, Option<Bytes>), Error> {
    let [bucket_type, name, key] = put_req::names(body).map(|name| name.map(|name| body.slice_ref(name)));
    Ok((bucket(bucket_type, name.unwrap_or_default())?, key))
}

fn quorum(n: Option<u32>) -> Option<Quorum> {
    n.map(Quorum::from_wire)
}

fn sibling(frame: &Bytes, content: &Content<'_>) -> Result<Sibling, Refusal> {
    let slice = |bytes: &[u8]| frame.slice_ref(bytes);
    let part = |bytes: Option<&[u8]>| bytes.map(slice).unwrap_or_default();
    let indexes = content.indexes.iter().map(|pair| index_entry(pair.key, pair.value.unwrap_or_default()));
    let last_modified = content.last_mod.map(|secs| {
        UnixMicros(
            UnixMicros::from_secs(u64::from(secs)).0 + u64::from(content.last_mod_usecs.unwrap_or(0) % 1_000_000),
        )
    });
    let meta = SiblingMeta {
        content_type: content.content_type.map(slice),
        charset: content.charset.map(slice),
        content_encoding: content.content_encoding.map(slice),
        vtag: content.vtag.map(slice),
        last_modified,
        links: (content.links.iter())
            .map(|link| Link { bucket: part(link.bucket), key: part(link.key), tag: part(link.tag) })
            .collect(),
        user_meta: content.usermeta.iter().map(|pair| (slice(pair.key), part(pair.value))).collect(),
        indexes: indexes.collect::<Result<_, _>>()?,
        deleted: content.deleted.unwrap_or(false),
        ..SiblingMeta::default()
    };
    Ok(Sibling { value: slice(content.value), meta })
}

fn index_entry(field: &[u8], text: &[u8]) -> Result<IndexEntry, Error> {
    IndexEntry::parse(field, text).map_err(|bad| {
        let field = String::from_utf8_lossy(field).to_lowercase();
        Error::PrecommitFail(Some(match bad {
            BadIndexEntry::UnknownFieldType => PrecommitReason::UnknownFieldType { field },
            BadIndexEntry::NotAnInteger => {
                PrecommitReason::FieldParsingFailed { field, value: String::from_utf8_lossy(text).into_owned() }
            }
        }))
    })
}
