//! One build of an index, which follows the stores.

use super::association::Association;
use super::documents::documents_of;
use super::places::Places;
use crate::catalog::IndexRecord;
use ombak_kv::hooks::{Anew, ChangeConsumer, FeedProgress, FollowedStore};
use ombak_search::schema::Schema;
use ombak_search::values::Value;
use ombak_search_index::{Index, IndexChange, IndexError};
use ombak_storage::{Change, Detail, FeedCursor};
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// About how many bytes of documents wait in memory. More are written before the end of a round.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// How many changes wait in memory.
const WAITING_MAX: usize = 20_000;
/// Places without changes of documents are kept so often. A restart tells again what followed.
const IDLE_KEEP_INTERVAL: Duration = Duration::from_secs(5);

/// One build of an index; see the module of the folder.
pub(crate) struct IndexFollower {
    /// The name of the index.
    pub(crate) name: String,
    /// What this is a build of.
    pub(crate) record: Arc<IndexRecord>,
    /// Its schema.
    pub(crate) schema: Arc<Schema>,
    /// The files.
    pub(crate) index: Index,
    state: Mutex<State>,
    /// Whether its files are damaged.
    is_damaged: AtomicBool,
}

struct State {
    places: Places,
    /// The buckets that the index has now.
    current: Association,
    /// The partitions in which it is told everything, and why.
    told: BTreeMap<u32, Telling>,
    /// What is not in the index yet.
    waiting: Vec<IndexChange>,
    waiting_bytes: usize,
    /// For each partition of which the index has everything, a moment before which everything is in
    /// it.
    fresh: BTreeMap<u32, Instant>,
    kept_at: Option<Instant>,
    last_error: Option<String>,
    /// Whether changes were lost that had been taken, because they could not be written. They must
    /// be told again before anything is kept.
    has_lost_changes: bool,
}

/// What ends when an index was told everything of a partition.
struct Telling {
    /// The buckets that the index had when it began.
    association: Association,
    /// Whether documents of earlier generations go.
    is_anew: bool,
}

/// How a build of an index stands.
#[derive(Clone, Debug)]
pub(crate) struct FollowerStatus {
    /// For each partition of which it has everything: since when something may be missing.
    pub(crate) fresh: BTreeMap<u32, Instant>,
    /// The partitions of which it is told everything.
    pub(crate) being_told: BTreeSet<u32>,
    /// Why its last commit failed, if it did.
    pub(crate) last_error: Option<String>,
}

impl IndexFollower {
    pub(super) fn new(name: String, record: Arc<IndexRecord>, schema: Arc<Schema>, index: Index) -> Self {
        let state = State {
            places: Places::default(),
            current: Association::default(),
            told: BTreeMap::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            fresh: BTreeMap::new(),
            kept_at: None,
            last_error: None,
            has_lost_changes: false,
        };
        Self { name, record, schema, index, state: Mutex::new(state), is_damaged: AtomicBool::new(false) }
    }

