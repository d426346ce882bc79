//! One connection to a server.

use crate::error::ClientError;
use crate::listing::NameStream;
use bytes::{Bytes, BytesMut};
use ombak_proto::code;
use ombak_proto::frame::{FRAME_BYTES_MAX_DEFAULT, Frame, make_room, next_frame};
use ombak_proto::messages::{
    RpbContent, RpbDelReq, RpbErrorResp, RpbGetReq, RpbGetResp, RpbGetServerInfoResp, RpbListBucketsReq,
    RpbListKeysReq, RpbPutReq, RpbPutResp,
};
use ombak_proto::reply::{write_empty, write_message};
use ombak_types::Bucket;
use prost::Message;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::time::timeout;

/// The default limit for an answer. It is longer than a server's own limit of 60 s.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(75);

const READ_BYTES: usize = 16 << 10;

/// One connection to a server. It serves one caller at a time.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    inbox: BytesMut,
    outbox: Vec<u8>,
    timeout: Duration,
    /// The number of answers that have not arrived yet.
    expected: usize,
    /// Whether an exchange has begun and not ended.
    busy: bool,
}

/// The identity of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// The node's name.
    pub node: String,
    /// The version of the interface, for example `3.2.3`.
    pub version: String,
}

/// The content of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The siblings. There is one unless writes were concurrent. A tombstone among them has
    /// `deleted` set.
    pub siblings: Vec<RpbContent>,
    /// The vector clock of what was read. Pass it to a put or delete that replaces these siblings.
    /// Its bytes are opaque.
    pub vclock: Bytes,
}

impl Client {
    /// Connects to a server. `address` is `HOST:PORT` or anything else that resolves.
    pub async fn connect(address: impl ToSocketAddrs + std::fmt::Display) -> Result<Self, ClientError> {
        let connect = |source| ClientError::Connect { address: address.to_string(), source };
        let stream = timeout(TIMEOUT_DEFAULT, TcpStream::connect(&address))
            .await
            .map_err(|_| ClientError::Timeout(TIMEOUT_DEFAULT))?
            .map_err(connect)?;
        stream.set_nodelay(true)?;
        let (inbox, outbox) = (BytesMut::with_capacity(READ_BYTES), Vec::new());
        Ok(Self { stream, inbox, outbox, timeout: TIMEOUT_DEFAULT, expected: 0, busy: false })
    }

    /// Sets how long each answer may take.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Checks that the server answers.
    pub async fn ping(&mut self) -> Result<(), ClientError> {
        self.call_empty(code::PING_REQ, code::PING_RESP).await.map(drop)
    }

    /// Asks for the node's name and version.
    pub async fn server_info(&mut self) -> Result<ServerInfo, ClientError> {
        let body = self.call_empty(code::GET_SERVER_INFO_REQ, code::GET_SERVER_INFO_RESP).await?;
        let info = RpbGetServerInfoResp::decode(body)?;
        let text = |bytes: Option<Bytes>| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        Ok(ServerInfo { node: text(info.node), version: text(info.server_version) })
    }

