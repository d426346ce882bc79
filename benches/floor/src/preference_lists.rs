//! Which nodes of a cluster hold which keys, asked from the nodes themselves.

use crate::target::Target;
use crate::workload::{KEYS, bucket, key};
use ombak_proto::code;
use ombak_proto::messages::{RpbGetBucketKeyPreflistReq, RpbGetBucketKeyPreflistResp, RpbGetServerInfoResp};
use ombak_proto::reply::{write_empty, write_message};
use prost::Message;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// For each address of the target the keys whose preference list has the node of that address.
pub fn keys_by_address(target: &Target) -> io::Result<Vec<Vec<u64>>> {
    let mut names = Vec::new();
    for &address in target.addresses() {
        names.push(node_name(address)?);
    }
    let mut keys = vec![Vec::new(); names.len()];
    let mut stream = TcpStream::connect(target.address(0))?;
    for number in 0..KEYS {
        let request = RpbGetBucketKeyPreflistReq {
            bucket: bucket(),
            key: key(number).to_vec().into(),
            ..RpbGetBucketKeyPreflistReq::default()
        };
        let mut frame = Vec::new();
        write_message(code::PREFLIST_REQ, &request, &mut frame);
        let body = ask(&mut stream, &frame, code::PREFLIST_RESP)?;
        let reply = RpbGetBucketKeyPreflistResp::decode(&*body).map_err(io::Error::other)?;
        for item in reply.preflist {
            if let Some(at) = names.iter().position(|name| item.node == *name) {
                keys[at].push(number);
            }
        }
    }
    Ok(keys)
}

fn node_name(address: SocketAddr) -> io::Result<bytes::Bytes> {
    let mut frame = Vec::new();
    write_empty(code::GET_SERVER_INFO_REQ, &mut frame);
    let body = ask(&mut TcpStream::connect(address)?, &frame, code::GET_SERVER_INFO_RESP)?;
    let reply = RpbGetServerInfoResp::decode(&*body).map_err(io::Error::other)?;
    reply.node.ok_or_else(|| io::Error::other(format!("{address} does not tell its name")))
}

/// Sends a request and returns the body of its answer.
fn ask(stream: &mut TcpStream, frame: &[u8], code: u8) -> io::Result<Vec<u8>> {
    stream.write_all(frame)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut answer)?;
    match answer.split_first() {
        Some((&found, body)) if found == code => Ok(body.to_vec()),
        _ => Err(io::Error::other(format!("an unexpected answer: {}", answer.escape_ascii()))),
    }
}
