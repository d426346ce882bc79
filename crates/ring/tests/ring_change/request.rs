//! A put or a get at its coordinator.

use super::broken::Broken;
use super::model::{Class, Copied, Key, State};
use ombak_ring::placement::Phase;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// So many positions have to answer, and so many of them have to be primaries.
#[derive(Clone, Copy, Debug)]
pub struct Quorum {
    pub any: u32,
    pub primary: u32,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub key: Key,
    pub class: Class,
    /// The bit of the write; `None` is a get.
    pub write: Option<u32>,
    pub quorum: Quorum,
    pub attempt: u32,
    /// The entry of the metadata by which the replicas were chosen.
    pub entry: usize,
    pub sets: Vec<Vec<(NodeId, NodeId)>>,
    /// The answers that count in this attempt.
    pub counted: BTreeMap<NodeId, Copied>,
    /// Everybody who has stored the write, in any attempt.
    pub stored: BTreeSet<NodeId>,
    /// The writes that this get has to see.
    pub expected: Copied,
    /// When it ends, whatever was answered.
    pub until: u64,
}

impl Request {
    pub fn asked(&self) -> BTreeSet<NodeId> {
        let sets = if self.write.is_some() { &self.sets[..] } else { &self.sets[..1] };
        sets.iter().flatten().map(|(node, _)| *node).collect()
    }

    /// Whether enough has been answered.
    pub fn is_met(&self, state: &State, broken: Option<Broken>) -> bool {
        let in_set = |set: &[(NodeId, NodeId)]| {
            let counted = set.iter().filter(|(node, _)| self.counted.contains_key(node));
            let primary = counted.clone().filter(|(node, owner)| node == owner).count();
            counted.count() >= self.quorum.any as usize && primary >= self.quorum.primary as usize
        };
        if self.sets.iter().any(Vec::is_empty) {
            return false;
        }
        let phase = state.home(self.class).phase();
        match broken {
            _ if self.write.is_none() => in_set(&self.sets[0]),
            Some(Broken::BothSetsAsOne) => {
                let all: BTreeSet<_> = self.sets.iter().flatten().copied().collect();
                in_set(&all.into_iter().collect::<Vec<_>>())
            }
            Some(Broken::OldSetAlone) if phase == Phase::Pending => in_set(&self.sets[0]),
            Some(Broken::NewSetAloneAfterFlip) if phase == Phase::Flipped => in_set(&self.sets[0]),
            _ => self.sets.iter().all(|set| in_set(set)),
        }
    }
}
