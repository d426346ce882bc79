//! What is counted for each peer.

use crate::error::PeerError;
use crate::mux::FrameCounts;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of one peer. They only rise.
#[derive(Debug, Default)]
pub(crate) struct PeerCounters {
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
    frames_received: AtomicU64,
    frames_sent: AtomicU64,
    connections: AtomicU64,
    served: AtomicU64,
    calls: AtomicU64,
    unreachable: AtomicU64,
    overload: AtomicU64,
    refused: AtomicU64,
    timeout: AtomicU64,
    closed: AtomicU64,
    answer_lost: AtomicU64,
}

/// The counters of one peer at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// Bytes that were received, handshakes excepted.
    pub bytes_received: u64,
    /// Bytes that were sent, handshakes excepted.
    pub bytes_sent: u64,
    /// Frames that were received, goodbyes excepted.
    pub frames_received: u64,
    /// Frames that were sent, goodbyes excepted.
    pub frames_sent: u64,
    /// Connections that were established, in both directions.
    pub connections: u64,
    /// Requests of the peer that were handed to a service.
    pub served: u64,
    /// Own requests.
    pub calls: u64,
    /// Own requests that were provably not delivered.
    pub unreachable: u64,
    /// Own requests that a full queue refused, here or there.
    pub overload: u64,
    /// Own requests that the peer refused for another reason.
    pub refused: u64,
    /// Own requests whose deadline passed.
    pub timeout: u64,
    /// Own requests whose connection ended.
    pub closed: u64,
    /// Own requests whose answer was lost.
    pub answer_lost: u64,
}

impl PeerCounters {
    pub(crate) fn received(&self, bytes: usize) {
        self.bytes_received.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes_sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn frames(&self, frames: FrameCounts) {
        self.frames_received.fetch_add(frames.received, Relaxed);
        self.frames_sent.fetch_add(frames.written, Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn served(&self) {
        self.served.fetch_add(1, Relaxed);
    }

    pub(crate) fn called<T>(&self, result: &Result<T, PeerError>) {
        self.calls.fetch_add(1, Relaxed);
        self.ended(result);
    }

    /// Counts how a request ended, without counting the request.
    pub(crate) fn ended<T>(&self, result: &Result<T, PeerError>) {
        let counter = match result {
            Ok(_) => return,
            Err(PeerError::Unreachable | PeerError::VersionMismatch) => &self.unreachable,
            Err(PeerError::Overload) => &self.overload,
            Err(PeerError::Refused { .. }) => &self.refused,
            Err(PeerError::Timeout) => &self.timeout,
            Err(PeerError::Closed) => &self.closed,
            Err(PeerError::AnswerLost) => &self.answer_lost,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn counts(&self) -> PeerCounts {
        PeerCounts {
            bytes_received: self.bytes_received.load(Relaxed),
            bytes_sent: self.bytes_sent.load(Relaxed),
            frames_received: self.frames_received.load(Relaxed),
            frames_sent: self.frames_sent.load(Relaxed),
            connections: self.connections.load(Relaxed),
            served: self.served.load(Relaxed),
            calls: self.calls.load(Relaxed),
            unreachable: self.unreachable.load(Relaxed),
            overload: self.overload.load(Relaxed),
            refused: self.refused.load(Relaxed),
            timeout: self.timeout.load(Relaxed),
            closed: self.closed.load(Relaxed),
            answer_lost: self.answer_lost.load(Relaxed),
        }
    }
}
