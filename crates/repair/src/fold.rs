//! Finds the versions of this node that are to be brought to other nodes.

use crate::Host;
use crate::feed_look::has_change_after;
use crate::ranges::Ranges;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, Partition, TRANSFER_BYTES_MAX, UNKNOWN_N, class_of_key};
use ombak_kv::replica::{COMPARE_KEYS_MAX, HeldVersion};
use ombak_runtime::pause_if_due;
use ombak_storage::{Detail, FoldEntry, Scope, Snapshot};
use ombak_types::{Error, ShownKey, VectorClock};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tracing::warn;

/// Bytes that one entry of a question takes beside its key, its clock included, about.
const ENTRY_BYTES: usize = 100;

/// Which versions of a partition a fold finds.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    /// All of classes in which this node is no primary.
    Foreign,
    /// Those of one class, in some ranges or in all.
    Class { n: u32, ranges: Option<Ranges> },
}

/// A version that is to be brought to other nodes.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) held: HeldVersion,
    /// The place of the version in the append order of its store.
    pub(crate) seq: u64,
    /// The bytes of the version, as far as they are known without reading it.
    pub(crate) bytes: u64,
    /// Whether this node can read the version. Otherwise its clock is not known, and only a replica
    /// with the same digest is known to have it.
    pub(crate) is_readable: bool,
}

/// The candidates of one batch, by their n.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) by_n: BTreeMap<u32, Vec<Candidate>>,
}

/// A walk over the versions of a partition, a batch at a time.
pub(crate) struct Fold {
    host: Host,
    pub(crate) partition: Arc<Partition>,
    /// None: the change feed of the store has shown that there is nothing to find.
    snapshot: Option<Box<dyn Snapshot>>,
    which: Which,
    since_seq: u64,
    /// Entries that were found and did not fit into the last batch.
    found: VecDeque<FoldEntry>,
}

/// Whether a key of a partition is to be found.
fn wants<'a>(host: &'a Host, number: u32, which: &'a Which) -> impl Fn(&[u8]) -> bool + Sync + 'a {
    let buckets = host.buckets().snapshot();
    move |key| {
        let n = class_of_key(&buckets, key);
        match which {
            Which::Foreign => {
                host.transfers().foreign.is_foreign(ClassId { partition: number, n: n.unwrap_or(UNKNOWN_N) })
            }
            Which::Class { n: wanted, ranges } => {
                n == Some(*wanted) && ranges.as_ref().is_none_or(|ranges| ranges.include(key))
            }
        }
    }
}

impl Fold {
    /// Begins a walk over the versions that were appended after `since_seq`, and none that is set
    /// aside. It finds every version whose lock was taken before this is called. Blocks.
    pub(crate) fn begin(host: &Host, partition: u32, which: Which, since_seq: u64) -> Result<Self, Error> {
        let partition = host.partitions().find(partition)?;
        partition.await_writers();
        let since_seq = since_seq.max(partition.set_aside_to());
        // A walk visits every entry of the index. The feed has only what was appended since then.
        let is_over = since_seq > 0
            && has_change_after(&**partition.store(), since_seq, wants(host, partition.number(), &which))
                == Some(false);
        // The look had a view of its own. Both at once would take two of the few that a store has.
        let snapshot = if is_over { None } else { Some(partition.snapshot()?) };
        let found = VecDeque::new();
        Ok(Self { host: host.clone(), partition, snapshot, which, since_seq, found })
    }

    /// The next batch; `None` at the end. Blocks.
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        if self.found.is_empty() {
            self.found = self.visit()?.into();
        }
        if self.found.is_empty() {
            return Ok(None);
        }
        let (mut batch, mut bytes) = (Batch::default(), 0);
        while let Some(entry) = self.found.front() {
            let entry_bytes = entry.key.len() + ENTRY_BYTES;
            if bytes > 0 && bytes + entry_bytes > TRANSFER_BYTES_MAX {
                break;
            }
            bytes += entry_bytes;
            if let Some(entry) = self.found.pop_front() {
                self.add(&entry, &mut batch);
                pause_if_due();
            }
        }
        Ok(Some(batch))
    }

    /// Takes the next step of the walk on a thread for walks.
    pub(crate) async fn next_batch(mut self) -> Result<(Self, Option<Batch>), Error> {
        let transfers = self.host.transfers().clone();
        let step = move || {
            let batch = self.next();
            (self, batch)
        };
        let (fold, batch) = transfers.fold_pool.run(step).await?;
        Ok((fold, batch?))
    }

    fn visit(&mut self) -> Result<Vec<FoldEntry>, Error> {
        let Some(snapshot) = &mut self.snapshot else { return Ok(Vec::new()) };
        let is_of_class = wants(&self.host, self.partition.number(), &self.which);
        let scope = Scope { class: Some(&is_of_class), since_seq: self.since_seq, ..Scope::KEPT };
        Ok(snapshot.next(&scope, Detail::Keys, COMPARE_KEYS_MAX)?)
    }

    /// Adds the present version of a key.
    fn add(&self, entry: &FoldEntry, batch: &mut Batch) {
        let n = class_of_key(&self.host.buckets().snapshot(), &entry.key).unwrap_or(UNKNOWN_N);
        let head = self.partition.read_head(&entry.key, Access::Blocking);
        let decoded = head.and_then(|found| {
            let Some(found) = found else { return Ok(None) };
            let object = self.partition.decode(&entry.key, &found)?;
            Ok(Some((object.clock, found)))
        });
        match decoded {
            // It was removed since the snapshot.
            Ok(None) => {}
            Ok(Some((clock, found))) => {
                let bytes = self.partition.store().record_bytes(&entry.key).ok().flatten();
                let bytes = bytes.unwrap_or((entry.key.len() + found.head.len()) as u64);
                let held = HeldVersion { key: entry.key.clone(), digest: found.digest, clock };
                batch.by_n.entry(n).or_default().push(Candidate { held, seq: found.seq, bytes, is_readable: true });
            }
            Err(why) => {
                let partition = self.partition.number();
                let (at, what) = (ShownKey::of(&entry.key), "a version that others may need is unreadable");
                warn!(partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, ?why, "{what}");
                let held = HeldVersion { key: entry.key.clone(), digest: entry.digest, clock: VectorClock::new() };
                batch.by_n.entry(n).or_default().push(Candidate { held, seq: entry.seq, bytes: 0, is_readable: false });
            }
        }
    }
}
