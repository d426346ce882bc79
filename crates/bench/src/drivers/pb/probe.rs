//! Harmless requests that are sent before a run to find out what a server supports.

use super::reply::GetReply;
use super::session::PbSession;
use crate::drivers::network::ExchangeError;
use crate::drivers::{DriverError, Reason};
use ombak_proto::code;
use ombak_proto::get_req::GetReq;
use ombak_proto::messages::RpbIndexReq;
use ombak_proto::reply::write_message;
use ombak_proto::request::{DelRequest, PutRequest, put_index, write_delete, write_get, write_put};
use std::time::Duration;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The name of a key and an index that nobody uses.
const NOBODYS: &[u8] = b"ombak-bench-probe_bin";

/// Reads from the bucket. The error says why that fails. `node_confirms` nodes have to answer;
/// `None` means as many as the properties of the bucket demand.
pub async fn read(
    session: &mut PbSession,
    bucket_type: Option<&[u8]>,
    bucket: &[u8],
    node_confirms: Option<u32>,
) -> Result<(), Reason> {
    let request = GetReq { bucket: Some(bucket), key: Some(NOBODYS), bucket_type, node_confirms, ..GetReq::default() };
    write_get(&request, session.begin());
    let answer = session.exchange(code::GET_RESP, LIMIT).await.and_then(GetReply::read);
    answer.map(drop).map_err(ExchangeError::reason)
}

/// Why the server has no secondary indexes; `None` if it has them.
pub async fn no_indexes(
    session: &mut PbSession,
    bucket_type: Option<&[u8]>,
    bucket: &[u8],
) -> Result<Option<String>, DriverError> {
    let owned = bytes::Bytes::copy_from_slice;
    let request = RpbIndexReq {
        bucket: owned(bucket),
        index: owned(NOBODYS),
        key: Some(owned(b"x")),
        r#type: bucket_type.map(owned),
        ..RpbIndexReq::default()
    };
    write_message(code::INDEX_REQ, &request, session.begin());
    let answer = session.exchange(code::INDEX_RESP, LIMIT).await.map(drop);
    match answer {
        Ok(()) => Ok(None),
        Err(ExchangeError::Answer(why)) => Ok(Some(format!("the server has no secondary indexes: {why}"))),
        Err(error) => Err(failed(session, "an index query", error)),
    }
}

/// Why the server refuses an object with an index entry; `None` if it does not. The object is
/// deleted afterwards.
pub async fn no_index_entries(
    session: &mut PbSession,
    bucket_type: Option<&[u8]>,
    bucket: &[u8],
) -> Result<Option<String>, DriverError> {
    let mut content_fields = Vec::new();
    put_index(NOBODYS, b"x", &mut content_fields);
    let content_fields = &content_fields[..];
    let put =
        PutRequest { bucket, key: Some(NOBODYS), value: b"probe", content_fields, bucket_type, ..Default::default() };
    write_put(&put, session.begin());
    match session.exchange(code::PUT_RESP, LIMIT).await.map(drop) {
        Ok(()) => {}
        Err(ExchangeError::Answer(why)) => return Ok(Some(format!("the server takes no index entries: {why}"))),
        Err(error) => return Err(failed(session, "a write", error)),
    }
    write_delete(&DelRequest { bucket, key: NOBODYS, bucket_type, ..Default::default() }, session.begin());
    match session.exchange(code::DEL_RESP, LIMIT).await.map(drop) {
        Ok(()) => Ok(None),
        Err(error) => Err(failed(session, "a delete", error)),
    }
}

fn failed(session: &PbSession, what: &str, error: ExchangeError) -> DriverError {
    DriverError(format!(
        "{}: {what} to check which operations the server supports failed: {}",
        session.target(),
        error.reason()
    ))
}
