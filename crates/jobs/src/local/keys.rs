//! The keys of a piece, in an order that is the same on all replicas.
//!
//! A list of keys has its own order; the place in it is the number of keys before it (u32,
//! big-endian). The keys of a share are visited in the order of their hashes, and of the keys
//! themselves where hashes are equal; the place is the hash (u64, big-endian) and the key. Stores
//! do not keep keys in this order, so they are sorted. If there are too many, only the first ones
//! are taken, and a later piece visits the keys of the share once more.

use super::Inner;
use super::kept::Kept;
use super::worker::Worker;
use crate::part::{PartError, PartRequest, PartWork};
use bytes::Bytes;
use ombak_kv::replica::{CoverageHome, CoverageItem, CoverageQuestion, CoverageRequest};
use ombak_mapreduce::{Failure, Input, KeyFilter, Over};
use ombak_runtime::pause_if_due;
use ombak_storage::key_hash;
use ombak_types::{Bucket, Error, StoreFailure};
use std::collections::{BinaryHeap, VecDeque};

/// The place of a key of a share.
pub(super) type Place = (u64, Bytes);

/// The keys of one piece.
pub(super) enum PieceKeys {
    /// Those of a list, and how many of them are done.
    List { keys: Vec<Input>, done: usize },
    /// Those of a share.
    Share { bucket: Bucket, ahead: ShareKeys, last: Option<Place> },
}

/// The next keys of a share, in order.
#[derive(Debug, Default)]
pub(super) struct ShareKeys {
    pub(super) keys: VecDeque<Place>,
    /// The share has more keys than these.
    pub(super) is_cut: bool,
}

impl ShareKeys {
    /// About how many bytes the keys take.
    pub(super) fn bytes(&self) -> usize {
        self.keys.iter().map(bytes_of).sum()
    }
}

fn bytes_of(place: &Place) -> usize {
    size_of::<Place>() + place.1.len()
}

fn write_place((hash, key): &Place) -> Bytes {
    [&hash.to_be_bytes()[..], key].concat().into()
}

fn read_place(bytes: &Bytes) -> Result<Place, PartError> {
    let (hash, _) = bytes.split_first_chunk::<8>().ok_or_else(bad_place)?;
    Ok((u64::from_be_bytes(*hash), bytes.slice(8..)))
}

fn bad_place() -> PartError {
    PartError::Failed(Failure::Other("the place where a part goes on is not one".to_owned()))
}

impl PieceKeys {
    /// Finds the keys from the place on at which the last piece ended.
    pub(super) async fn open(worker: &Worker, request: &PartRequest) -> Result<Self, PartError> {
        match &request.work {
            PartWork::Keys(keys) => {
                let done = request.from.as_ref().map(|from| <[u8; 4]>::try_from(&from[..]).map(u32::from_be_bytes));
                let done = done.transpose().map_err(|_| bad_place())?.unwrap_or(0);
                Ok(Self::List { keys: keys.clone(), done: done as usize })
            }
            PartWork::Share { bucket, home, .. } => {
                let last = request.from.as_ref().map(read_place).transpose()?;
                let kept = worker.node().kept.lock().take((request.job, *home));
                let ahead = match kept.and_then(|kept| kept.behind(last.as_ref())) {
                    Some(kept) => kept,
                    None => find(worker, request, last.clone()).await?,
                };
                Ok(Self::Share { bucket: bucket.clone(), ahead, last })
            }
        }
    }

    /// The next keys, `max` at most; `None` at the end. They count as done with [`Self::done`].
    pub(super) fn next(&self, max: usize) -> Option<Vec<Input>> {
        let next: Vec<Input> = match self {
            Self::List { keys, done } => keys.iter().skip(*done).take(max).cloned().collect(),
            Self::Share { bucket, ahead, .. } => {
                ahead.keys.iter().take(max).map(|(_, key)| Input::new(bucket.clone(), key.clone())).collect()
            }
        };
        (!next.is_empty()).then_some(next)
    }

    /// The first keys of the last call of [`Self::next`] are done.
    pub(super) fn done(&mut self, count: usize) {
        match self {
            Self::List { done, .. } => *done += count,
            Self::Share { ahead, last, .. } => *last = ahead.keys.drain(..count).next_back().or(last.take()),
        }
    }

    /// The place where the piece ended; `None` if no keys are left. Keys that were found already
    /// stay for the next piece.
    pub(super) fn end(self, node: &Inner, request: &PartRequest) -> Option<Bytes> {
        match self {
            Self::List { keys, done } if done < keys.len() => {
                Some(Bytes::copy_from_slice(&u32::try_from(done).unwrap_or(u32::MAX).to_be_bytes()))
            }
            Self::List { .. } => None,
            Self::Share { ahead, last, .. } if ahead.is_cut || !ahead.keys.is_empty() => {
                let last = last?;
                let from = write_place(&last);
                if let (PartWork::Share { home, .. }, false) = (&request.work, ahead.keys.is_empty()) {
                    let (keys, now) = (Kept::new(last, ahead, request.deadline), node.runtime.now());
                    let dropped = node.kept.lock().keep((request.job, *home), keys, now);
                    drop(dropped);
                }
                Some(from)
            }
            Self::Share { .. } => None,
        }
    }
}