    /// Notes what went wrong with its files.
    pub(crate) fn met(&self, error: &IndexError) {
        if matches!(error, IndexError::Damaged(_) | IndexError::OtherSchema(_)) {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
    }

    /// Whether its files are damaged. Then they are removed, and the index is built anew.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Whether it has everything of these partitions.
    pub(super) fn has_everything_of(&self, partitions: impl IntoIterator<Item = u32>) -> bool {
        let state = self.state.lock();
        partitions.into_iter().all(|partition| state.fresh.contains_key(&partition))
    }

    /// Takes the buckets that the index has from now on.
    pub(super) fn set_association(&self, association: Association) {
        let mut state = self.state.lock();
        if state.current == association {
            return;
        }
        // From now on changes are told apart by the new one, so each partition may have its keys.
        for place in state.places.partitions.values_mut() {
            if !place.covered.contains(&association) {
                place.covered.push(association.clone());
            }
        }
        state.current = association;
    }

    /// Those of the partitions of which everything is in the index that was stored before a moment.
    pub(crate) fn fresh_partitions(&self, partitions: &[u32], before: Instant) -> Vec<u32> {
        let state = self.state.lock();
        let is_fresh = |partition: &&u32| state.fresh.get(partition).is_some_and(|since| *since >= before);
        partitions.iter().filter(is_fresh).copied().collect()
    }

    /// How it stands.
    pub(crate) fn status(&self) -> FollowerStatus {
        let state = self.state.lock();
        FollowerStatus {
            fresh: state.fresh.clone(),
            being_told: state.told.keys().copied().collect(),
            last_error: state.last_error.clone(),
        }
    }

    /// Makes the documents of the keys of changes, where the index has them or may have had them.
    fn take(&self, store: &dyn FollowedStore, changes: &[Change], is_known: IsKnown) -> Result<(), Error> {
        let partition = store.number();
        for change in changes {
            let key = change.key();
            let (is_covered, may_be_there, has_it, generation) = {
                let state = self.state.lock();
                let place = state.places.partitions.get(&partition);
                let covered = place.map(|place| &place.covered[..]).unwrap_or_default();
                let may_be_there = covered.iter().any(|association| association.covers(key));
                let has_it = !covered.is_empty() && covered.iter().all(|association| association.covers(key));
                let generation = place.map_or(0, |place| place.generation);
                (state.current.covers(key), may_be_there, has_it, generation)
            };
            let is_told_in_vain = is_known == IsKnown::IfCovered && has_it && is_covered;
            if is_told_in_vain || !is_covered && !may_be_there {
                continue;
            }
            let present = if is_covered { store.present(key)? } else { None };
            let change = match present {
                Some(present) => {
                    let documents = documents_of(&self.schema, (partition, key), &present);
                    IndexChange::Put { partition, generation, key: key.to_vec(), documents }
                }
                None => IndexChange::Remove { key: key.to_vec() },
            };
            self.wait(change)?;
        }
        Ok(())
    }

    fn wait(&self, change: IndexChange) -> Result<(), Error> {
        let mut state = self.state.lock();
        state.waiting_bytes += bytes_of(&change);
        state.waiting.push(change);
        if state.waiting_bytes > WAITING_BYTES_MAX || state.waiting.len() > WAITING_MAX {
            // The places stay: what follows them is told again after a crash.
            let place = self.index.place();
            self.write(&mut state, &place)?;
        }
        Ok(())
    }

    fn write(&self, state: &mut State, place: &str) -> Result<(), Error> {
        let waiting = std::mem::take(&mut state.waiting);
        state.waiting_bytes = 0;
        let written = self.index.write(waiting, place);
        if let Err(error) = &written {
            self.met(error);
            state.has_lost_changes = true;
        }
        state.last_error = written.as_ref().err().map(ToString::to_string);
        written.map_err(failed)
    }
}

/// Whether versions that come are known to be in the index if it had their buckets all the time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsKnown {
    IfCovered,
    Not,
}

impl ChangeConsumer for IndexFollower {
    fn name(&self) -> &str {
        &self.name
    }

    fn detail(&self) -> Detail {
        Detail::Keys
    }

    fn kept_places(&self) -> Option<BTreeMap<u32, FeedCursor>> {
        let mut state = self.state.lock();
        state.places = Places::read(&self.index.place()).unwrap_or_default();
        let current = state.current.clone();
        for place in state.places.partitions.values_mut() {
            if !place.covered.contains(&current) {
                place.covered.push(current.clone());
            }
        }
        state.told.clear();
        state.waiting.clear();
        state.waiting_bytes = 0;
        state.has_lost_changes = false;
        let places = state.places.partitions.iter();
        Some(places.filter_map(|(number, place)| Some((*number, place.cursor.clone()?))).collect())
    }

    fn wants_everything(&self, partition: u32) -> bool {
        let state = self.state.lock();
        let place = state.places.partitions.get(&partition);
        place.is_some_and(|place| place.covered != [state.current.clone()])
    }

