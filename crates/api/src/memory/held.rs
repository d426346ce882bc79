//! The memory that answering a request needs.

use super::account::{Account, Kept, Lease};
use futures_util::future::{BoxFuture, FutureExt, ready};
use ombak_kv::MemoryReservation;
use ombak_types::Error;
use std::sync::Arc;

/// The memory that one part of answering a request holds. Dropping it gives the memory back.
#[derive(Default)]
pub struct Held<'a> {
    /// `None` in unit tests, where requests come without a connection.
    lease: Option<Lease<'a>>,
}

impl<'a> Held<'a> {
    /// Creates it from a lease.
    pub fn new(lease: Option<Lease<'a>>) -> Self {
        Self { lease }
    }

    /// Changes the number of bytes. If the number grows, this may wait for memory. An error refuses
    /// the request.
    pub async fn resize(&mut self, bytes: u64) -> Result<(), Error> {
        match &mut self.lease {
            Some(lease) => lease.resize(bytes).await.map_err(|_| Error::Overload),
            None => Ok(()),
        }
    }

    /// Takes over the memory of another part.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.lease, other.lease) {
            (Some(lease), Some(other)) => lease.merge(other),
            (None, other) => self.lease = other,
            (Some(_), None) => {}
        }
    }

    /// Keeps the memory for a part of the answer that is sent after the request was worked on.
    pub fn keep_beyond(self, account: &Arc<Account>) -> Option<Kept> {
        self.lease.map(|lease| lease.keep_beyond(account))
    }

    /// Keeps the memory until the answer has been sent.
    pub fn keep_for_answer(self) {
        if let Some(lease) = self.lease {
            lease.keep_for_answer();
        }
    }
}

impl MemoryReservation for Held<'_> {
    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<(), Error>> {
        match &mut self.lease {
            Some(lease) => lease.reserve(bytes),
            None => ready(Ok(())).boxed(),
        }
    }
}
