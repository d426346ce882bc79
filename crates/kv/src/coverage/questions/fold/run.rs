//! The node that asks: it merges what the home partitions have gathered, or hands the keys over to
//! a consumer as they come.

use super::handed_over::HandedOver;
use super::layout::GatheredPiece;
use crate::coverage::homes_run::{HomesMerge, HomesRun};
use crate::coverage::planner::Planner;
use crate::folds::{FOUND_MAX, FoldProgress, FoldRange, FoldResult, FoldWants, FoundKey, GatheredEntry, KeyConsumer};
use crate::replica::CoverageQuestion;
use crate::requests::MemoryReservation;
use ombak_types::{Error, StoreFailure};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many keys of home partitions that are under way wait, and about how many bytes, before a
/// consumer gets them.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: u64 = 4 << 20;

/// Folds over all nodes. What they send is reserved as it comes.
pub(crate) async fn fold(
    planner: Planner,
    (range, wants): (Arc<FoldRange>, FoldWants),
    classes: &[u32],
    room: &mut dyn MemoryReservation,
    progress: &FoldProgress,
) -> Result<FoldResult, Error> {
    let merge = FoldMerge::new(FoldResult::empty(&wants), None, progress);
    let mut run = FoldRun::new(planner, (range, wants), classes, merge)?;
    let mut received_bytes = 0;
    while let Some(bytes) = run.homes.next_batch().await? {
        received_bytes += bytes;
        room.reserve(received_bytes).await?;
    }
    run.finish()
}

/// Folds over all nodes for keys, and gives them to a consumer in pieces. Returns their number.
/// What waits, and what is remembered of home partitions that are under way, is reserved.
pub(crate) async fn fold_keys(
    planner: Planner,
    (range, wants): (Arc<FoldRange>, FoldWants),
    classes: &[u32],
    (room, progress): (&mut dyn MemoryReservation, &FoldProgress),
    consumer: &mut dyn KeyConsumer,
) -> Result<u64, Error> {
    let handed = Some(HandedOver::default());
    let merge = FoldMerge::new(FoldResult::empty(&wants), handed, progress);
    let mut run = FoldRun::new(planner, (range, wants), classes, merge)?;
    let (mut keys, mut reserved_bytes) = (0, 0);
    while let Some(_bytes) = run.homes.next_batch().await? {
        let (found, held_bytes) = run.take_keys()?;
        // A reservation is never given back before the end.
        reserved_bytes = held_bytes.max(reserved_bytes);
        room.reserve(reserved_bytes).await?;
        keys += found.len() as u64;
        consumer.take(found).await?;
    }
    let last = run.finish()?.keys;
    keys += last.len() as u64;
    consumer.take(last).await?;
    Ok(keys)
}

/// A fold that is under way.
struct FoldRun {
    homes: HomesRun<GatheredPiece, u64>,
    merge: Arc<Mutex<FoldMerge>>,
}

impl FoldRun {
    fn new(
        planner: Planner,
        (range, wants): (Arc<FoldRange>, FoldWants),
        classes: &[u32],
        merge: FoldMerge,
    ) -> Result<Self, Error> {
        merge.progress.begins(planner.homes());
        let merge = Arc::new(Mutex::new(merge));
        let shared = Box::new(SharedMerge(merge.clone()));
        let homes = HomesRun::new(planner, CoverageQuestion::fold(range, wants), classes, shared)?;
        Ok(Self { homes, merge })
    }

    /// Takes the keys that are to be handed over. Returns also how many bytes are held beside them.
    fn take_keys(&self) -> Result<(Vec<FoundKey>, u64), Error> {
        let mut merge = self.merge.lock();
        let found = match &mut merge.result {
            Ok(result) => result.take_keys(),
            Err(error) => return Err(error.clone()),
        };
        let remembered_bytes = merge.handed.as_ref().map_or(0, HandedOver::bytes);
        Ok((found, merge.waiting_bytes + remembered_bytes))
    }

