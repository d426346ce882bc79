//! Gets, puts and deletes of one connection that run at the same time.
//!
//! A client that sends many requests without waiting should not wait for the disk once per request.
//! Answers are sent in the order of the requests. Two requests for the same key never overlap, so
//! the second one sees the effect of the first.

use super::close_reason::CloseReason;
use super::operation::{Answered, Operation};
use super::writer::Writer;
use crate::memory::Account;
use futures_util::future::{BoxFuture, FutureExt, poll_immediate, ready};
use futures_util::stream::{FuturesOrdered, StreamExt};
use ombak_kv::Kv;
use std::collections::VecDeque;

/// The operations in progress, oldest first.
pub(super) struct Pipeline<'k> {
    kv: &'k Kv,
    account: &'k Account,
    /// This is created when the first operation has to wait. Most requests come alone.
    running: Option<FuturesOrdered<BoxFuture<'k, Answered<'k>>>>,
    /// The fingerprints of the keys in `running`, in the same order.
    keys: VecDeque<u64>,
    running_max: usize,
}

impl<'k> Pipeline<'k> {
    pub(super) fn new(kv: &'k Kv, account: &'k Account, running_max: usize) -> Self {
        Self { kv, account, running: None, keys: VecDeque::new(), running_max: running_max.max(1) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Starts an operation after those that it must not overtake, and writes the answers that are
    /// ready.
    pub(super) async fn push(&mut self, operation: Operation, writer: &mut Writer<'k>) -> Result<(), CloseReason> {
        let key = operation.key_fingerprint();
        while self.keys.len() >= self.running_max || self.keys.contains(&key) {
            self.take_one(writer).await?;
        }
        let mut running = operation.run(self.kv, self.account.lease()).boxed();
        match poll_immediate(&mut running).await {
            Some(answer) if self.is_empty() => answer.write(writer),
            Some(answer) => self.enqueue(key, ready(answer).boxed()),
            None => self.enqueue(key, running),
        }
        while let Some(Some(answer)) = poll_immediate(self.next()).await {
            self.keys.pop_front();
            answer.write(writer);
        }
        Ok(())
    }

    fn enqueue(&mut self, key: u64, running: BoxFuture<'k, Answered<'k>>) {
        self.keys.push_back(key);
        self.running.get_or_insert_default().push_back(running);
    }

    /// Waits for the oldest answer; `None` if no operation is in progress.
    async fn next(&mut self) -> Option<Answered<'k>> {
        match &mut self.running {
            Some(running) => running.next().await,
            None => None,
        }
    }

    /// Waits for all operations in progress and writes their answers.
    pub(super) async fn finish(&mut self, writer: &mut Writer<'k>) -> Result<(), CloseReason> {
        while !self.is_empty() {
            self.take_one(writer).await?;
            writer.flush_if_full().await?;
        }
        Ok(())
    }

    /// Waits for the oldest operation. Answers that are ready are sent first, so that the peer does
    /// not wait for them.
    async fn take_one(&mut self, writer: &mut Writer<'k>) -> Result<(), CloseReason> {
        let answer = match poll_immediate(self.next()).await {
            Some(answer) => answer,
            None => {
                writer.flush().await?;
                self.next().await
            }
        };
        self.keys.pop_front();
        if let Some(answer) = answer {
            answer.write(writer);
        }
        Ok(())
    }
}
