//! The log of slow requests, for the rest of the program.

use crate::engine::Kv;
use crate::slow::{RequestKind, SlowRequest, Spent, micros_between};
use bytes::Bytes;
use ombak_types::Bucket;
use std::time::{Duration, Instant};

/// A MapReduce job that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedJob<'a> {
    /// The bucket of its inputs, or the one of its first input; `None` if there is none.
    pub bucket: Option<&'a Bucket>,
    /// When it began.
    pub began: Instant,
    /// How long it waited for nodes that work on its parts, this one among them.
    pub parts_time: Duration,
    /// How long its client did not ask for more results.
    pub client_time: Duration,
    /// The number of parts that nodes were asked for, and of their answers.
    pub parts: (u32, u32),
    /// How it ended, in a word.
    pub result: &'static str,
}

impl Kv {
    /// Changes how long a request takes at least to be logged as slow. `None` and zero: none is.
    pub fn set_slow_request(&self, limit: Option<Duration>) {
        self.engine.slow.set_limit(limit);
    }

    /// Logs a job that was slow. The engine knows of the other requests itself.
    pub fn note_job(&self, job: &EndedJob<'_>) {
        let took_us = micros_between(job.began, self.now());
        if !self.engine.slow.is_slow(took_us) {
            return;
        }
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let spent = Spent {
            replicas_us: micros(job.parts_time),
            client_us: micros(job.client_time),
            asked: job.parts.0,
            answered: job.parts.1,
            ..Spent::default()
        };
        let none = Bucket { bucket_type: Bytes::new(), name: Bytes::new() };
        let (kind, bucket) = (RequestKind::Job, job.bucket.unwrap_or(&none));
        self.engine.slow.note(&SlowRequest { kind, bucket, key: &[], took_us, spent, result: &job.result });
    }
}
