//! What was transferred since the start, for the statistics.

use crate::TransferKind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers of transfers that only rise.
#[derive(Debug, Default)]
pub(crate) struct TransferCounts {
    hinted: Sent,
    repair: Sent,
    exchange: Sent,
    received: Sent,
    rejected: AtomicU64,
    timeouts: AtomicU64,
}

#[derive(Debug, Default)]
struct Sent {
    objects: AtomicU64,
    bytes: AtomicU64,
}

impl Sent {
    fn add(&self, objects: u64, bytes: u64) {
        self.objects.fetch_add(objects, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        (self.objects.load(Relaxed), self.bytes.load(Relaxed))
    }
}

impl TransferCounts {
    /// Copies that another node took.
    pub(crate) fn pushed(&self, kind: TransferKind, objects: u64, bytes: u64) {
        let sent = match kind {
            TransferKind::HandBack => &self.hinted,
            TransferKind::Exchange => &self.exchange,
            TransferKind::Owed | TransferKind::Fill | TransferKind::Ownership => &self.repair,
        };
        sent.add(objects, bytes);
    }

    /// Copies of another node that were stored here.
    pub(crate) fn received(&self, objects: u64, bytes: u64) {
        self.received.add(objects, bytes);
    }

    /// A push of another node that was refused, because this node takes none.
    pub(crate) fn rejected(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }

    /// A question to another node that was not answered in time.
    pub(crate) fn timed_out(&self) {
        self.timeouts.fetch_add(1, Relaxed);
    }

    /// Objects and bytes that were handed back to the nodes to which they belong.
    pub(crate) fn hinted(&self) -> (u64, u64) {
        self.hinted.get()
    }

    /// Objects and bytes that went to primaries that lacked them.
    pub(crate) fn repair(&self) -> (u64, u64) {
        self.repair.get()
    }

    /// Objects and bytes that exchanges have brought to other primaries.
    pub(crate) fn exchanged(&self) -> (u64, u64) {
        self.exchange.get()
    }

    /// Objects and bytes that other nodes pushed to this one.
    pub(crate) fn taken(&self) -> (u64, u64) {
        self.received.get()
    }

    pub(crate) fn rejections(&self) -> u64 {
        self.rejected.load(Relaxed)
    }

    pub(crate) fn timeouts(&self) -> u64 {
        self.timeouts.load(Relaxed)
    }
}
