//! The newest version of a read: the merge of all copies that no other copy covers.

use super::copies::Copies;
use super::copy::{BodyState, CopyState, FoundCopy};
use ombak_types::Object;
use smallvec::SmallVec;

/// Indexes of replicas.
pub(super) type ReplicaIndexes = SmallVec<[usize; 4]>;

/// The newest version, merged from all copies that no other copy covers.
pub(super) enum Newest {
    /// The version, and its digest.
    Ready(Object, u64),
    /// The values of these replicas must be asked for. The list is empty while the values are on
    /// their way.
    MissingValues(ReplicaIndexes),
    /// A version is known, but no replica can read its values.
    Unreadable,
    Absent,
}

impl Copies {
    /// Merges the copies that no other copy covers. All values of a kind stay: the reply, and each
    /// replica that is sent them, make one of them (docs/design/datatypes.md). `without_values`
    /// says that a single value is not needed.
    pub(super) fn newest(&mut self, without_values: bool) -> Newest {
        if let [CopyState::Found(FoundCopy { object, digest, body: BodyState::Here })] = self.states.as_mut_slice() {
            // This is the only replica, so its copy is not needed afterwards.
            return Newest::Ready(std::mem::take(object), *digest);
        }
        let frontier = self.frontier();
        if self.heads_suffice(&frontier, without_values) {
            return self.merge(&frontier);
        }
        let mut chosen = ReplicaIndexes::new();
        let mut missing = ReplicaIndexes::new();
        let mut on_the_way = false;
        for &version in &frontier {
            let Some((source, body)) = self.source_of(version) else { return Newest::Unreadable };
            match body {
                BodyState::NotAsked => missing.push(source),
                BodyState::Asked => on_the_way = true,
                _ => chosen.push(source),
            }
        }
        if on_the_way || !missing.is_empty() {
            return Newest::MissingValues(missing);
        }
        self.merge(&chosen)
    }

    fn merge(&self, chosen: &[usize]) -> Newest {
        let mut chosen = chosen.iter().filter_map(|&replica| self.found(replica));
        let Some(first) = chosen.next() else { return Newest::Absent };
        let (mut merged, mut digest) = (first.object.clone(), first.digest);
        for copy in chosen {
            merged.merge(copy.object.clone());
            digest = crate::digest::digest(&merged);
        }
        Newest::Ready(merged, digest)
    }

    /// Whether the heads suffice. They do when all copies are tombstones. They also do when the
    /// request wants no values, no replica will be sent any, and there are no siblings, whose order
    /// depends on the values.
    fn heads_suffice(&self, frontier: &[usize], without_values: bool) -> bool {
        let (mut siblings, mut all_deleted) = (0, true);
        for copy in frontier.iter().filter_map(|&replica| self.found(replica)) {
            siblings += copy.object.siblings.len();
            all_deleted &= copy.object.is_deleted();
        }
        (without_values && siblings <= 1) || all_deleted
    }

    /// One copy of each version that no other copy covers.
    fn frontier(&self) -> ReplicaIndexes {
        let mut out = ReplicaIndexes::new();
        for replica in 0..self.len() {
            let Some(copy) = self.found(replica) else { continue };
            if out.iter().any(|&other| self.found(other).is_some_and(|other| other.covers(copy))) {
                continue;
            }
            out.retain(|other| self.found(*other).is_some_and(|other| !copy.covers(other)));
            out.push(replica);
        }
        out
    }

    /// The replica whose values are used for the version of another one, and the state of these
    /// values: first a replica whose values have arrived, then one whose values are on their way,
    /// then this node, then any other.
    fn source_of(&self, version: usize) -> Option<(usize, BodyState)> {
        let wanted = self.found(version)?;
        let rank = |replica: usize| {
            let copy = self.found(replica)?;
            let usable = copy.body.is_usable() && copy.covers(wanted);
            let distance = match copy.body {
                BodyState::Here => 0,
                BodyState::Asked => 1,
                _ if self.local == Some(replica) => 2,
                _ => 3,
            };
            usable.then_some((distance, replica, copy.body))
        };
        let nearest = (0..self.len()).filter_map(rank).min_by_key(|(distance, replica, _)| (*distance, *replica));
        nearest.map(|(_, replica, body)| (replica, body))
    }
}