    fn finish(self) -> Result<FoldResult, Error> {
        drop(self.homes);
        let merge = Arc::into_inner(self.merge);
        merge.ok_or_else(|| StoreFailure::internal("a fold goes on after its end"))?.into_inner().finish()
    }
}

/// The merging part, which the fold takes back at its end.
struct SharedMerge(Arc<Mutex<FoldMerge>>);

/// What the home partitions have gathered that are done, and what the others have sent so far.
struct FoldMerge {
    /// With a consumer, what it gets next.
    result: Result<FoldResult, Error>,
    under_way: BTreeMap<u32, Vec<GatheredEntry>>,
    /// How many keys and buckets the others have sent, and about how many bytes.
    waiting: usize,
    waiting_bytes: u64,
    /// What a consumer has got of home partitions that are under way. `None` without a consumer.
    handed: Option<HandedOver>,
    progress: FoldProgress,
}

impl FoldMerge {
    fn new(result: FoldResult, handed: Option<HandedOver>, progress: &FoldProgress) -> Self {
        let progress = progress.clone();
        Self { result: Ok(result), under_way: BTreeMap::new(), waiting: 0, waiting_bytes: 0, handed, progress }
    }

    fn forget(&mut self, home: u32) -> Vec<GatheredEntry> {
        let entries = self.under_way.remove(&home).unwrap_or_default();
        self.waiting -= found_in(&entries);
        self.waiting_bytes -= bytes_of(&entries);
        entries
    }

    fn add(&mut self, entries: Vec<GatheredEntry>) {
        if let Ok(result) = &mut self.result
            && let Err(error) = result.add(entries)
        {
            self.result = Err(error);
        }
    }

    /// Lets the consumer have what waits, if that has become much. Otherwise a home partition could
    /// not have more keys than fit into the memory.
    fn hand_over(&mut self) {
        if self.waiting <= WAITING_MAX && self.waiting_bytes <= WAITING_BYTES_MAX {
            return;
        }
        let homes: Vec<u32> = self.under_way.keys().copied().collect();
        for home in homes {
            let entries = self.forget(home);
            if let Some(handed) = &mut self.handed {
                keys_of(&entries).for_each(|found| handed.note(home, found));
            }
            self.add(entries);
        }
    }

    fn finish(self) -> Result<FoldResult, Error> {
        let mut result = self.result?;
        result.finish();
        Ok(result)
    }
}

fn keys_of(entries: &[GatheredEntry]) -> impl Iterator<Item = &FoundKey> {
    entries.iter().filter_map(|entry| if let GatheredEntry::Key(found) = entry { Some(found) } else { None })
}

/// How many keys and buckets are among these. A tree and statistics have a size of their own.
fn found_in(entries: &[GatheredEntry]) -> usize {
    entries.iter().filter(|entry| matches!(entry, GatheredEntry::Key(_) | GatheredEntry::Bucket(_))).count()
}

/// About how many bytes these take.
fn bytes_of(entries: &[GatheredEntry]) -> u64 {
    entries.iter().map(|entry| entry.bytes() as u64).sum()
}

impl HomesMerge for SharedMerge {
    type Piece = GatheredPiece;
    /// About how many bytes have come.
    type Batch = u64;

    fn needs_every_home(&self) -> bool {
        true
    }

    fn take(&mut self, GatheredPiece { home, mut entries }: GatheredPiece) -> Result<Option<u64>, Error> {
        let mut merge = self.0.lock();
        if let Err(error) = &merge.result {
            return Err(error.clone());
        }
        if let Some(handed) = &merge.handed {
            entries.retain(|entry| !matches!(entry, GatheredEntry::Key(found) if handed.has(home, found)));
        }
        let bytes = bytes_of(&entries);
        merge.waiting += found_in(&entries);
        merge.waiting_bytes += bytes;
        merge.under_way.entry(home).or_default().extend(entries);
        if merge.handed.is_some() {
            merge.hand_over();
        } else if merge.waiting > FOUND_MAX {
            return Err(Error::TooManyFound(FOUND_MAX));
        }
        Ok(Some(bytes))
    }

