//! The keys of a bucket, in no order.
//!
//! ```text
//! question  bytes bucket_type, bytes name
//! ```
//!
//! Each key comes once, also when a second replica goes on in a home partition: the merging part
//! remembers the keys of home partitions whose answer has begun and is not complete.

use super::content::{VERSION_1, read_bucket, write_bucket};
use super::names::{ListsNames, Names, NamesPart, PIECE};
use crate::coverage::homes_run::{HomesMerge, HomesRun, NamesRun};
use crate::coverage::local_part::{Here, OpenedPart};
use crate::coverage::planner::Planner;
use crate::coverage::question_kind::{Question, QuestionKind};
use crate::listing::ListWalk;
use crate::partition::Partition;
use crate::replica::{ContentWriter, CoverageQuestion, QuestionContent};
use bytes::Bytes;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3DefaultBuilder, xxh3_128};

/// The most keys that a listing remembers while their home partitions are under way, over all
/// nodes. Beyond that, a node that fails makes the listing fail.
const SEEN_MAX: usize = 4_000_000;

const NUMBER: u8 = 0;

/// The question for the keys of a bucket.
pub(in crate::coverage) const KIND: QuestionKind = QuestionKind::of::<Keys>(
    (NUMBER, "keys"),
    VERSION_1,
    |content| read_bucket(content).map(CoverageQuestion::keys),
    PIECE,
);

#[derive(Clone, Debug)]
struct Keys(Bucket);

impl CoverageQuestion {
    /// Asks for the keys of a bucket.
    pub fn keys(bucket: Bucket) -> Self {
        Self::new(Keys(bucket))
    }
}

impl QuestionContent for Keys {
    fn number(&self) -> u8 {
        NUMBER
    }

    fn write(&self, out: &mut dyn ContentWriter) {
        write_bucket(&self.0, out);
    }
}

impl Question for Keys {
    fn open(&self, here: Here) -> OpenedPart {
        Ok(Box::new(NamesPart::new(here, self.clone())))
    }
}

impl ListsNames for Keys {
    fn walk(&self, partition: Arc<Partition>, begun: UnixMicros) -> ListWalk {
        ListWalk::over_keys(vec![partition], &self.0, begun)
    }
}

/// Lists the keys of a bucket over several nodes. `n` is the bucket's. Fails if a home partition
/// has no replica that can answer.
pub(crate) fn list_keys(planner: Planner, bucket: Bucket, n: u32) -> Result<NamesRun, Error> {
    HomesRun::new(planner, CoverageQuestion::keys(bucket), &[n], Box::new(SeenKeys::default()))
}

/// The merging part: the hashes of the keys of home partitions whose answer has begun and is not
/// complete.
#[derive(Default)]
struct SeenKeys {
    homes: BTreeMap<u32, SeenHome>,
    count: usize,
}

#[derive(Default)]
struct SeenHome {
    /// The keys of a first answer. Nobody looks for one of them, so they need no table, which would
    /// take most of the time of a listing on the threads of the connections.
    listed: Vec<u128>,
    /// All of them, if an answer broke off. Nothing depends on the order of this set.
    keys: HashSet<u128, Xxh3DefaultBuilder>,
    /// There was no room to remember all.
    is_partial: bool,
    /// An earlier answer broke off, so what comes now may have come already.
    is_repeat: bool,
}

impl SeenKeys {
    /// Notes keys of a home partition, and removes those that came before.
    fn note(&mut self, home: u32, keys: &mut Vec<Bytes>) {
        let Self { homes, count } = self;
        let seen = homes.entry(home).or_default();
        if !seen.is_repeat {
            let room = SEEN_MAX.saturating_sub(*count);
            seen.is_partial |= keys.len() > room;
            seen.listed.extend(keys.iter().take(room).map(|key| xxh3_128(key)));
            *count += keys.len().min(room);
            return;
        }
        keys.retain(|key| {
            let hash = xxh3_128(key);
            if *count >= SEEN_MAX {
                let is_new = !seen.keys.contains(&hash);
                seen.is_partial |= is_new;
                return is_new;
            }
            let is_new = seen.keys.insert(hash);
            *count += usize::from(is_new);
            is_new
        });
    }
}

impl HomesMerge for SeenKeys {
    type Piece = Names;
    type Batch = Vec<Bytes>;

    fn needs_every_home(&self) -> bool {
        true
    }

    fn take(&mut self, Names { home, mut names }: Names) -> Result<Option<Vec<Bytes>>, Error> {
        self.note(home, &mut names);
        Ok(Some(names).filter(|names| !names.is_empty()))
    }

    fn home_done(&mut self, home: u32) {
        if let Some(seen) = self.homes.remove(&home) {
            self.count -= seen.listed.len() + seen.keys.len();
        }
    }

    fn is_asked_again(&mut self, home: u32) -> bool {
        let Some(seen) = self.homes.get_mut(&home) else { return true };
        seen.is_repeat = true;
        let before = seen.listed.len() + seen.keys.len();
        seen.keys.extend(std::mem::take(&mut seen.listed));
        self.count -= before - seen.keys.len();
        !seen.is_partial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&'static str]) -> Vec<Bytes> {
        names.iter().map(|name| Bytes::from_static(name.as_bytes())).collect()
    }

    #[test]
    fn a_second_answer_shows_only_what_the_first_did_not() {
        let mut seen = SeenKeys::default();
        let taken =
            |seen: &mut SeenKeys, names: &[&'static str]| seen.take(Names { home: 7, names: keys(names) }).unwrap();
        assert_eq!(taken(&mut seen, &["a", "b"]), Some(keys(&["a", "b"])));
        assert!(seen.is_asked_again(7) && seen.is_asked_again(8));
        assert_eq!(taken(&mut seen, &["b", "a"]), None);
        assert_eq!(taken(&mut seen, &["b", "c", "a"]), Some(keys(&["c"])));
        assert_eq!(taken(&mut seen, &["c", "d"]), Some(keys(&["d"])));
        seen.home_done(7);
        assert_eq!(seen.count, 0);
    }

    #[test]
    fn a_listing_that_remembers_too_much_does_not_repeat_what_it_forgot() {
        let mut seen = SeenKeys { count: SEEN_MAX - 1, ..SeenKeys::default() };
        let mut first = keys(&["a", "b"]);
        seen.note(7, &mut first);
        assert_eq!(first.len(), 2, "what is not remembered is shown nevertheless");
        assert!(!seen.is_asked_again(7));
    }
}