    fn begin_anew(&self, store: &dyn FollowedStore, why: Anew) -> Result<(), Error> {
        let mut state = self.state.lock();
        let association = state.current.clone();
        let is_anew = why != Anew::Wanted;
        if is_anew {
            state.fresh.remove(&store.number());
        }
        let place = state.places.partitions.entry(store.number()).or_default();
        if is_anew {
            place.cursor = None;
            place.generation += 1;
        }
        if !place.covered.contains(&association) {
            place.covered.push(association.clone());
        }
        state.told.insert(store.number(), Telling { association, is_anew });
        Ok(())
    }

    fn apply(&self, store: &dyn FollowedStore, changes: &[Change]) -> Result<(), Error> {
        self.take(store, changes, IsKnown::Not)
    }

    fn apply_everything(&self, store: &dyn FollowedStore, versions: &[Change]) -> Result<(), Error> {
        let is_anew = self.state.lock().told.get(&store.number()).is_none_or(|telling| telling.is_anew);
        self.take(store, versions, if is_anew { IsKnown::Not } else { IsKnown::IfCovered })
    }

    fn told_everything(&self, store: &dyn FollowedStore) -> Result<(), Error> {
        let partition = store.number();
        let sweep = {
            let mut state = self.state.lock();
            let Some(Telling { association, is_anew }) = state.told.remove(&partition) else { return Ok(()) };
            let current = state.current.clone();
            let place = state.places.partitions.entry(partition).or_default();
            place.covered = vec![association];
            if !place.covered.contains(&current) {
                place.covered.push(current);
            }
            is_anew.then_some(IndexChange::Sweep { partition, generation: place.generation })
        };
        sweep.map_or(Ok(()), |sweep| self.wait(sweep))
    }

    fn keep(&self, FeedProgress { places, up_to_date }: &FeedProgress<'_>) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.has_lost_changes {
            let why = state.last_error.clone().unwrap_or_default();
            return Err(StoreFailure::new(StoreFailureKind::Io, format!("a search index lacks changes: {why}")).into());
        }
        let now = up_to_date.values().max().copied();
        for (number, place) in &mut state.places.partitions {
            place.cursor = places.get(number).cloned();
        }
        let text = state.places.to_text().map_err(|why| StoreFailure::internal(why.to_string()))?;
        let is_idle = state.waiting.is_empty();
        let is_due = state.kept_at.zip(now).is_none_or(|(kept_at, now)| now >= kept_at + IDLE_KEEP_INTERVAL);
        let is_complete_before = state.fresh.len();
        if !is_idle || is_due && self.index.place() != text {
            self.write(&mut state, &text)?;
            state.kept_at = now;
        }
        let fresh = up_to_date.iter().filter(|(number, _)| places.contains_key(number));
        let fresh: Vec<(u32, Instant)> = fresh.map(|(number, since)| (*number, *since)).collect();
        state.fresh.extend(fresh);
        if state.fresh.len() > is_complete_before {
            let (index, partitions) = (&self.name, state.fresh.len());
            tracing::debug!(index, build = self.record.build, partitions, "an index has more partitions");
        }
        Ok(())
    }
}

/// About how many bytes a change takes in memory.
fn bytes_of(change: &IndexChange) -> usize {
    match change {
        IndexChange::Put { key, documents, .. } => {
            let of_document = |document: &ombak_search_index::IndexDocument| {
                let values = document.fields.values.iter();
                256 + values.map(|(name, value)| 64 + name.len() + bytes_of_value(value)).sum::<usize>()
            };
            key.len() + documents.iter().map(of_document).sum::<usize>()
        }
        IndexChange::Remove { key } => 64 + key.len(),
        _ => 64,
    }
}

fn bytes_of_value(value: &Value) -> usize {
    match value {
        Value::String(text) | Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

fn failed(error: IndexError) -> Error {
    StoreFailure::new(StoreFailureKind::Io, format!("a search index cannot be written: {error}")).into()
}