    fn home_done(&mut self, home: u32) {
        let mut merge = self.0.lock();
        let entries = merge.forget(home);
        merge.add(entries);
        if let Some(handed) = &mut merge.handed {
            handed.home_done(home);
        }
        merge.progress.home_done();
    }

    /// What came of the home partition does not count, unless a consumer has it. Then it is left
    /// out when it comes again.
    fn is_asked_again(&mut self, home: u32) -> bool {
        let mut merge = self.0.lock();
        merge.forget(home);
        merge.handed.as_mut().is_none_or(|handed| handed.is_asked_again(home))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folds::Found;
    use ombak_types::Bucket;

    fn merge(handed: Option<HandedOver>) -> SharedMerge {
        let result = FoldResult::empty(&FoldWants::Living);
        SharedMerge(Arc::new(Mutex::new(FoldMerge::new(result, handed, &FoldProgress::default()))))
    }

    fn piece(home: u32, numbers: std::ops::Range<usize>) -> GatheredPiece {
        let bucket = Bucket::untyped("b");
        let key = |number: usize| {
            let (bucket, key) = (bucket.clone(), format!("k{number}").into());
            GatheredEntry::Key(FoundKey { bucket, key, found: Found::Number(1) })
        };
        GatheredPiece { home, entries: numbers.map(key).collect() }
    }

    fn taken(merge: &SharedMerge) -> usize {
        merge.0.lock().result.as_mut().map_or(0, |result| result.take_keys().len())
    }

    #[test]
    fn a_consumer_gets_more_keys_of_a_home_partition_than_an_answer_holds() {
        let (mut with, mut without) = (merge(Some(HandedOver::default())), merge(None));
        let (mut keys, mut refused) = (0, None);
        for first in (0..FOUND_MAX + 20_000).step_by(10_000) {
            with.take(piece(3, first..first + 10_000)).unwrap();
            assert!(with.0.lock().waiting <= WAITING_MAX, "what waits is bounded");
            keys += taken(&with);
            refused = refused.or(without.take(piece(3, first..first + 10_000)).err());
        }
        with.home_done(3);
        assert_eq!(keys + taken(&with), FOUND_MAX + 20_000);
        assert_eq!(refused, Some(Error::TooManyFound(FOUND_MAX)), "an answer has a limit");
    }

    #[test]
    fn a_consumer_gets_no_key_twice_when_another_replica_begins_again() {
        let mut merge = merge(Some(HandedOver::default()));
        merge.take(piece(3, 0..WAITING_MAX + 1)).unwrap();
        let mut keys = taken(&merge);
        assert_eq!(keys, WAITING_MAX + 1);
        // This waits when the answer breaks off, so it does not count.
        merge.take(piece(3, WAITING_MAX + 1..WAITING_MAX + 100)).unwrap();
        assert!(merge.is_asked_again(3));
        for first in (0..WAITING_MAX + 200).step_by(100) {
            merge.take(piece(3, first..(first + 100).min(WAITING_MAX + 200))).unwrap();
            keys += taken(&merge);
        }
        merge.home_done(3);
        assert_eq!(keys + taken(&merge), WAITING_MAX + 200);
    }

    #[test]
    fn long_keys_are_handed_over_earlier() {
        let mut merge = merge(Some(HandedOver::default()));
        let key = bytes::Bytes::from(vec![b'k'; WAITING_BYTES_MAX as usize]);
        let found = FoundKey { bucket: Bucket::untyped("b"), key, found: Found::Number(1) };
        merge.take(GatheredPiece { home: 1, entries: vec![GatheredEntry::Key(found)] }).unwrap();
        assert_eq!(taken(&merge), 1);
    }
}
