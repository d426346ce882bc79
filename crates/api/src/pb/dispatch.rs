//! Answers every message except get, put and delete: maps each message code to the function that
//! serves it.

use super::connection::End;
use super::context::PbContext;
use super::reader::Reader;
use super::refusal::Refusal;
use super::writer::Writer;
use super::{bucket, cs_bucket, index, later, listing, object};
use bytes::Bytes;
use ombak_proto::messages::{
    RpbBucketKeyPreflistItem, RpbGetBucketKeyPreflistReq, RpbGetBucketKeyPreflistResp, RpbGetClientIdResp,
    RpbGetServerInfoResp, RpbSetClientIdReq,
};
use ombak_proto::reply::{write_empty, write_error, write_message};
use ombak_proto::{Frame, code, lenient};
use prost::{Message, Name};

/// The Riak version that clients use to enable features. It is the version whose interface this is.
const SERVER_VERSION: &str = "3.2.3";

/// The longest client id, in bytes. Riak's clients use four bytes, and Riak accepts more
/// (docs/riak/pb-api.md §5).
const CLIENT_ID_BYTES_MAX: usize = 1024;

/// The largest message other than a put, in bytes. No such message needs more, and decoding it
/// would take many times its size in memory.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The state of a connection that outlasts a request.
pub(super) struct Session {
    client_id: Bytes,
}

impl Default for Session {
    fn default() -> Self {
        Self { client_id: Bytes::from_static(&[0; 4]) }
    }
}

/// Why a request did not end normally: it was refused, or its connection has ended.
pub(super) enum Failure {
    Refused(Refusal),
    Ended(End),
}

impl<E: Into<Refusal>> From<E> for Failure {
    fn from(refusal: E) -> Self {
        Self::Refused(refusal.into())
    }
}

impl From<End> for Failure {
    fn from(end: End) -> Self {
        Self::Ended(end)
    }
}

/// Answers one frame.
pub(super) async fn answer(
    frame: &Frame,
    session: &mut Session,
    ctx: &PbContext,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), End> {
    match serve(frame, session, ctx, reader, writer).await {
        Ok(()) => Ok(()),
        Err(Failure::Refused(refusal)) => {
            write_error(refusal.into_text(), &mut writer.buffer);
            Ok(())
        }
        Err(Failure::Ended(end)) => Err(end),
    }
}

async fn serve(
    frame: &Frame,
    session: &mut Session,
    ctx: &PbContext,
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let body = &frame.body;
    check_size(frame)?;
    match frame.code {
        code::PING_REQ => write_empty(code::PING_RESP, &mut writer.buffer),
        code::GET_CLIENT_ID_REQ => {
            let reply = RpbGetClientIdResp { client_id: session.client_id.clone() };
            write_message(code::GET_CLIENT_ID_RESP, &reply, &mut writer.buffer);
        }
        code::SET_CLIENT_ID_REQ => {
            session.client_id = client_id(&decode(body)?)?;
            write_empty(code::SET_CLIENT_ID_RESP, &mut writer.buffer);
        }
        code::GET_SERVER_INFO_REQ => {
            let node = Some(Bytes::copy_from_slice(ctx.kv.node_name().as_bytes()));
            let reply =
                RpbGetServerInfoResp { node, server_version: Some(Bytes::from_static(SERVER_VERSION.as_bytes())) };
            write_message(code::GET_SERVER_INFO_RESP, &reply, &mut writer.buffer);
        }
        code::PREFLIST_REQ => write_message(code::PREFLIST_RESP, &preflist(ctx, decode(body)?)?, &mut writer.buffer),
        code::LIST_BUCKETS_REQ => listing::buckets(ctx, decode(body)?, reader, writer).await?,
        code::LIST_KEYS_REQ => listing::keys(ctx, decode(body)?, reader, writer).await?,
        code::INDEX_REQ => index::query(ctx, decode(body)?, reader, writer).await?,
        code::CS_BUCKET_REQ => cs_bucket::objects(ctx, decode(body)?, reader, writer).await?,
        code::GET_BUCKET_REQ => {
            write_message(code::GET_BUCKET_RESP, &bucket::get(ctx, decode(body)?)?, &mut writer.buffer);
        }
        code::SET_BUCKET_REQ => {
            bucket::set(ctx, decode(body)?).await?;
            write_empty(code::SET_BUCKET_RESP, &mut writer.buffer);
        }
        code::RESET_BUCKET_REQ => {
            bucket::reset(ctx, decode(body)?).await?;
            write_empty(code::RESET_BUCKET_RESP, &mut writer.buffer);
        }
        code::GET_BUCKET_TYPE_REQ => {
            write_message(code::GET_BUCKET_RESP, &bucket::get_type(ctx, &decode(body)?)?, &mut writer.buffer);
        }
        code::SET_BUCKET_TYPE_REQ => {
            bucket::set_type(ctx, decode(body)?).await?;
            write_empty(code::SET_BUCKET_RESP, &mut writer.buffer);
        }
        _ => return Err(Failure::Refused(later::refuse(ctx, frame)?)),
    }
    Ok(())
}

/// Refuses a message that is larger than [`MESSAGE_BYTES_MAX`].
pub(super) fn check_size(frame: &Frame) -> Result<(), Refusal> {
    if frame.body.len() <= MESSAGE_BYTES_MAX {
        return Ok(());
    }
    Err(Refusal::new(format!("A message with code {} has at most {MESSAGE_BYTES_MAX} bytes", frame.code)))
}

/// Decodes a message as leniently as Riak does.
pub(super) fn decode<M: Message + Name + Default>(body: &Bytes) -> Result<M, Refusal> {
    lenient::decode(body).map_err(|e| Refusal::undecodable(M::NAME, e))
}

fn client_id(req: &RpbSetClientIdReq) -> Result<Bytes, Refusal> {
    if req.client_id.len() > CLIENT_ID_BYTES_MAX {
        return Err(Refusal::new(format!("A client id has at most {CLIENT_ID_BYTES_MAX} bytes")));
    }
    // This is a copy, because the original would keep the whole read buffer in memory.
    Ok(Bytes::copy_from_slice(&req.client_id))
}

fn preflist(ctx: &PbContext, req: RpbGetBucketKeyPreflistReq) -> Result<RpbGetBucketKeyPreflistResp, Refusal> {
    let bucket = object::bucket(req.r#type, req.bucket)?;
    let key = object::non_empty("Key", req.key)?;
    let item = |item: ombak_kv::PreflistItem| RpbBucketKeyPreflistItem {
        partition: i64::from(item.partition),
        node: item.node.into(),
        primary: item.primary,
    };
    Ok(RpbGetBucketKeyPreflistResp { preflist: ctx.kv.preflist(&bucket, &key)?.into_iter().map(item).collect() })
}
