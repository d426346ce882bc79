//! What a map should show: a specification in events.

use super::super::*;
use crate::Absent;
use crate::field::FieldType;
use crate::testing::actor;
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Id = usize;
pub(super) type Path = Vec<Field>;

/// What one request did at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrote {
    /// It updated the field, perhaps without any other effect.
    Touched,
    /// It left this value and time in a register.
    Assigned(u64, Bytes),
    /// It left this sum as the tally of its replica.
    Counted(usize, i128),
    Enabled,
    Added(Bytes),
}

/// What a removal removes at its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Removed {
    Field,
    Flag,
    Member(Bytes),
}

/// What a replica knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) writes: BTreeMap<Id, (Path, Wrote)>,
    pub(super) removes: BTreeSet<(Path, Removed, BTreeSet<Id>)>,
}

impl Known {
    pub(super) fn merge(&mut self, other: &Self) {
        self.writes.extend(other.writes.clone());
        self.removes.extend(other.removes.clone());
    }

    pub(super) fn ids(&self) -> BTreeSet<Id> {
        self.writes.keys().copied().collect()
    }

    /// Whether a write still counts: no removal that observed it hits its place, or a field above.
    fn is_live(&self, id: Id, path: &Path, wrote: &Wrote) -> bool {
        !self.removes.iter().any(|(at, removed, seen)| {
            let hits = match removed {
                Removed::Field => path.starts_with(at),
                Removed::Flag => path == at && *wrote == Wrote::Enabled,
                Removed::Member(member) => path == at && *wrote == Wrote::Added(member.clone()),
            };
            hits && seen.contains(&id)
        })
    }

    fn live(&self) -> impl Iterator<Item = (Id, &Path, &Wrote)> {
        let writes = self.writes.iter().map(|(id, (path, wrote))| (*id, path, wrote));
        writes.filter(|(id, path, wrote)| self.is_live(*id, path, wrote))
    }

    fn live_at(&self, at: &Path) -> Vec<(Id, &Wrote)> {
        self.live().filter(|(_, path, _)| *path == at).map(|(id, _, wrote)| (id, wrote)).collect()
    }

    /// The fields directly below a path: those with a live write in them.
    fn fields(&self, above: &Path) -> BTreeSet<Field> {
        let below = self.live().filter(|(_, path, _)| path.len() > above.len() && path.starts_with(above));
        below.map(|(_, path, _)| path[above.len()].clone()).collect()
    }

    pub(super) fn has_field(&self, path: &Path) -> bool {
        path.split_last().is_some_and(|(last, above)| self.fields(&above.to_vec()).contains(last))
    }

    pub(super) fn assigned(&self, at: &Path) -> Option<(u64, Bytes)> {
        let values = self.live_at(at).into_iter();
        values
            .filter_map(
                |(_, wrote)| if let Wrote::Assigned(time, value) = wrote { Some((*time, value.clone())) } else { None },
            )
            .max()
    }

    /// The newest tally of each replica.
    pub(super) fn tallies(&self, at: &Path) -> BTreeMap<usize, i128> {
        let counted = |(_, wrote): (Id, &Wrote)| {
            if let Wrote::Counted(replica, sum) = wrote { Some((*replica, *sum)) } else { None }
        };
        self.live_at(at).into_iter().filter_map(counted).collect()
    }

    pub(super) fn members(&self, at: &Path) -> BTreeSet<Bytes> {
        let added =
            |(_, wrote): (Id, &Wrote)| if let Wrote::Added(member) = wrote { Some(member.clone()) } else { None };
        self.live_at(at).into_iter().filter_map(added).collect()
    }

    pub(super) fn value(&self, above: &Path) -> Vec<(Field, FieldValue)> {
        let value = |field: Field| {
            let at: Path = above.iter().cloned().chain([field.clone()]).collect();
            let value = match field.kind {
                FieldType::Counter => FieldValue::Counter(self.tallies(&at).values().sum()),
                FieldType::Register => {
                    FieldValue::Register(self.assigned(&at).map(|(_, value)| value).unwrap_or_default())
                }
                FieldType::Map => FieldValue::Map(self.value(&at)),
                FieldType::Flag => {
                    FieldValue::Flag(self.live_at(&at).iter().any(|(_, wrote)| **wrote == Wrote::Enabled))
                }
                FieldType::Set => FieldValue::Set(self.members(&at).into_iter().collect()),
            };
            (field, value)
        };
        self.fields(above).into_iter().map(value).collect()
    }
}

/// Runs requests by the specification.
pub(super) struct Request<'a> {
    pub(super) replica: usize,
    /// What the client has seen, if it sent a context.
    pub(super) seen: Option<&'a BTreeSet<Id>>,
    /// What the replica knew before the request: what removals without a context observe.
    pub(super) known: Known,
    /// What the request tells others.
    pub(super) told: Known,
    pub(super) next_id: &'a mut Id,
}

impl Request<'_> {
    pub(super) fn map(&mut self, ops: &[MapOp], above: &Path) -> Result<(), Absent> {
        for op in ops {
            let (MapOp::Remove(field) | MapOp::Update(field, _)) = op;
            let at: Path = above.iter().cloned().chain([field.clone()]).collect();
            match op {
                MapOp::Remove(_) if self.seen.is_none() && !self.known.has_field(&at) => {
                    return Err(Absent::Field(field.clone()));
                }
                MapOp::Remove(_) => self.remove(at, Removed::Field),
                MapOp::Update(_, op) => self.update(op, at)?,
            }
        }
        Ok(())
    }

    fn update(&mut self, op: &FieldOp, at: Path) -> Result<(), Absent> {
        self.write(at.clone(), Wrote::Touched);
        match op {
            FieldOp::Counter(amount) => {
                let sum = self.known.tallies(&at).get(&self.replica).copied().unwrap_or(0) + i128::from(*amount);
                // The newer tally replaces the older one, so that the older one has no own life.
                self.write(at, Wrote::Counted(self.replica, sum));
            }
            FieldOp::Register { value, time_us } => {
                let after = self.known.assigned(&at).map_or(0, |(known_us, _)| known_us + 1);
                self.write(at, Wrote::Assigned(after.max(*time_us), value.clone()));
            }
            FieldOp::Flag(true) => self.write(at, Wrote::Enabled),
            FieldOp::Flag(false) => self.remove(at, Removed::Flag),
            FieldOp::Map(ops) => return self.map(ops, &at),
            FieldOp::Set(ops) => {
                for op in ops {
                    match op {
                        SetOp::Add(member) => self.write(at.clone(), Wrote::Added(member.clone())),
                        SetOp::Remove(member) if self.seen.is_none() && !self.known.members(&at).contains(member) => {
                            return Err(Absent::Member(member.clone()));
                        }
                        SetOp::Remove(member) => self.remove(at.clone(), Removed::Member(member.clone())),
                    }
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, at: Path, wrote: Wrote) {
        *self.next_id += 1;
        let event = Known { writes: [(*self.next_id, (at, wrote))].into(), ..Known::default() };
        self.known.merge(&event);
        self.told.merge(&event);
    }

    fn remove(&mut self, at: Path, removed: Removed) {
        let seen = self.seen.cloned().unwrap_or_else(|| self.known.ids());
        let event = Known { removes: [(at, removed, seen)].into(), ..Known::default() };
        self.known.merge(&event);
        self.told.merge(&event);
    }
}

/// The actor of the replica that makes a request.
pub(super) fn actor_of(request: &Request<'_>) -> ombak_types::Actor {
    actor(request.replica)
}
