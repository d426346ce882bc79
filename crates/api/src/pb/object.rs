//! The messages get, put and delete (docs/riak/pb-api.md §6.1 – §6.3).

use super::dispatch::{MESSAGE_BYTES_MAX, check_size};
use super::refusal::Refusal;
use super::writer::Writer;
use crate::memory::{ALLOWANCE_BYTES, Lease};
use bytes::Bytes;
use ombak_kv::{
    DeleteRequest, GetOptions, GetReply, GetRequest, Kv, PutCondition, PutOptions, PutReply, PutRequest, Read,
};
use ombak_proto::get_req::GetReq;
use ombak_proto::messages::{RpbDelReq, RpbGetResp};
use ombak_proto::put_req::{Content, PutReq};
use ombak_proto::reply::{
    Output, write_empty, write_error, write_get_reply, write_message, write_put_reply, write_single_get_reply,
};
use ombak_proto::{Frame, code, lenient, put_req};
use ombak_types::error::PrecommitReason;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::object::BadIndexEntry;
use ombak_types::stored_object::{decode_clock, encode_clock};
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, IndexEntry, Link, Metadata, Object, Quorum, Sibling, VectorClock};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// A request for one key.
#[derive(Debug)]
pub(super) enum Operation {
    Get(GetRequest, GetView),
    Put(PutRequest),
    /// A put that takes too long to decode on a network thread. It holds the body of the frame.
    LargePut(Bytes),
    Delete(DeleteRequest),
    /// A get without a bucket or key. In Riak the answer is "not found" (docs/riak/pb-api.md §18).
    GetNothing,
    /// A delete without a bucket or key.
    DeleteNothing,
}

/// The options of a get that decide what the answer shows.
#[derive(Debug, Default)]
pub(super) struct GetView {
    if_modified: Option<VectorClock>,
    deletedvclock: bool,
}

/// The outcome of an operation, before it is encoded.
#[derive(Debug)]
pub(super) enum Answer {
    Get(Read, GetView),
    Put(PutReply),
    Deleted,
    /// A frame that was encoded on another thread.
    Encoded(Bytes),
    Failed(Error),
    Refused(Refusal),
}

/// An answer with the lease on its memory.
pub(super) struct Answered<'a> {
    answer: Answer,
    lease: Lease<'a>,
}

/// The highest number of links, metadata pairs and index entries that are decoded or encoded on a
/// network thread. Each takes some hundred nanoseconds.
const PARTS_MAX: usize = 1_000;

/// The memory of a decoded link, metadata pair or index entry, in bytes.
const PART_BYTES: usize = 160;

/// The memory of an answer that is not counted, in bytes. It is much smaller than a connection's
/// allowance, and is released after the next write.
const UNCOUNTED_BYTES_MAX: u64 = 4 << 10;

impl Operation {
    /// Decodes a frame; `None` if it has another message code.
    pub(super) fn parse(frame: &Frame) -> Option<Result<Self, Refusal>> {
        match frame.code {
            code::GET_REQ | code::DEL_REQ if frame.body.len() > MESSAGE_BYTES_MAX => check_size(frame).err().map(Err),
            code::GET_REQ => Some(parse_get(&frame.body)),
            code::PUT_REQ if is_large(&frame.body) => Some(Ok(Self::LargePut(frame.body.clone()))),
            code::PUT_REQ => Some(parse_put(&frame.body)),
            code::DEL_REQ => Some(parse_delete(&frame.body)),
            _ => None,
        }
    }

    /// A fingerprint that is equal for equal keys. Puts for which the server chooses the key
    /// conflict with each other, which does no harm.
    pub(super) fn key_fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Get(request, _) => (&request.bucket, Some(&request.key)).hash(&mut hasher),
            Self::Put(request) => (&request.bucket, request.key.as_ref()).hash(&mut hasher),
            Self::LargePut(body) => {
                // A put without valid names will be refused, so its fingerprint does not matter.
                if let Ok((bucket, key)) = names(body) {
                    (&bucket, key.as_ref()).hash(&mut hasher);
                }
            }
            Self::Delete(request) => (&request.bucket, Some(&request.key)).hash(&mut hasher),
            Self::GetNothing | Self::DeleteNothing => {}
        }
        hasher.finish()
    }

    /// Runs the operation. The lease grows with the memory that this needs, including the answer.
    pub(super) async fn run<'a>(self, kv: &Kv, mut lease: Lease<'a>) -> Answered<'a> {
        let answer = match self {
            Self::Get(request, view) => read(kv, &request, view, &mut lease).await,
            Self::Put(request) => put(kv, request, &mut lease).await,
            Self::LargePut(body) => put_large(kv, body, &mut lease).await,
            Self::Delete(request) => kv.delete(request).await.map(|_| Answer::Deleted),
            Self::GetNothing => {
                let nothing = Read::Reply(GetReply::NotFound { tombstone: None });
                Ok(Answer::Get(nothing, GetView::default()))
            }
            Self::DeleteNothing => Ok(Answer::Deleted),
        };
        Answered { answer: answer.unwrap_or_else(Answer::Failed), lease }
    }
}