    /// Reads a key; `None` if it does not exist.
    pub async fn get(&mut self, bucket: &Bucket, key: &[u8]) -> Result<Option<Found>, ClientError> {
        let (bucket_type, name) = parts(bucket);
        let key = Some(Bytes::copy_from_slice(key));
        let reply =
            self.get_with(&RpbGetReq { bucket: Some(name), key, r#type: bucket_type, ..Default::default() }).await?;
        let found = Found { siblings: reply.content, vclock: reply.vclock.unwrap_or_default() };
        Ok(Some(found).filter(|found| !found.siblings.is_empty()))
    }

    /// Reads a key with all options of the protocol. A reply without content means that the key
    /// does not exist.
    pub async fn get_with(&mut self, request: &RpbGetReq) -> Result<RpbGetResp, ClientError> {
        self.call(code::GET_REQ, request, code::GET_RESP).await
    }

    /// Writes a key and returns it. Without a key, the server chooses one. `vclock` is the vector
    /// clock of the get whose siblings this value replaces.
    pub async fn put(
        &mut self,
        bucket: &Bucket,
        key: Option<&[u8]>,
        content: RpbContent,
        vclock: Option<Bytes>,
    ) -> Result<Bytes, ClientError> {
        let (bucket_type, name) = parts(bucket);
        let key = key.map(Bytes::copy_from_slice);
        let request = RpbPutReq {
            bucket: Some(name),
            key: key.clone(),
            vclock,
            content: Some(content),
            r#type: bucket_type,
            ..Default::default()
        };
        let reply = self.put_with(&request).await?;
        Ok(reply.key.or(key).unwrap_or_default())
    }

    /// Writes a key with all options of the protocol.
    pub async fn put_with(&mut self, request: &RpbPutReq) -> Result<RpbPutResp, ClientError> {
        self.call(code::PUT_REQ, request, code::PUT_RESP).await
    }

    /// Deletes a key. A missing key is not an error. With `vclock`, only the siblings that were
    /// read with it are deleted.
    pub async fn delete(&mut self, bucket: &Bucket, key: &[u8], vclock: Option<Bytes>) -> Result<(), ClientError> {
        let (bucket_type, name) = parts(bucket);
        let key = Some(Bytes::copy_from_slice(key));
        let request = RpbDelReq { bucket: Some(name), key, vclock, r#type: bucket_type, ..Default::default() };
        self.exchange(code::DEL_REQ, &request, code::DEL_RESP).await.map(drop)
    }

    /// Lists the keys of a bucket, in no particular order. This is expensive, because the server
    /// visits every key that it has.
    pub async fn list_keys(&mut self, bucket: &Bucket) -> Result<NameStream<'_>, ClientError> {
        let (bucket_type, bucket) = parts(bucket);
        self.begin()?;
        self.send(code::LIST_KEYS_REQ, &RpbListKeysReq { bucket, timeout: None, r#type: bucket_type });
        Ok(NameStream::keys(self))
    }

    /// Lists the buckets of a type that hold at least one key. This is as expensive as
    /// [`Client::list_keys`].
    pub async fn list_buckets(&mut self, bucket_type: &[u8]) -> Result<NameStream<'_>, ClientError> {
        self.begin()?;
        let bucket_type = Some(Bytes::copy_from_slice(bucket_type));
        self.send(
            code::LIST_BUCKETS_REQ,
            &RpbListBucketsReq { timeout: None, stream: Some(true), r#type: bucket_type },
        );
        Ok(NameStream::buckets(self))
    }

    /// Writes a request to the output buffer without sending it, so that many requests can be sent
    /// at once. Each request must be followed, in order, by one call of [`Client::receive`] (a
    /// listing by as many calls as it has parts).
    pub fn send<M: Message>(&mut self, code: u8, request: &M) {
        self.expected += 1;
        write_message(code, request, &mut self.outbox);
    }

    /// Sends the requests that [`Client::send`] has collected and waits for the next answer, which
    /// must have this message code. Returns the body of the answer.
    pub async fn receive(&mut self, code: u8) -> Result<Bytes, ClientError> {
        self.expected = self.expected.saturating_sub(1);
        self.receive_part(code).await
    }

    /// Sends a request and waits for its answer.
    pub async fn call<Q, A>(&mut self, code: u8, request: &Q, answer: u8) -> Result<A, ClientError>
    where
        Q: Message,
        A: Message + Default,
    {
        Ok(A::decode(self.exchange(code, request, answer).await?)?)
    }

    async fn exchange<Q: Message>(&mut self, code: u8, request: &Q, answer: u8) -> Result<Bytes, ClientError> {
        self.begin()?;
        self.send(code, request);
        self.receive(answer).await
    }

    async fn call_empty(&mut self, code: u8, answer: u8) -> Result<Bytes, ClientError> {
        self.begin()?;
        self.expected += 1;
        write_empty(code, &mut self.outbox);
        self.receive(answer).await
    }

    /// Checks that all earlier exchanges have ended, as a new exchange requires.
    fn begin(&self) -> Result<(), ClientError> {
        if self.busy || self.expected > 0 { Err(ClientError::OutOfStep) } else { Ok(()) }
    }

    /// Receives the next frame. The connection is marked as unusable during the wait, and stays so
    /// if the caller stops waiting.
    pub(crate) async fn receive_part(&mut self, expected: u8) -> Result<Bytes, ClientError> {
        if std::mem::replace(&mut self.busy, true) {
            return Err(ClientError::OutOfStep);
        }
        let limit = self.timeout;
        let frame = timeout(limit, self.transfer()).await.map_err(|_| ClientError::Timeout(limit))??;
        self.busy = false;
        match frame.code {
            code if code == expected => Ok(frame.body),
            code::ERROR_RESP => {
                let error = RpbErrorResp::decode(frame.body)?;
                Err(ClientError::Server(String::from_utf8_lossy(&error.errmsg).into_owned()))
            }
            got => {
                self.busy = true;
                Err(ClientError::UnexpectedCode { expected, got })
            }
        }
    }

    async fn transfer(&mut self) -> Result<Frame, ClientError> {
        if !self.outbox.is_empty() {
            self.stream.write_all(&self.outbox).await?;
            self.outbox.clear();
        }
        loop {
            if let Some(frame) = next_frame(&mut self.inbox, FRAME_BYTES_MAX_DEFAULT.saturating_mul(4))? {
                return Ok(frame);
            }
            make_room(&mut self.inbox, READ_BYTES);
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(ClientError::Closed);
            }
        }
    }

    pub(crate) fn listing_left(&mut self) {
        self.busy = true;
    }

    pub(crate) fn listing_ended(&mut self) {
        self.expected = self.expected.saturating_sub(1);
    }
}

/// The bucket type and the name. The default type is left out, because older servers know it only
/// by its absence.
fn parts(bucket: &Bucket) -> (Option<Bytes>, Bytes) {
    let bucket_type = Some(bucket.bucket_type.clone()).filter(|_| !bucket.is_default_type());
    (bucket_type, bucket.name.clone())
}
