//! Harmless questions, asked before a run, that show what a server has.

use super::reply::GetReply;
use super::session::PbSession;
use crate::drivers::connection::Trouble;
use crate::drivers::{DriverError, Reason};
use ombak_proto::code;
use ombak_proto::get_req::GetReq;
use ombak_proto::messages::RpbIndexReq;
use ombak_proto::reply::write_message;
use ombak_proto::request::write_get;
use std::time::Duration;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A key and an index that nobody has.
const NOBODYS: &[u8] = b"ombak-bench-probe_bin";

/// Whether a read from the bucket works, or why not.
pub async fn read(session: &mut PbSession, bucket_type: Option<&[u8]>, bucket: &[u8]) -> Result<(), Reason> {
    let request = GetReq { bucket: Some(bucket), key: Some(NOBODYS), bucket_type, ..GetReq::default() };
    write_get(&request, session.begin());
    let answer = session.exchange(code::GET_RESP, LIMIT).await.and_then(GetReply::read);
    answer.map(drop).map_err(Trouble::reason)
}

/// Why there are no secondary indexes; `None` when there are.
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
        Err(Trouble::Answer(why)) => Ok(Some(format!("the server has no secondary indexes: {why}"))),
        Err(trouble) => {
            let target = session.target();
            Err(DriverError(format!("{target} does not answer an index query: {}", trouble.reason())))
        }
    }
}
