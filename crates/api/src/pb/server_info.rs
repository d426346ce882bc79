//! Messages about the node and the connection: ping, server info, client id, preference list
//! (docs/riak/pb-api.md §5).

use super::handler::{Exchange, Handler, Immediate, Request};
use super::message;
use super::refusal::Refusal;
use crate::access::{Access, Permission};
use bytes::Bytes;
use ombak_proto::code;
use ombak_proto::messages::{
    RpbBucketKeyPreflistItem, RpbGetBucketKeyPreflistReq, RpbGetBucketKeyPreflistResp, RpbGetClientIdResp,
    RpbGetServerInfoResp, RpbSetClientIdReq,
};
use ombak_proto::reply::{write_empty, write_message};

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[
    Handler::bare(code::PING_REQ, ping),
    Handler::bare(code::GET_CLIENT_ID_REQ, client_id),
    Handler::immediate::<RpbSetClientIdReq>(code::SET_CLIENT_ID_REQ),
    Handler::bare(code::GET_SERVER_INFO_REQ, server_info),
    Handler::immediate::<RpbGetBucketKeyPreflistReq>(code::PREFLIST_REQ),
];

/// The Riak version that clients use to enable features. It is the version whose interface this is.
const SERVER_VERSION: &str = "3.2.3";

/// The longest client id, in bytes. Riak's clients use four bytes, and Riak accepts more
/// (docs/riak/pb-api.md §5).
const CLIENT_ID_BYTES_MAX: usize = 1024;

fn ping(exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    // A node that takes no part in its cluster answers everything else with an error.
    if let Some(why) = exchange.ctx.kv.no_part() {
        return Err(Refusal::new(why.text().to_owned()));
    }
    write_empty(code::PING_RESP, &mut exchange.writer.buffer);
    Ok(())
}

fn client_id(exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    let reply = RpbGetClientIdResp { client_id: exchange.session.client_id.clone() };
    write_message(code::GET_CLIENT_ID_RESP, &reply, &mut exchange.writer.buffer);
    Ok(())
}

fn server_info(exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    let node = Some(Bytes::copy_from_slice(exchange.ctx.kv.node_name().as_bytes()));
    let reply = RpbGetServerInfoResp { node, server_version: Some(Bytes::from_static(SERVER_VERSION.as_bytes())) };
    write_message(code::GET_SERVER_INFO_RESP, &reply, &mut exchange.writer.buffer);
    Ok(())
}

impl Request for RpbSetClientIdReq {
    fn access(&self) -> Option<Access<'_>> {
        None
    }
}

impl Immediate for RpbSetClientIdReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        if self.client_id.len() > CLIENT_ID_BYTES_MAX {
            return Err(Refusal::new(format!("A client id has at most {CLIENT_ID_BYTES_MAX} bytes")));
        }
        // This is a copy, because the original would keep the whole read buffer in memory.
        exchange.session.client_id = Bytes::copy_from_slice(&self.client_id);
        write_empty(code::SET_CLIENT_ID_RESP, &mut exchange.writer.buffer);
        Ok(())
    }
}

impl Request for RpbGetBucketKeyPreflistReq {
    fn access(&self) -> Option<Access<'_>> {
        Some(Access::to_bucket(Permission::GET_PREFLIST, self.r#type.as_deref(), &self.bucket))
    }
}

impl Immediate for RpbGetBucketKeyPreflistReq {
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
        let bucket = message::bucket(self.r#type, self.bucket)?;
        let key = message::non_empty("Key", self.key)?;
        let item = |item: ombak_kv::PreflistItem| RpbBucketKeyPreflistItem {
            partition: i64::from(item.partition),
            node: item.node.into(),
            primary: item.primary,
        };
        let preflist = exchange.ctx.kv.preflist(&bucket, &key)?.into_iter().map(item).collect();
        let reply = RpbGetBucketKeyPreflistResp { preflist };
        write_message(code::PREFLIST_RESP, &reply, &mut exchange.writer.buffer);
        Ok(())
    }
}
