//! One build of an index, which follows the stores.

use super::association::Association;
use super::documents::documents_of;
use super::places::{PartitionPlace, Places};
use super::waiting::Waiting;
use crate::catalog::IndexRecord;
use crate::counts::SearchCounts;
use ombak_kv::hooks::{Anew, AskedHome, ChangeConsumer, FeedProgress, FollowedStore};
use ombak_runtime::do_behind;
use ombak_search::schema::Schema;
use ombak_search_index::{Index, IndexChange, IndexError};
use ombak_storage::{Change, Detail, FeedCursor};
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
    /// A file that is there as long as nobody removes the files.
    sign: PathBuf,
    counts: Arc<SearchCounts>,
    state: Mutex<State>,
    /// The buckets that the index is to have, if they have changed. Whoever changes them never
    /// waits for a write.
    wanted: Mutex<Option<Association>>,
    /// What queries look at. It is never locked while something is written.
    standing: Mutex<Standing>,
    /// Whether its files are damaged.
    is_damaged: AtomicBool,
    /// Whether a query has met what may be damage.
    is_doubtful: AtomicBool,
}

struct State {
    places: Places,
    /// The buckets that the index has now.
    current: Association,
    /// The partitions in which it is told everything, and why.
    told: BTreeMap<u32, Telling>,
    /// What is not in the index yet.
    waiting: Waiting,
    kept_at: Option<Instant>,
    /// Whether changes were lost that had been taken, because they could not be written. They must
    /// be told again before anything is kept.
    has_lost_changes: bool,
    /// Whether its files are removed, or will be: nothing is written any more.
    is_closed: bool,
}

/// What queries look at.
#[derive(Default)]
struct Standing {
    /// For each partition of which the index has everything, a moment before which everything is in
    /// it.
    fresh: BTreeMap<u32, Instant>,
    /// The partitions of which it is told everything, and those of which it was told everything
    /// that is not written yet.
    being_told: BTreeSet<u32>,
    /// Why its last write failed, if it did.
    last_error: Option<String>,
}

/// What ends when an index was told everything of a partition.
struct Telling {
    /// The buckets that the index had at some time since it began, those at its beginning first.
    associations: Vec<Association>,
    /// Whether documents of earlier generations go.
    is_anew: bool,
    /// Up to which seq versions were set aside when it began.
    set_aside_to: u64,
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

impl State {
    fn take_association(&mut self, association: Association) {
        // From now on changes are told apart by the new one, so each partition may have its keys.
        for place in self.places.partitions.values_mut() {
            if !place.covered.contains(&association) {
                place.covered.push(association.clone());
            }
        }
        for telling in self.told.values_mut() {
            if !telling.associations.contains(&association) {
                telling.associations.push(association.clone());
            }
        }
        self.current = association;
    }

    /// The partitions of which the index may lack something, as long as nothing waits.
    fn lacking(&self) -> BTreeSet<u32> {
        let lacks = |(number, place): &(&u32, &PartitionPlace)| {
            self.told.contains_key(number) || place.covered != [self.current.clone()]
        };
        self.places.partitions.iter().filter(lacks).map(|(number, _)| *number).collect()
    }
}

impl IndexFollower {
    pub(super) fn new(
        name: String,
        (record, schema): (Arc<IndexRecord>, Arc<Schema>),
        (index, sign): (Index, PathBuf),
        counts: Arc<SearchCounts>,
    ) -> Self {
        let state = State {
            places: Places::default(),
            current: Association::default(),
            told: BTreeMap::new(),
            waiting: Waiting::default(),
            kept_at: None,
            has_lost_changes: false,
            is_closed: false,
        };
        Self {
            name,
            record,
            schema,
            index,
            sign,
            counts,
            state: Mutex::new(state),
            wanted: Mutex::default(),
            standing: Mutex::default(),
            is_damaged: AtomicBool::new(false),
            is_doubtful: AtomicBool::new(false),
        }
    }

    /// Notes what a query has met. A query must not be able to have an index removed, so its files
    /// are checked first.
    pub(crate) fn met_in_query(&self, error: &IndexError) {
        if matches!(error, IndexError::Damaged(_) | IndexError::OtherSchema(_)) {
            self.is_doubtful.store(true, Ordering::Relaxed);
        }
    }

    /// Nothing is written from now on. Waits for a write and for merges that are under way.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.index.close_writer();
    }

    /// Checks the files, if a query has met what may be damage. Reads all of them.
    fn check_if_doubtful(&self) {
        if self.is_doubtful.swap(false, Ordering::Relaxed)
            && let Err(error) = self.index.check()
        {
            self.met(&error);
        }
    }

