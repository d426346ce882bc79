//! Runs a request for one key and encodes its answer. Hot.

use super::object_messages::{self, GetView};
use super::refusal::Refusal;
use super::writer::Writer;
use crate::access::{Access, Permission};
use crate::memory::Lease;
use bytes::Bytes;
use ombak_kv::{DeleteRequest, GetReply, GetRequest, Kv, PutReply, PutRequest, Read};
use ombak_proto::messages::RpbGetResp;
use ombak_proto::reply::{
    Output, write_empty, write_error, write_get_reply, write_message, write_put_reply, write_single_get_reply,
};
use ombak_proto::{code, put_req};
use ombak_types::stored_object::encode_clock;
use ombak_types::{DecodeBudget, Error};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A request for one key.
#[derive(Debug)]
pub(super) enum Operation {
    Get(GetRequest, GetView),
    Put(PutRequest),
    /// A put that takes too long to decode on a network thread. It holds the body of the frame.
    LargePut(Bytes),
    Delete(DeleteRequest),
    /// A get without a bucket or key. In Riak the answer is "not found" (docs/riak/pb-api.md §18).
    NothingToGet,
    /// A delete without a bucket or key.
    NothingToDelete,
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
pub(super) const PARTS_MAX: usize = 1_000;

/// The memory of a decoded link, metadata pair or index entry, in bytes.
const PART_BYTES: usize = 160;

/// The memory of an answer that is not counted, in bytes. It is much smaller than a connection's
/// allowance, and is released after the next write.
const UNCOUNTED_BYTES_MAX: u64 = 4 << 10;

impl Operation {
    /// What the operation does, and to which bucket; `None` if it does nothing.
    #[inline]
    pub(super) fn access(&self) -> Option<Access<'_>> {
        let (permission, bucket) = match self {
            Self::Get(request, _) => (Permission::GET, &request.bucket),
            Self::Put(request) => (Permission::PUT, &request.bucket),
            Self::LargePut(body) => {
                let [bucket_type, name, _] = put_req::names(body);
                return Some(Access::to_bucket(Permission::PUT, bucket_type, name.unwrap_or_default()));
            }
            Self::Delete(request) => (Permission::DELETE, &request.bucket),
            Self::NothingToGet | Self::NothingToDelete => return None,
        };
        Some(Access::to_bucket(permission, Some(&bucket.bucket_type), &bucket.name))
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
                if let Ok((bucket, key)) = object_messages::names_of_put(body) {
                    (&bucket, key.as_ref()).hash(&mut hasher);
                }
            }
            Self::Delete(request) => (&request.bucket, Some(&request.key)).hash(&mut hasher),
            Self::NothingToGet | Self::NothingToDelete => {}
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
            Self::NothingToGet => {
                let nothing = Read::Reply(GetReply::NotFound { tombstone: None });
                Ok(Answer::Get(nothing, GetView::default()))
            }
            Self::NothingToDelete => Ok(Answer::Deleted),
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
    let bytes_max = DecodeBudget::bytes_for(body.len());
    if parts * PART_BYTES > bytes_max {
        let text = format!(
            "A put would take more than {bytes_max} bytes of memory: its {parts} links, metadata pairs and index \
             entries take {PART_BYTES} bytes each, so store fewer of them with one object"
        );
        return Ok(Answer::Refused(Refusal::new(text)));
    }
    hold(lease, 0, parts).await?;
    match kv.offload(move || object_messages::put(&body)).await? {
        Ok(request) => put(kv, request, lease).await,
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
