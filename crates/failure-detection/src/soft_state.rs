//! What a node tells the others about itself.
//!
//! It is soft: it may be late, lost or out of date. No rule about copies may depend on it alone.
//!
//! Version 1 of its bytes: the version (1 byte), then fields: tag u8, length u32, content. A field
//! with an unknown tag is skipped, so that later programs can add fields. Integers are
//! little-endian.

use crate::reader::{Malformed, Reader};
use bytes::{BufMut, Bytes};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The longest soft state in bytes.
pub const STATE_BYTES_MAX: usize = 64 << 10;
/// The longest [`SoftState::handoff`] in bytes.
pub const HANDOFF_BYTES_MAX: usize = 4 << 10;
/// The maximum number of counters, and of owners of foreign data.
pub const ENTRIES_MAX: usize = 512;
/// How many classes a [`ClassSet`] lists. A larger set becomes [`ClassSet::All`] on the way.
pub const CLASSES_MAX: usize = 512;
/// How many peers [`SoftState::owed`] may name.
pub const OWED_PEERS_MAX: usize = 512;
/// How many bytes all classes of a state may take. The sets that do not fit become
/// [`ClassSet::All`].
const CLASSES_BYTES_MAX: usize = 32 << 10;

const VERSION: u8 = 1;
const CLASS_BYTES: usize = 5;

/// Classes (home partition, n), see docs/design/replication.md §1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassSet {
    /// These.
    Listed(BTreeSet<(u32, u8)>),
    /// Possibly every class.
    All,
}

impl ClassSet {
    /// No class.
    pub const fn none() -> Self {
        Self::Listed(BTreeSet::new())
    }

    /// Whether a class may be among them.
    pub fn contains(&self, home: u32, n: u32) -> bool {
        match self {
            Self::Listed(classes) => u8::try_from(n).is_ok_and(|n| classes.contains(&(home, n))),
            Self::All => true,
        }
    }

    /// Whether there is certainly none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Listed(classes) if classes.is_empty())
    }

    fn encode(&self, budget: &mut usize, out: &mut Vec<u8>) {
        match self {
            Self::Listed(classes) if classes.len() <= CLASSES_MAX && classes.len() * CLASS_BYTES <= *budget => {
                *budget -= classes.len() * CLASS_BYTES;
                out.put_u16_le(classes.len() as u16);
                for (home, n) in classes {
                    out.put_u32_le(*home);
                    out.put_u8(*n);
                }
            }
            _ => out.put_u16_le(u16::MAX),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = usize::from(reader.u16()?);
        if count == usize::from(u16::MAX) {
            return Ok(Self::All);
        }
        if count > CLASSES_MAX {
            return Err(Malformed);
        }
        let mut classes = BTreeSet::new();
        for _ in 0..count {
            classes.insert((reader.u32()?, reader.u8()?));
        }
        Ok(Self::Listed(classes))
    }
}

impl Default for ClassSet {
    fn default() -> Self {
        Self::none()
    }
}

/// The version of a ring, as in docs/design/replication.md §9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingVersionKnown {
    /// The random id of the lineage.
    pub lineage: u64,
    /// The number within the lineage.
    pub number: u64,
}

/// What a node tells about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoftState {
    /// The latest ring that the node knows.
    pub ring: RingVersionKnown,
    /// The node answers no listings (`participate_in_coverage` is off).
    pub avoids_coverage: bool,
    /// The classes of the node that are not full (docs/design/replication.md §1).
    pub filling: ClassSet,
    /// For each peer: the classes in which this node owes it writes (docs/design/replication.md
    /// §2).
    pub owed: BTreeMap<NodeId, ClassSet>,
    /// The bytes of foreign data that the node holds, by owner (docs/design/replication.md §4).
    pub foreign_bytes: BTreeMap<NodeId, u64>,
    /// Counters by a number that their users choose.
    pub counters: BTreeMap<u16, u64>,
    /// The progress of hand-offs, in bytes that carry a version of their own.
    pub handoff: Bytes,
}

impl SoftState {
    /// The bytes that travel. What exceeds a limit is left out; of classes, more is said than is
    /// true.
    pub fn encode(&self) -> Bytes {
        let mut out = vec![VERSION];
        let mut ring = Vec::new();
        ring.put_u64_le(self.ring.lineage);
        ring.put_u64_le(self.ring.number);
        put_field(&mut out, 1, &ring);
        put_field(&mut out, 2, &[u8::from(self.avoids_coverage)]);
        let mut budget = CLASSES_BYTES_MAX;
        let mut filling = Vec::new();
        self.filling.encode(&mut budget, &mut filling);
        put_field(&mut out, 3, &filling);
        let mut owed = Vec::new();
        for (peer, classes) in self.owed.iter().take(OWED_PEERS_MAX) {
            owed.put_u64_le(peer.get());
            classes.encode(&mut budget, &mut owed);
        }
        put_field(&mut out, 4, &owed);
        let mut foreign = Vec::new();
        for (owner, bytes) in self.foreign_bytes.iter().take(ENTRIES_MAX) {
            foreign.put_u64_le(owner.get());
            foreign.put_u64_le(*bytes);
        }
        put_field(&mut out, 5, &foreign);
        let mut counters = Vec::new();
        for (number, value) in self.counters.iter().take(ENTRIES_MAX) {
            counters.put_u16_le(*number);
            counters.put_u64_le(*value);
        }
        put_field(&mut out, 6, &counters);
        if self.handoff.len() <= HANDOFF_BYTES_MAX {
            put_field(&mut out, 7, &self.handoff);
        }
        out.into()
    }