async fn read(kv: &Kv, request: &GetRequest, view: GetView, lease: &mut Lease<'_>) -> Result<Answer, Error> {
    let read = kv.read_into(request, lease).await?;
    let (bytes, parts) = match &read {
        Read::Single(single) => (single.value().len() as u64, 0),
        Read::Reply(GetReply::Found(object)) => (object.value_bytes(), object.part_count()),
        Read::Reply(GetReply::NotFound { .. }) => (0, 0),
    };
    hold(lease, bytes, parts).await?;
    encode_elsewhere(kv, Answer::Get(read, view), parts).await
}

async fn put(kv: &Kv, request: PutRequest, lease: &mut Lease<'_>) -> Result<Answer, Error> {
    let reply = kv.put_into(request, lease).await?;
    let Some(object) = &reply.object else { return Ok(Answer::Put(reply)) };
    let parts = object.part_count();
    hold(lease, object.value_bytes(), parts).await?;
    encode_elsewhere(kv, Answer::Put(reply), parts).await
}

async fn put_large(kv: &Kv, body: Bytes, lease: &mut Lease<'_>) -> Result<Answer, Error> {
    let parts = put_req::count_parts(&body);
    hold(lease, 0, parts).await?;
    match kv.offload(move || parse_put(&body)).await? {
        Ok(Operation::Put(request)) => put(kv, request, lease).await,
        Ok(_) => Ok(Answer::Failed(Error::Unsupported("a put was expected".into()))),
        Err(refusal) => Ok(Answer::Refused(refusal)),
    }
}

/// Sets the lease to the memory of an object with this many bytes and parts, unless that is little.
async fn hold(lease: &mut Lease<'_>, bytes: u64, parts: usize) -> Result<(), Error> {
    let bytes = bytes + (parts * PART_BYTES) as u64;
    if bytes > UNCOUNTED_BYTES_MAX || lease.bytes() > 0 {
        lease.resize(bytes).await.map_err(|_| Error::Overload)?;
    }
    Ok(())
}

/// Encodes an answer with many parts on another thread than the network thread.
async fn encode_elsewhere(kv: &Kv, answer: Answer, parts: usize) -> Result<Answer, Error> {
    if parts <= PARTS_MAX {
        return Ok(answer);
    }
    let encode = move || {
        let mut out = Vec::new();
        answer.write(&mut out);
        Answer::Encoded(out.into())
    };
    kv.offload(encode).await
}

impl<'a> Answered<'a> {
    /// Writes the answer. Its memory is released when it has been sent.
    pub(super) fn write(self, writer: &mut Writer<'a>) {
        let Self { answer, lease } = self;
        match answer {
            Answer::Encoded(frame) => writer.put_uncopied(frame),
            answer => answer.write(writer),
        }
        writer.hold(lease);
    }
}

impl Answer {
    fn write(self, out: &mut impl Output) {
        match &self {
            Self::Get(Read::Single(single), GetView { if_modified: None, .. }) => write_single_get_reply(single, out),
            Self::Get(Read::Single(single), view) => match single.decode() {
                Ok(object) => write_get(&GetReply::Found(object), view, out),
                Err(corrupt) => write_error(Error::from(corrupt).to_string(), out.bytes()),
            },
            Self::Get(Read::Reply(reply), view) => write_get(reply, view, out),
            Self::Put(reply) => {
                let stored = reply.object.as_ref().map(|object| (object, encode_clock(&object.clock)));
                let stored = stored.as_ref().map(|(object, clock)| (*object, &clock[..]));
                write_put_reply(stored, reply.key.as_deref(), out);
            }
            Self::Deleted => write_empty(code::DEL_RESP, out.bytes()),
            Self::Encoded(frame) => out.put_value(frame),
            Self::Failed(error) => write_error(error.to_string(), out.bytes()),
            Self::Refused(refusal) => write_error(refusal.clone().into_text(), out.bytes()),
        }
    }
}

