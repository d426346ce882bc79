//! Streams the names of a listing.

use crate::client::Client;
use crate::error::ClientError;
use bytes::Bytes;
use ombak_proto::code;
use ombak_proto::messages::{RpbListBucketsResp, RpbListKeysResp};
use prost::Message;

/// Keys or buckets in batches. If this is dropped before its end, the connection cannot be used any
/// more.
#[derive(Debug)]
pub struct NameStream<'c> {
    client: &'c mut Client,
    code: u8,
    ended: bool,
}

impl<'c> NameStream<'c> {
    pub(crate) fn keys(client: &'c mut Client) -> Self {
        Self { client, code: code::LIST_KEYS_RESP, ended: false }
    }

    pub(crate) fn buckets(client: &'c mut Client) -> Self {
        Self { client, code: code::LIST_BUCKETS_RESP, ended: false }
    }

    /// The next names; `None` after the last ones. An error ends the listing.
    pub async fn next(&mut self) -> Result<Option<Vec<Bytes>>, ClientError> {
        while !self.ended {
            let (names, done) = match self.next_part().await {
                Ok(part) => part,
                Err(error) => {
                    self.end();
                    return Err(error);
                }
            };
            if done {
                self.end();
            }
            if !names.is_empty() {
                return Ok(Some(names));
            }
        }
        Ok(None)
    }

    /// All names at once.
    pub async fn collect(mut self) -> Result<Vec<Bytes>, ClientError> {
        let mut all = Vec::new();
        while let Some(names) = self.next().await? {
            all.extend(names);
        }
        Ok(all)
    }

    async fn next_part(&mut self) -> Result<(Vec<Bytes>, bool), ClientError> {
        let body = self.client.receive_part(self.code).await?;
        Ok(if self.code == code::LIST_KEYS_RESP {
            let part = RpbListKeysResp::decode(body)?;
            (part.keys, part.done.unwrap_or(false))
        } else {
            let part = RpbListBucketsResp::decode(body)?;
            (part.buckets, part.done.unwrap_or(false))
        })
    }

    fn end(&mut self) {
        self.ended = true;
        self.client.listing_ended();
    }
}

impl Drop for NameStream<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.client.listing_left();
        }
    }
}