    /// Decodes what a peer sent; `None` if it is malformed or has an unknown version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes).ok()
    }

    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        if bytes.len() > STATE_BYTES_MAX || reader.u8()? != VERSION {
            return Err(Malformed);
        }
        let mut state = Self::default();
        while !reader.0.is_empty() {
            let tag = reader.u8()?;
            let length = reader.u32()? as usize;
            state.read_field(tag, Reader(reader.take(length)?))?;
        }
        Ok(state)
    }

    fn read_field(&mut self, tag: u8, mut field: Reader<'_>) -> Result<(), Malformed> {
        match tag {
            1 => self.ring = RingVersionKnown { lineage: field.u64()?, number: field.u64()? },
            2 => self.avoids_coverage = field.u8()? != 0,
            3 => self.filling = ClassSet::decode(&mut field)?,
            4 => {
                while !field.0.is_empty() {
                    self.owed.insert(NodeId::new(field.u64()?), ClassSet::decode(&mut field)?);
                }
            }
            5 => {
                while !field.0.is_empty() {
                    self.foreign_bytes.insert(NodeId::new(field.u64()?), field.u64()?);
                }
            }
            6 => {
                while !field.0.is_empty() {
                    self.counters.insert(field.u16()?, field.u64()?);
                }
            }
            7 => self.handoff = Bytes::copy_from_slice(std::mem::take(&mut field.0)),
            _ => return Ok(()),
        }
        field.end()
    }
}

fn put_field(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    out.put_u32_le(content.len() as u32);
    out.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, btree_set, vec};
    use proptest::prelude::*;

    fn classes() -> impl Strategy<Value = ClassSet> {
        prop_oneof![
            4 => btree_set((0..1024u32, 1..6u8), 0..40).prop_map(ClassSet::Listed),
            1 => Just(ClassSet::All),
        ]
    }

    fn node() -> impl Strategy<Value = NodeId> {
        any::<u64>().prop_map(NodeId::new)
    }

    prop_compose! {
        fn state()(
            lineage in any::<u64>(), number in any::<u64>(), avoids_coverage in any::<bool>(), filling in classes(),
            owed in btree_map(node(), classes(), 0..8), foreign_bytes in btree_map(node(), any::<u64>(), 0..20),
            counters in btree_map(any::<u16>(), any::<u64>(), 0..20), handoff in vec(any::<u8>(), 0..100),
        ) -> SoftState {
            let ring = RingVersionKnown { lineage, number };
            SoftState { ring, avoids_coverage, filling, owed, foreign_bytes, counters, handoff: handoff.into() }
        }
    }

    proptest! {
        #[test]
        fn a_state_comes_back(state in state()) {
            prop_assert_eq!(SoftState::decode(&state.encode()), Some(state));
        }

        #[test]
        fn no_bytes_cause_a_panic(mut bytes in vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>(), state in state()) {
            let _ = SoftState::decode(&bytes);
            bytes.insert(0, VERSION);
            let _ = SoftState::decode(&bytes);
            let whole = state.encode();
            let _ = SoftState::decode(&whole[..cut.index(whole.len())]);
        }
    }

    #[test]
    fn a_state_never_exceeds_its_limit_and_says_rather_too_many_classes() {
        let many = ClassSet::Listed((0..CLASSES_MAX as u32).map(|home| (home, 3)).collect());
        let too_many = ClassSet::Listed((0..=CLASSES_MAX as u32).map(|home| (home, 3)).collect());
        let state = SoftState {
            filling: too_many,
            owed: (0..2000).map(|peer| (NodeId::new(peer), many.clone())).collect(),
            foreign_bytes: (0..2000).map(|peer| (NodeId::new(peer), 1)).collect(),
            counters: (0..2000).map(|number| (number, 1)).collect(),
            handoff: vec![7; HANDOFF_BYTES_MAX].into(),
            ..SoftState::default()
        };
        let bytes = state.encode();
        assert!(bytes.len() <= STATE_BYTES_MAX, "{}", bytes.len());
        let read = SoftState::decode(&bytes).unwrap();
        assert_eq!(read.filling, ClassSet::All);
        assert_eq!((read.owed[&NodeId::new(0)].clone(), read.owed[&NodeId::new(400)].clone()), (many, ClassSet::All));
        assert_eq!(read.handoff.len(), HANDOFF_BYTES_MAX);
    }

    #[test]
    fn unknown_fields_are_skipped_and_unknown_versions_refused() {
        let state = SoftState { avoids_coverage: true, ..SoftState::default() };
        let mut bytes = state.encode().to_vec();
        put_field(&mut bytes, 200, b"later");
        assert_eq!(SoftState::decode(&bytes), Some(state));
        bytes[0] = 2;
        assert_eq!(SoftState::decode(&bytes), None);
    }
}
