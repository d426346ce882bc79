//! The requests and the answers that they must get: gets and puts of 1 KiB over 10,000 keys.

use bytes::Bytes;
use ombak_proto::code;
use ombak_proto::messages::{RpbContent, RpbGetReq, RpbGetResp, RpbPutReq, RpbPutResp};
use ombak_proto::reply::write_message;
use std::fmt;

pub const KEYS: u64 = 10_000;
pub const VALUE_BYTES: usize = 1024;

/// The frame that answers a get of one object. It has everything that Ombak's answer has: value,
/// content type, vtag, last-modified time and clock.
pub fn get_reply() -> Vec<u8> {
    let content = RpbContent {
        value: vec![b'e'; VALUE_BYTES].into(),
        content_type: Some("application/octet-stream".into()),
        vtag: Some("5bnavV3rrubcxLI8EvFXhB".into()),
        last_mod: Some(1_700_000_000),
        last_mod_usecs: Some(123_456),
        ..RpbContent::default()
    };
    let reply = RpbGetResp { content: vec![content], vclock: Some(vec![b'c'; 20].into()), ..RpbGetResp::default() };
    let mut frame = Vec::new();
    write_message(code::GET_RESP, &reply, &mut frame);
    frame
}

/// The frame that answers a put. It has only a message code.
pub fn put_reply() -> Vec<u8> {
    let mut frame = Vec::new();
    write_message(code::PUT_RESP, &RpbPutResp::default(), &mut frame);
    frame
}

const BUCKET: &str = "floor";

/// The bucket of all keys.
pub fn bucket() -> Bytes {
    Bytes::from_static(BUCKET.as_bytes())
}
const KEY_BYTES: usize = 11;

/// The offset of the value in the answer to a get: frame header, then tag and length of the content
/// and of the value.
const GET_VALUE_AT: usize = 5 + 3 + 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Get,
    Put,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Get => "GET",
            Self::Put => "PUT",
        })
    }
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Riak's frames, from a server that stores nothing and only answers with as many bytes.
    Echo,
    /// Riak's frames.
    Frames,
    /// The protocol of Redis.
    Redis,
}

/// A request whose key is replaced before each use.
pub struct Request {
    protocol: Protocol,
    op: Op,
    bytes: Vec<u8>,
    /// The offsets of the key: in the request itself, and in a value that begins with it.
    key_at: Vec<usize>,
    key: [u8; KEY_BYTES],
}

/// The name of key `n`.
pub fn key(n: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"key00000000";
    for (digit, n) in key[3..].iter_mut().rev().zip(std::iter::successors(Some(n), |n| Some(n / 10))) {
        *digit = b'0' + (n % 10) as u8;
    }
    key
}

/// The value of a key. It begins with the key, so that answers can be checked.
fn value(key: &[u8; KEY_BYTES]) -> Vec<u8> {
    let filler = (0..).map(|i: u32| b'a' + (i.wrapping_mul(2_654_435_761) >> 24) as u8 % 26);
    key.iter().copied().chain(filler).take(VALUE_BYTES).collect()
}

impl Request {
    pub fn new(protocol: Protocol, op: Op) -> Self {
        let key = key(0);
        let bytes = match protocol {
            Protocol::Echo | Protocol::Frames => frame(op, &key),
            Protocol::Redis => redis(op, &key),
        };
        let key_at = (0..=bytes.len() - KEY_BYTES).filter(|&at| bytes[at..at + KEY_BYTES] == key).collect();
        Self { protocol, op, bytes, key_at, key }
    }

    /// The bytes to send for key `n`.
    pub fn for_key(&mut self, n: u64) -> &[u8] {
        self.key = key(n);
        for &at in &self.key_at {
            self.bytes[at..at + KEY_BYTES].copy_from_slice(&self.key);
        }
        &self.bytes
    }

    /// The length of the answer, as far as the bytes that have arrived tell it.
    pub fn answer_bytes(&self, answer: &[u8]) -> Option<usize> {
        match (self.protocol, self.op) {
            (Protocol::Redis, Op::Get) => Some(VALUE_BYTES + b"$1024\r\n\r\n".len()),
            (Protocol::Redis, Op::Put) => Some(b"+OK\r\n".len()),
            _ => answer.first_chunk::<4>().map(|length| 4 + u32::from_be_bytes(*length) as usize),
        }
    }

    /// Whether an answer is right for the last request.
    pub fn is_answer(&self, answer: &[u8]) -> bool {
        let has_key_at = |at: usize| answer.get(at..at + KEY_BYTES) == Some(&self.key[..]);
        match (self.protocol, self.op) {
            (Protocol::Echo, Op::Get) => answer.len() > VALUE_BYTES && answer[4] == code::GET_RESP,
            (Protocol::Frames, Op::Get) => answer[4] == code::GET_RESP && has_key_at(GET_VALUE_AT),
            (Protocol::Echo | Protocol::Frames, Op::Put) => answer == [0, 0, 0, 1, code::PUT_RESP],
            (Protocol::Redis, Op::Get) => answer.starts_with(b"$1024\r\n") && has_key_at(7),
            (Protocol::Redis, Op::Put) => answer == b"+OK\r\n",
        }
    }
}

fn frame(op: Op, key: &[u8; KEY_BYTES]) -> Vec<u8> {
    let (bucket, name) = (Some(bucket()), Some(key.to_vec().into()));
    let mut out = Vec::new();
    match op {
        Op::Get => {
            let request = RpbGetReq { bucket, key: name, ..RpbGetReq::default() };
            write_message(code::GET_REQ, &request, &mut out);
        }
        Op::Put => {
            let content = RpbContent {
                value: value(key).into(),
                content_type: Some("application/octet-stream".into()),
                ..RpbContent::default()
            };
            let request = RpbPutReq { bucket, key: name, content: Some(content), ..RpbPutReq::default() };
            write_message(code::PUT_REQ, &request, &mut out);
        }
    }
    out
}

fn redis(op: Op, key: &[u8; KEY_BYTES]) -> Vec<u8> {
    let mut out = match op {
        Op::Get => b"*2\r\n$3\r\nGET\r\n$11\r\n".to_vec(),
        Op::Put => b"*3\r\n$3\r\nSET\r\n$11\r\n".to_vec(),
    };
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
    if op == Op::Put {
        out.extend_from_slice(b"$1024\r\n");
        out.extend_from_slice(&value(key));
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_exchanged_everywhere() {
        for protocol in [Protocol::Frames, Protocol::Redis] {
            for (op, places) in [(Op::Get, 1), (Op::Put, 2)] {
                let mut request = Request::new(protocol, op);
                let bytes = request.for_key(1234).to_vec();
                assert_eq!(bytes.windows(KEY_BYTES).filter(|w| *w == b"key00001234").count(), places);
                assert!(!bytes.windows(KEY_BYTES).any(|w| w == b"key00000000"));
            }
        }
    }

    #[test]
    fn wrong_answers_are_noticed() {
        let mut get = Request::new(Protocol::Redis, Op::Get);
        get.for_key(7);
        let answer = [&b"$1024\r\n"[..], &value(&key(7)), b"\r\n"].concat();
        assert_eq!(get.answer_bytes(b""), Some(answer.len()));
        assert!(get.is_answer(&answer));
        get.for_key(8);
        assert!(!get.is_answer(&answer));
        let put = Request::new(Protocol::Frames, Op::Put);
        assert!(put.is_answer(&[0, 0, 0, 1, code::PUT_RESP]));
        assert!(!put.is_answer(&[0, 0, 0, 1, code::PING_RESP]));
    }
}