fn write_get(reply: &GetReply, view: &GetView, out: &mut impl Output) {
    match reply {
        GetReply::Found(object) if view.if_modified.as_ref().is_some_and(|seen| seen.same_events(&object.clock)) => {
            write_message(code::GET_RESP, &RpbGetResp { unchanged: Some(true), ..RpbGetResp::default() }, out.bytes());
        }
        GetReply::Found(object) => write_get_reply(object, &encode_clock(&object.clock), out),
        GetReply::NotFound { tombstone: Some(clock) } if view.deletedvclock => {
            let vclock = Some(encode_clock(clock).into());
            write_message(code::GET_RESP, &RpbGetResp { vclock, ..RpbGetResp::default() }, out.bytes());
        }
        GetReply::NotFound { .. } => write_empty(code::GET_RESP, out.bytes()),
    }
}

fn parse_get(body: &Bytes) -> Result<Operation, Refusal> {
    let req = GetReq::decode(body).map_err(|e| Refusal::undecodable("RpbGetReq", e))?;
    let slice = |bytes| body.slice_ref(bytes);
    let (Some(name), Some(key)) = (req.bucket, req.key) else { return Ok(Operation::GetNothing) };
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
    };
    let view = GetView {
        if_modified: req.if_modified.map(decode_clock).transpose()?,
        deletedvclock: req.deletedvclock.unwrap_or(false),
    };
    Ok(Operation::Get(GetRequest { bucket, key, options }, view))
}

/// Whether a put has too many parts to be decoded on a network thread. A frame of at most a quarter
/// of a connection's allowance is never counted as large.
fn is_large(body: &Bytes) -> bool {
    body.len() > ALLOWANCE_BYTES / 4 && put_req::count_parts(body) > PARTS_MAX
}

/// The bucket and key of a put.
fn names(body: &Bytes) -> Result<(Bucket, Option<Bytes>), Error> {
    let [bucket_type, name, key] = put_req::names(body).map(|name| name.map(|name| body.slice_ref(name)));
    Ok((bucket(bucket_type, name.unwrap_or_default())?, key))
}

fn parse_put(body: &Bytes) -> Result<Operation, Refusal> {
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
    };
    let object = Object { clock, siblings: vec![sibling(body, &req.content.unwrap_or_default())?] };
    Ok(Operation::Put(PutRequest { bucket, key, object, options }))
}

fn parse_delete(body: &Bytes) -> Result<Operation, Refusal> {
    let req: RpbDelReq = lenient::decode(body).map_err(|e| Refusal::undecodable("RpbDelReq", e))?;
    let (Some(name), Some(key)) = (req.bucket, req.key) else { return Ok(Operation::DeleteNothing) };
    let bucket = bucket(req.r#type, name)?;
    let key = non_empty("Key", key)?;
    let sloppy_quorum = req.sloppy_quorum.unwrap_or(true);
    let (n_val, timeout) = (req.n_val, timeout(req.timeout));
    let (r, w) = (quorum(req.r), quorum(req.w));
    Ok(Operation::Delete(DeleteRequest {
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

/// The bucket that a request names.
pub(super) fn bucket(bucket_type: Option<Bytes>, name: Bytes) -> Result<Bucket, Error> {
    let name = non_empty("Bucket", name)?;
    Ok(match bucket_type.map(|t| non_empty("Type", t)).transpose()? {
        Some(bucket_type) if bucket_type != DEFAULT_TYPE => Bucket::typed(bucket_type, name),
        _ => Bucket::untyped(name),
    })
}

pub(super) fn non_empty(what: &'static str, bytes: Bytes) -> Result<Bytes, Error> {
    if bytes.is_empty() { Err(Error::ZeroLength(what)) } else { Ok(bytes) }
}

fn quorum(n: Option<u32>) -> Option<Quorum> {
    n.map(Quorum::from_wire)
}

/// A time limit in milliseconds. 0 means none (docs/riak/pb-api.md §18).
pub(super) fn timeout(timeout_ms: Option<u32>) -> Option<Duration> {
    timeout_ms.filter(|&ms| ms > 0).map(|ms| Duration::from_millis(u64::from(ms)))
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
    let meta = Metadata {
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
        ..Metadata::default()
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
