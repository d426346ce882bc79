//! One worker of the embedded engine.

use super::engine::Engine;
use crate::config::ConfigError;
use crate::drivers::network::unix_now;
use crate::drivers::{DONE, Outcome, Reason};
use crate::generators::Draw;
use crate::term::Term;
use bytes::Bytes;
use ombak_storage::{Backend, ReadMode, StorageError, Write};
use ombak_types::names::encode_bucket_prefix;
use ombak_types::stored_object::encode_head;
use ombak_types::{Actor, Bucket, Object, Sibling, VectorClock};
use std::sync::Arc;

/// The operations that the engine supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmbeddedOperation {
    Get,
    Put,
    Delete,
}

impl EmbeddedOperation {
    pub(super) fn parse(term: &Term) -> Result<Self, ConfigError> {
        match term {
            Term::Atom(name) if name == "get" => Ok(Self::Get),
            Term::Atom(name) if name == "put" => Ok(Self::Put),
            Term::Atom(name) if name == "delete" => Ok(Self::Delete),
            other => Err(ConfigError::setting(
                "operations",
                format!("embedded engines do not support {other}; they support get, put and delete"),
            )),
        }
    }
}

/// One worker of the embedded engine.
#[derive(Debug)]
pub struct EmbeddedWorker {
    engine: Arc<Engine>,
    operations: Vec<EmbeddedOperation>,
    /// The storage key of the current operation: the encoded bucket, which does not change,
    /// followed by the key.
    key: Vec<u8>,
    prefix_len: usize,
    /// The clock and metadata that a node would store for a new object. Only the length of these
    /// bytes matters, not their content.
    head: Vec<u8>,
    written: u64,
}

impl EmbeddedWorker {
    pub(super) fn new(engine: Arc<Engine>, bucket: &str, operations: &[EmbeddedOperation]) -> Self {
        let mut key = Vec::with_capacity(256);
        encode_bucket_prefix(&Bucket::untyped(bucket.to_owned()), &mut key);
        let prefix_len = key.len();
        Self { engine, operations: operations.to_vec(), key, prefix_len, head: head(), written: 0 }
    }

    pub(in crate::drivers) async fn run(&mut self, operation: usize, draw: &mut Draw) -> Outcome {
        let Some(operation) = self.operations.get(operation).copied() else { return Outcome::Stop };
        self.key.truncate(self.prefix_len);
        let done = match operation {
            EmbeddedOperation::Put => {
                let Ok((key, value)) = draw.pair() else { return Outcome::Stop };
                self.key.extend_from_slice(key);
                self.put(value)
            }
            EmbeddedOperation::Get | EmbeddedOperation::Delete => {
                let Ok(key) = draw.key() else { return Outcome::Stop };
                self.key.extend_from_slice(key);
                self.store().and_then(|store| match operation {
                    EmbeddedOperation::Get => store.get(&self.key, ReadMode::Blocking).map(drop),
                    _ => store.delete(&self.key).map(drop),
                })
            }
        };
        match done {
            Ok(()) => DONE,
            Err(error) => Outcome::Failed(reason(&error)),
        }
    }

    fn put(&mut self, value: &[u8]) -> Result<(), StorageError> {
        self.written += 1;
        let tstamp_secs = u32::try_from(unix_now().secs()).unwrap_or(u32::MAX);
        let (key, head, digest) = (&self.key, &self.head, self.written << 1);
        let store = self.store()?;
        if store.is_behind() {
            store.catch_up()?;
        }
        let appended =
            store.put(&Write { key, head, body: &[value], digest, tstamp_secs, expires_secs: 0, has_terms: false })?;
        if store.sync_each_write() { store.sync(appended.seq) } else { Ok(()) }
    }

    fn store(&self) -> Result<&Arc<dyn Backend>, StorageError> {
        self.engine.store(&self.key).ok_or(StorageError::Closed)
    }
}

fn head() -> Vec<u8> {
    let (at, actor) = (unix_now(), Actor::new(&[1; 12]));
    let mut clock = VectorClock::new();
    let dot = clock.increment(&actor, at);
    let mut sibling = Sibling::new(Bytes::new());
    sibling.meta.content_type = Some(Bytes::from_static(b"application/octet-stream"));
    sibling.meta.vtag = Some(Bytes::from_static(b"0123456789abcdefghijkl"));
    sibling.meta.last_modified = Some(at);
    sibling.meta.dot = Some(dot);
    let mut head = Vec::new();
    encode_head(&Object { clock, siblings: vec![sibling] }, &mut head);
    head
}

/// The reason under which an error is counted.
fn reason(error: &StorageError) -> Reason {
    match error {
        StorageError::DiskFull { .. } => Reason::Borrowed("disk_full"),
        StorageError::Damaged { .. } => Reason::Borrowed("damaged"),
        StorageError::Closed => Reason::Borrowed("closed"),
        StorageError::TooLarge(_) => Reason::Borrowed("too_large"),
        StorageError::Poisoned(_) => Reason::Borrowed("poisoned"),
        other => Reason::Owned(other.to_string()),
    }
}