    /// Notes what went wrong with its files.
    fn met(&self, error: &IndexError) {
        let is_gone = matches!(self.sign.try_exists(), Ok(false));
        if is_gone || matches!(error, IndexError::Damaged(_) | IndexError::OtherSchema(_)) {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
    }

    /// Whether its files are damaged. Then they are removed, and the index is built anew.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Whether it has everything of these partitions.
    pub(super) fn has_everything_of(&self, partitions: impl IntoIterator<Item = u32>) -> bool {
        let standing = self.standing.lock();
        partitions.into_iter().all(|partition| standing.fresh.contains_key(&partition))
    }

    /// Sets the buckets that the index has from the next change on.
    pub(super) fn set_association(&self, association: Association) {
        *self.wanted.lock() = Some(association);
    }

    /// Locks the state, and takes the buckets that the index has from now on.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        let wanted = self.wanted.lock().take();
        if let Some(association) = wanted.filter(|association| *association != state.current) {
            state.take_association(association);
        }
        state
    }

    /// Whether an index is told everything of one of these partitions, because buckets have come
    /// into it. Then it may lack some of them.
    pub(crate) fn is_told_of(&self, partitions: &[u32]) -> bool {
        let standing = self.standing.lock();
        partitions.iter().any(|partition| standing.being_told.contains(partition))
    }

    /// Those of the home partitions of which everything is in the index that was stored before a
    /// moment, and everything that came before the node was full.
    pub(crate) fn fresh_partitions(&self, homes: &[AskedHome], before: Instant) -> Vec<u32> {
        let standing = self.standing.lock();
        let is_fresh = |asked: &&AskedHome| {
            let since = standing.fresh.get(&asked.home);
            since.is_some_and(|since| *since >= before && *since >= asked.full_since)
        };
        homes.iter().filter(is_fresh).map(|asked| asked.home).collect()
    }

    /// How it stands.
    pub(crate) fn status(&self) -> FollowerStatus {
        let standing = self.standing.lock();
        let (fresh, being_told) = (standing.fresh.clone(), standing.being_told.clone());
        FollowerStatus { fresh, being_told, last_error: standing.last_error.clone() }
    }

