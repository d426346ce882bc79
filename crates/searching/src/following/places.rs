//! What a commit of an index carries: where it is in the feed of each partition.

use super::association::Association;
use ombak_storage::FeedCursor;
use ombak_storage::feed::StorePlace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const VERSION: u32 = 1;

/// Where an index is in each partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) partitions: BTreeMap<u32, PartitionPlace>,
}

/// Where an index is in a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PartitionPlace {
    /// The generation of documents. When the index is told everything because it lost its place,
    /// documents of earlier generations go at the end.
    pub(super) generation: u64,
    /// The index may have the objects of buckets that one of these has, and has all objects of
    /// those that all of these have.
    pub(super) covered: Vec<Association>,
    /// Up to which seq versions were set aside when it was told everything: it has none of these.
    pub(super) set_aside_to: u64,
    /// Where the index goes on. Without one it does not have everything.
    pub(super) cursor: Option<FeedCursor>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    /// What the partitions name by their places in this list.
    associations: Vec<Association>,
    partitions: BTreeMap<u32, SavedPartition>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedPartition {
    generation: u64,
    covered: Vec<usize>,
    #[serde(default, skip_serializing_if = "is_zero")]
    set_aside_to: u64,
    cursor: Option<SavedCursor>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedCursor {
    seq: u64,
    /// For each store its id, run, seq, lost ranges and removals.
    stores: Vec<(u64, u64, u64, u64, u64)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Places {
    /// Reads what a commit carries. An index without a commit has no places. `None` if it cannot be
    /// read.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let Saved { version, associations, partitions } = serde_json::from_str(text).ok()?;
        if version != VERSION {
            return None;
        }
        let place = |(number, saved): (u32, SavedPartition)| {
            let covered = saved.covered.iter().map(|at| associations.get(*at).cloned()).collect::<Option<_>>()?;
            let SavedPartition { generation, set_aside_to, cursor, .. } = saved;
            let cursor = cursor.map(SavedCursor::read);
            Some((number, PartitionPlace { generation, covered, set_aside_to, cursor }))
        };
        Some(Self { partitions: partitions.into_iter().map(place).collect::<Option<_>>()? })
    }

    /// The text for a commit.
    pub(super) fn to_text(&self) -> Result<String, serde_json::Error> {
        let mut associations: Vec<Association> = Vec::new();
        let mut number_of = |association: &Association| {
            associations.iter().position(|known| known == association).unwrap_or_else(|| {
                associations.push(association.clone());
                associations.len() - 1
            })
        };
        let mut partitions = BTreeMap::new();
        for (number, place) in &self.partitions {
            let PartitionPlace { generation, covered, set_aside_to, cursor } = place;
            let covered = covered.iter().map(&mut number_of).collect();
            let cursor = cursor.as_ref().map(SavedCursor::of);
            let (generation, set_aside_to) = (*generation, *set_aside_to);
            partitions.insert(*number, SavedPartition { generation, covered, set_aside_to, cursor });
        }
        serde_json::to_string(&Saved { version: VERSION, associations, partitions })
    }
}

impl SavedCursor {
    fn of(cursor: &FeedCursor) -> Self {
        let store = |place: &StorePlace| {
            let StorePlace { store_id, run, seq, lost_ranges, removals } = *place;
            (store_id, run, seq, lost_ranges, removals)
        };
        Self { seq: cursor.seq, stores: cursor.stores.iter().map(store).collect() }
    }

    fn read(self) -> FeedCursor {
        let store =
            |(store_id, run, seq, lost_ranges, removals)| StorePlace { store_id, run, seq, lost_ranges, removals };
        FeedCursor { seq: self.seq, stores: self.stores.into_iter().map(store).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_and_the_form_of_version_1_stays() {
        let stored = concat!(
            r#"{"version":1,"associations":[{"types":[[116]],"buckets":[],"excluded":[[[116],[98]]]}],"#,
            r#""partitions":{"7":{"generation":2,"covered":[0],"cursor":{"seq":20,"stores":[[18446744073709551615,3,17,1,4]]}},"#,
            r#""8":{"generation":0,"covered":[],"cursor":null}}}"#
        );
        let places = Places::read(stored).unwrap();
        assert_eq!(places.to_text().unwrap(), stored);
        let cursor = places.partitions[&7].cursor.clone().unwrap();
        let place = StorePlace { store_id: u64::MAX, run: 3, seq: 17, lost_ranges: 1, removals: 4 };
        assert_eq!(cursor, FeedCursor { seq: 20, stores: vec![place] });
        let with_set_aside = stored.replace(r#""covered":[]"#, r#""covered":[],"set_aside_to":9"#);
        let places = Places::read(&with_set_aside).unwrap();
        assert_eq!((places.partitions[&7].set_aside_to, places.partitions[&8].set_aside_to), (0, 9));
        assert_eq!(places.to_text().unwrap(), with_set_aside);
        assert_eq!(Places::read(""), Some(Places::default()));
        assert_eq!(Places::read(&stored.replace("\"version\":1", "\"version\":2")), None);
        assert_eq!(Places::read(&stored.replace("[0]", "[1]")), None);
    }
}
