//! The store of one home partition and its floor of epochs.

use super::event_ids::{ActorSource, Ticket};
use super::locked::Locked;
use super::locks::KeyLocks;
use super::{Access, Failure};
use crate::names::Printable;
use ombak_storage::{Backend, StorageError, Stored};
use ombak_types::stored_object::{Corrupt, SingleSibling};
use ombak_types::{Error, Object, stored_object};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::error;

/// One home partition on this node.
pub struct Partition {
    number: u32,
    store: Arc<dyn Backend>,
    locks: KeyLocks,
    pub(super) actors: Arc<ActorSource>,
    floor: AtomicU64,
}

impl Partition {
    /// Creates partition `number` over its store.
    pub fn new(number: u32, store: Arc<dyn Backend>, actors: Arc<ActorSource>) -> Self {
        let (locks, floor) = (KeyLocks::new(), AtomicU64::new(0));
        Self { number, store, locks, actors, floor }
    }

    /// The partition's number, 0 … ring_size−1.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The partition's store.
    pub fn store(&self) -> &Arc<dyn Backend> {
        &self.store
    }

    /// The current version in its stored form, also if it has expired: its clock says what it has
    /// replaced. The coordinator hides expired values from clients.
    pub fn read(&self, key: &[u8], access: Access) -> Result<Option<Stored>, Failure> {
        if let Access::BlockingUpTo(bytes_max) = access {
            self.check_size(key, bytes_max)?;
        }
        let found = self.store.get_with_expired(key, access.read_mode()).map_err(|e| self.unreadable(key, e))?;
        found.map(|found| access.check(&found).map(|()| found)).transpose()
    }

    /// The head of the current version in its stored form, also if it has expired.
    pub fn read_head(&self, key: &[u8], access: Access) -> Result<Option<Stored>, Failure> {
        let found = self.store.head_with_expired(key, access.read_mode()).map_err(|e| self.unreadable(key, e))?;
        found.map(|found| access.check(&found).map(|()| found)).transpose()
    }

    /// Checks that the current version has at most `bytes_max`, as far as the store knows without
    /// reading it.
    fn check_size(&self, key: &[u8], bytes_max: u64) -> Result<(), Failure> {
        let size = self.store.record_bytes(key).map_err(|e| self.unreadable(key, e))?;
        size.filter(|&bytes| bytes > bytes_max).map_or(Ok(()), |bytes| Err(Failure::TooLarge(bytes)))
    }

    /// The current version with its values, also if it has expired.
    pub fn get(&self, key: &[u8], access: Access) -> Result<Option<Object>, Failure> {
        self.read(key, access)?.map(|found| self.decode(key, &found)).transpose()
    }

    /// The current version with empty values, also if it has expired.
    pub fn head(&self, key: &[u8], access: Access) -> Result<Option<Object>, Failure> {
        Ok(self.head_with_seq(key, access)?.map(|(head, _)| head))
    }

    /// [`Self::head`] together with the version's position in the store's append order.
    fn head_with_seq(&self, key: &[u8], access: Access) -> Result<Option<(Object, u64)>, Failure> {
        let Some(found) = self.read_head(key, access)? else { return Ok(None) };
        Ok(Some((self.decode(key, &found)?, found.seq)))
    }

    /// Decodes a version that [`Self::read`] returned.
    pub fn decode(&self, key: &[u8], found: &Stored) -> Result<Object, Failure> {
        stored_object::decode(&found.head, found.body.as_ref()).map_err(|corrupt| self.corrupt(key, corrupt))
    }

    /// Returns a version that [`Self::read`] returned as [`SingleSibling`], if it is one sibling in its
    /// plain form.
    pub fn single(&self, key: &[u8], found: &Stored) -> Result<Option<SingleSibling>, Failure> {
        let Some(body) = &found.body else { return Ok(None) };
        SingleSibling::read(&found.head, body).map_err(|corrupt| self.corrupt(key, corrupt))
    }

    /// Locks the key and reads the head of its current version. An unreadable version is an error,
    /// not an absent key: nothing may overwrite it, and no epoch issued so far is continued
    /// (docs/design/replication.md §13).
    pub fn lock<'a>(&'a self, key: &'a [u8], access: Access) -> Result<Locked<'a>, Failure> {
        self.await_store(access)?;
        let guard = self.locks.lock(key, access).ok_or(Failure::WouldBlock)?;
        let local = self.head_with_seq(key, access).inspect_err(|e| self.note_unreadable(e))?;
        Ok(Locked::new(self, key, guard, local, access))
    }

    /// Applies back-pressure: while the store is behind with its work, writers must help it to
    /// catch up. Otherwise its memory would grow without bound.
    fn await_store(&self, access: Access) -> Result<(), Failure> {
        if !self.store.is_behind() {
            return Ok(());
        }
        match access {
            Access::Inline => Err(Failure::WouldBlock),
            Access::Blocking | Access::BlockingUpTo(_) => Ok(self.store.catch_up()?),
        }
    }

    pub(super) fn note_unreadable(&self, failure: &Failure) {
        if matches!(failure, Failure::Refused(_)) {
            self.raise_floor();
        }
    }

    #[cold]
    fn unreadable(&self, key: &[u8], error: StorageError) -> Failure {
        let failure = Failure::from(error);
        if let Failure::Refused(why @ Error::Storage(_)) = &failure {
            error!(partition = self.number, key = %Printable(key), %why, "read failed");
        }
        failure
    }

    #[cold]
    fn corrupt(&self, key: &[u8], corrupt: Corrupt) -> Failure {
        error!(partition = self.number, key = %Printable(key), %corrupt, "read failed");
        Failure::Refused(corrupt.into())
    }

    /// Epochs that were issued before this ticket are never continued.
    pub(super) fn floor(&self) -> Ticket {
        self.floor.load(Ordering::SeqCst)
    }

    /// Raises the floor: no epoch issued so far is continued from now on.
    pub fn raise_floor(&self) {
        self.floor.fetch_max(self.actors.next_ticket(), Ordering::SeqCst);
    }

    /// Closes the store. Closing a closed store succeeds.
    pub fn close(&self) -> Result<(), StorageError> {
        match self.store.close() {
            Ok(()) | Err(StorageError::Closed) => Ok(()),
            Err(e) => {
                error!(partition = self.number, error = %e, "the store does not close");
                Err(e)
            }
        }
    }
}