    /// Makes the documents of the keys of changes, where the index has them or may have had them.
    fn take(&self, store: &dyn FollowedStore, changes: &[Change], is_known: IsKnown) -> Result<(), Error> {
        let partition = store.number();
        for change in changes {
            let key = change.key();
            let (is_covered, may_be_there, has_it, generation) = {
                let state = self.state();
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
                    let unread = documents.iter().filter(|document| document.has_error).count();
                    self.counts.not_read(unread as u64);
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
        state.waiting.push(change);
        if state.waiting.is_full() {
            // The cursors are those of the end of the last turn: what follows them is told again
            // after a crash. Generations and associations are those of what is written.
            let places = text_of(&state.places)?;
            self.write(&mut state, &places)?;
        }
        Ok(())
    }

    fn write(&self, state: &mut State, place: &str) -> Result<(), Error> {
        if state.is_closed {
            return Err(Error::Stopping);
        }
        if state.has_lost_changes {
            // A later write would make durable what follows them, and they were never told again.
            return Err(self.lacks_changes());
        }
        let changes = state.waiting.take();
        // A sweep is no change of an object, and each partition has one when an index begins.
        let is_of_object = |change: &&IndexChange| !matches!(change, IndexChange::Sweep { .. });
        let change_count = changes.iter().filter(is_of_object).count() as u64;
        // The work of a write grows with texts of clients. Their requests come first.
        let written = do_behind(|| self.index.write(changes, place)).map_err(IndexError::from).flatten();
        match &written {
            Ok(written) => self.counts.written(change_count, written.refused_count, written.took),
            Err(error) => {
                self.counts.not_written(change_count);
                self.met(error);
                state.has_lost_changes = true;
            }
        }
        self.standing.lock().last_error = written.as_ref().err().map(ToString::to_string);
        written.map(|_| ()).map_err(failed)
    }

    fn lacks_changes(&self) -> Error {
        let why = self.standing.lock().last_error.clone().unwrap_or_default();
        StoreFailure::new(StoreFailureKind::Io, format!("a search index lacks changes: {why}")).into()
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
        let mut state = self.state();
        let read = Places::read(&self.index.place());
        // Without its places, nothing is known of the documents that are there.
        self.is_damaged.fetch_or(read.is_none(), Ordering::Relaxed);
        let before = std::mem::replace(&mut state.places, read.unwrap_or_default());
        let current = state.current.clone();
        for (number, place) in &mut state.places.partitions {
            // A generation is never used twice: documents of it may be there.
            let used = before.partitions.get(number).map_or(0, |before| before.generation);
            place.generation = place.generation.max(used);
            if !place.covered.contains(&current) {
                place.covered.push(current.clone());
            }
        }
        state.told.clear();
        self.standing.lock().being_told = state.lacking();
        state.waiting = Waiting::default();
        state.has_lost_changes = false;
        let places = state.places.partitions.iter();
        Some(places.filter_map(|(number, place)| Some((*number, place.cursor.clone()?))).collect())
    }

    fn wants_everything(&self, store: &dyn FollowedStore) -> bool {
        let state = self.state();
        let place = state.places.partitions.get(&store.number());
        let lacks_something = |place: &PartitionPlace| {
            place.covered != [state.current.clone()] || place.set_aside_to != store.set_aside_to()
        };
        place.is_some_and(lacks_something)
    }

    fn begin_anew(&self, store: &dyn FollowedStore, why: Anew) -> Result<(), Error> {
        let mut state = self.state();
        let association = state.current.clone();
        let set_aside_to = store.set_aside_to();
        let known = state.places.partitions.get(&store.number());
        // Versions that are set aside, or come back, do not differ from others by their buckets.
        let is_anew = why != Anew::Wanted || known.is_none_or(|place| place.set_aside_to != set_aside_to);
        {
            let mut standing = self.standing.lock();
            standing.being_told.insert(store.number());
            if is_anew {
                standing.fresh.remove(&store.number());
            }
        }
        let place = state.places.partitions.entry(store.number()).or_default();
        if is_anew {
            place.cursor = None;
            place.generation += 1;
            // Until it was told everything it wants to be, whatever happens in between.
            place.set_aside_to = u64::MAX;
        }
        if !place.covered.contains(&association) {
            place.covered.push(association.clone());
        }
        let telling = Telling { associations: vec![association], is_anew, set_aside_to };
        state.told.insert(store.number(), telling);
        Ok(())
    }

    fn apply(&self, store: &dyn FollowedStore, changes: &[Change]) -> Result<(), Error> {
        self.take(store, changes, IsKnown::Not)
    }

    fn apply_everything(&self, store: &dyn FollowedStore, versions: &[Change]) -> Result<(), Error> {
        let is_anew = self.state().told.get(&store.number()).is_none_or(|telling| telling.is_anew);
        self.take(store, versions, if is_anew { IsKnown::Not } else { IsKnown::IfCovered })
    }

    fn told_everything(&self, store: &dyn FollowedStore) -> Result<(), Error> {
        let partition = store.number();
        let sweep = {
            let mut state = self.state();
            let Some(telling) = state.told.remove(&partition) else { return Ok(()) };
            let Telling { associations, is_anew, set_aside_to } = telling;
            let place = state.places.partitions.entry(partition).or_default();
            // Keys of a bucket that left meanwhile were removed, also if it has come back.
            place.covered = associations;
            place.set_aside_to = set_aside_to;
            is_anew.then_some(IndexChange::Sweep { partition, generation: place.generation })
        };
        sweep.map_or(Ok(()), |sweep| self.wait(sweep))
    }

    fn keep(&self, FeedProgress { places, up_to_date }: &FeedProgress<'_>) -> Result<(), Error> {
        self.check_if_doubtful();
        let mut state = self.state();
        if state.has_lost_changes {
            return Err(self.lacks_changes());
        }
        let now = up_to_date.values().max().copied();
        for (number, place) in &mut state.places.partitions {
            place.cursor = places.get(number).cloned();
        }
        let text = text_of(&state.places)?;
        let is_idle = state.waiting.is_empty();
        let is_due = state.kept_at.zip(now).is_none_or(|(kept_at, now)| now >= kept_at + IDLE_KEEP_INTERVAL);
        if !is_idle || is_due && self.index.place() != text {
            self.write(&mut state, &text)?;
            state.kept_at = now;
        }
        let fresh = up_to_date.iter().filter(|(number, _)| places.contains_key(number));
        let mut standing = self.standing.lock();
        standing.fresh.extend(fresh.map(|(number, since)| (*number, *since)));
        standing.being_told = state.lacking();
        Ok(())
    }
}

fn text_of(places: &Places) -> Result<String, Error> {
    places.to_text().map_err(|why| StoreFailure::internal(why.to_string()).into())
}

fn failed(error: IndexError) -> Error {
    StoreFailure::new(StoreFailureKind::Io, format!("a search index cannot be written: {error}")).into()
}