/// Visits the keys of a share, and takes the first ones behind a place.
async fn find(worker: &Worker, request: &PartRequest, after: Option<Place>) -> Result<ShareKeys, PartError> {
    let PartWork::Share { bucket, home, n, ring, begun, filter } = &request.work else {
        return Ok(ShareKeys::default());
    };
    let question = CoverageRequest {
        question: CoverageQuestion::keys(bucket.clone()),
        homes: vec![CoverageHome { home: *home, classes: [*n].into_iter().collect() }],
        ring: *ring,
        begun: *begun,
        deadline: Some(request.deadline),
    };
    let is_over = || worker.is_over(request.deadline);
    let mut items = worker.list(question).await?;
    let mut first = FirstKeys::new(after, worker.node().config.keys_bytes_max);
    let mut is_complete = false;
    while let Some(item) = items.recv().await {
        match item? {
            CoverageItem::Piece(piece) => {
                if let Some((_, names)) = piece.into_names() {
                    first.offer(&names, filter, &is_over)?;
                }
            }
            CoverageItem::HomeDone(_) => is_complete = true,
        }
    }
    if !is_complete {
        return Err(PartError::Lost(StoreFailure::internal("a listing for a job is too short").into()));
    }
    Ok(first.finish())
}

/// The first keys behind a place, as many as fit.
struct FirstKeys {
    after: Option<Place>,
    /// The last of them is on top.
    keys: BinaryHeap<Place>,
    bytes: usize,
    bytes_max: usize,
    is_cut: bool,
}

impl FirstKeys {
    fn new(after: Option<Place>, bytes_max: usize) -> Self {
        Self { after, keys: BinaryHeap::new(), bytes: 0, bytes_max, is_cut: false }
    }

    fn offer(&mut self, names: &[Bytes], filter: &KeyFilter, is_over: &dyn Fn() -> bool) -> Result<(), PartError> {
        for name in names {
            pause_if_due();
            let hash = key_hash(name);
            let is_behind = self.after.as_ref().is_none_or(|(after, key)| (*after, &key[..]) < (hash, &name[..]));
            let may_fit = !self.is_cut || self.keys.peek().is_none_or(|last| (hash, &name[..]) < (last.0, &last.1[..]));
            if !is_behind || !may_fit {
                continue;
            }
            match filter.takes(name, is_over) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(Over) => return Err(PartError::Lost(Error::Timeout)),
            }
            // A slice would keep the whole batch in memory.
            let place = (hash, Bytes::copy_from_slice(name));
            self.bytes += bytes_of(&place);
            self.keys.push(place);
            // One key always fits.
            while self.bytes > self.bytes_max && self.keys.len() > 1 {
                self.is_cut = true;
                self.bytes -= self.keys.pop().as_ref().map_or(0, bytes_of);
            }
        }
        Ok(())
    }

    fn finish(self) -> ShareKeys {
        ShareKeys { keys: self.keys.into_sorted_vec().into(), is_cut: self.is_cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::tests::pauses_in;

    fn names(range: std::ops::Range<u32>) -> Vec<Bytes> {
        range.map(|n| Bytes::from(format!("key{n}"))).collect()
    }

    fn first(after: Option<Place>, order: &[Bytes], bytes_max: usize) -> ShareKeys {
        let mut first = FirstKeys::new(after, bytes_max);
        order.chunks(7).for_each(|names| first.offer(names, &KeyFilter::default(), &|| false).unwrap());
        first.finish()
    }

    #[test]
    fn pieces_visit_each_key_once_in_an_order_that_does_not_depend_on_the_store() {
        let forward = names(0..500);
        let backward: Vec<Bytes> = forward.iter().rev().cloned().collect();
        let (mut after, mut seen) = (None, Vec::new());
        for turn in 0.. {
            let order = if turn % 2 == 0 { &forward } else { &backward };
            let piece = first(after.take(), order, 2000);
            assert!(piece.bytes() <= 2000);
            after = piece.keys.back().cloned();
            seen.extend(piece.keys);
            if !piece.is_cut {
                break;
            }
        }
        assert!(seen.is_sorted());
        let mut keys: Vec<Bytes> = seen.into_iter().map(|(_, key)| key).collect();
        keys.sort();
        let mut all = forward;
        all.sort();
        assert_eq!(keys, all);
    }

    #[test]
    fn visiting_keys_pauses() {
        let names = names(0..50_000);
        assert!(pauses_in(move || drop(first(None, &names, 1 << 20))) > 1);
    }

    #[test]
    fn a_key_that_is_larger_than_the_bound_is_taken_alone() {
        let piece = first(None, &names(0..3), 1);
        assert_eq!((piece.keys.len(), piece.is_cut), (1, true));
    }

    #[test]
    fn a_place_that_is_not_one_is_refused() {
        let place = (7, Bytes::from_static(b"k"));
        assert_eq!(read_place(&write_place(&place)), Ok(place));
        assert!(read_place(&Bytes::from_static(b"short")).is_err());
    }
}
