//! The course of a listing, a query or a job, which ends when its client has everything or leaves.

use super::request_kind::RequestKind;
use super::slow_log::SlowLog;
use super::slow_request::SlowRequest;
use super::spent::{Spent, micros_between};
use bytes::Bytes;
use ombak_types::{Bucket, Error};
use std::fmt::Display;
use std::time::Instant;

/// What a request with many results does, and what it has spent so far.
pub(crate) struct Course {
    kind: RequestKind,
    bucket: Bucket,
    /// The name of the index, if there is one.
    index: Bytes,
    began: Instant,
    pub(crate) spent: Spent,
    /// Since when the client has not asked for more.
    rests_since: Option<Instant>,
    end: End,
}

/// How a request with many results has ended.
enum End {
    /// It has not, or its client did not wait for the end.
    Abandoned,
    Complete,
    Failed(Error),
}

impl Course {
    /// A request that begins now.
    pub(crate) fn begin(kind: RequestKind, bucket: Bucket, index: Bytes, began: Instant) -> Self {
        Self { kind, bucket, index, began, spent: Spent::default(), rests_since: None, end: End::Abandoned }
    }

    /// The client asks for more.
    pub(crate) fn goes_on(&mut self, now: Instant) {
        if let Some(since) = self.rests_since.take() {
            self.spent.client_us += micros_between(since, now);
        }
    }

    /// The client has got something, or there is nothing more.
    pub(crate) fn rests<T>(&mut self, now: Instant, got: &Option<Result<T, Error>>) {
        match got {
            Some(Ok(_)) => self.rests_since = Some(now),
            Some(Err(error)) => self.end = End::Failed(error.clone()),
            None => self.end = End::Complete,
        }
    }

    /// Logs the request if it was slow. It ends now.
    pub(crate) fn end(&mut self, log: &SlowLog, now: Instant) {
        let took_us = micros_between(self.began, now);
        if !log.is_slow(took_us) {
            return;
        }
        self.goes_on(now);
        let result: &dyn Display = match &self.end {
            End::Abandoned => &"abandoned",
            End::Complete => &"ok",
            End::Failed(error) => error,
        };
        let (kind, bucket, key, spent) = (self.kind, &self.bucket, &self.index, self.spent);
        log.note(&SlowRequest { kind, bucket, key, took_us, spent, result });
    }
}
