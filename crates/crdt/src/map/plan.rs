//! What a request changes in a map.

use super::content::{Assignment, Content, tally_of, winner};
use super::fields::Fields;
use super::removal::{Removal, Target};
use super::{FieldOp, MAP_DEPTH_MAX, MapDelta, MapOp};
use crate::counter::Tally;
use crate::deliberate_faults::older_assignments_are_ignored;
use crate::dot_map::{DotMap, Dots};
use crate::field::Field;
use crate::members::Members;
use crate::{Absent, Clock, Dot, Refusal, SetOp};
use bytes::Bytes;
use ombak_types::Actor;
use std::collections::BTreeSet;

/// Makes the delta of a request from the map as it is.
///
/// `base` is always what the map has at the place of the operations, without what the request has
/// removed; `parts` is what the request has changed there so far.
pub(super) struct Plan<'a> {
    dot: Dot,
    context: Option<&'a Clock>,
    delta: MapDelta,
    /// The fields that the request removed. What was removed of their content in the map no longer
    /// counts: with a context what the context has seen, without one all.
    removed: BTreeSet<Vec<Field>>,
    path: Vec<Field>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(clock: &Clock, actor: &Actor, context: Option<&'a Clock>) -> Self {
        let mut delta = MapDelta::new(clock.clone());
        let dot = delta.after.increment(actor);
        Self { dot, context, delta, removed: BTreeSet::new(), path: Vec::new() }
    }

    pub(super) fn run(mut self, ops: &[MapOp], base: &Fields) -> Result<MapDelta, Refusal> {
        let mut parts = Fields::default();
        self.map(ops, Some(base), &mut parts)?;
        self.delta.fields = parts;
        Ok(self.delta)
    }

    fn map(&mut self, ops: &[MapOp], base: Option<&Fields>, parts: &mut Fields) -> Result<(), Refusal> {
        if self.path.len() >= MAP_DEPTH_MAX {
            return Err(Refusal::TooDeep);
        }
        for op in ops {
            let (MapOp::Remove(field) | MapOp::Update(field, _)) = op;
            self.path.push(field.clone());
            let is_gone = self.context.is_none() && self.removed.contains(&self.path);
            let known = base.and_then(|base| base.get(field)).filter(|_| !is_gone);
            match op {
                MapOp::Remove(field) => self.remove_field(field, known.is_some(), parts)?,
                MapOp::Update(field, op) => {
                    let part = parts.entry(field);
                    let is_first = part.presence.is_empty();
                    part.presence = Dots::of(self.dot.clone(), ());
                    if is_first && let Some(known) = known {
                        self.start_from(&known.content, &mut part.content);
                    }
                    self.update(op, known.map(|known| &known.content), &mut part.content)?;
                }
            }
            self.path.pop();
        }
        Ok(())
    }

    fn remove_field(&mut self, field: &Field, is_known: bool, parts: &mut Fields) -> Result<(), Refusal> {
        self.removed.insert(self.path.clone());
        if let Some(context) = self.context {
            self.remove(context, Target::Field);
            return Ok(());
        }
        if !is_known && parts.get(field).is_none() {
            return Err(Refusal::NotPresent(Absent::Field(field.clone())));
        }
        parts.forget(field);
        // The context is what was seen before the request, so that what the request itself writes
        // after the removal stays, however often the delta is merged.
        self.remove(&self.delta.before.clone(), Target::Field);
        Ok(())
    }

    /// Leaves go into a delta as a whole, so they begin as they are in the map. Of sets and maps
    /// only what is changed goes into it.
    fn start_from(&self, known: &Content, part: &mut Content) {
        if matches!(known, Content::Map(_) | Content::Set(_)) {
            return;
        }
        *part = known.clone();
        let is_removed = (1..=self.path.len()).any(|len| self.removed.contains(&self.path[..len]));
        if let Some(context) = self.context.filter(|_| is_removed) {
            part.subtract(context);
        }
    }

    fn remove(&mut self, context: &Clock, target: Target) {
        self.delta.removals.insert(context, Removal { path: self.path.clone(), target });
    }

    fn update(&mut self, op: &FieldOp, base: Option<&Content>, part: &mut Content) -> Result<(), Refusal> {
        match (op, part) {
            (FieldOp::Counter(amount), Content::Counter(tallies)) => self.count(*amount, tallies),
            (FieldOp::Register { value, time_us }, Content::Register(values)) => self.assign(value, *time_us, values),
            (FieldOp::Flag(true), Content::Flag(dots)) => *dots = Dots::of(self.dot.clone(), ()),
            (FieldOp::Flag(false), Content::Flag(dots)) => match self.context {
                Some(context) => self.remove(context, Target::Flag),
                None => *dots = Dots::default(),
            },
            (FieldOp::Set(ops), Content::Set(members)) => {
                let base = base.and_then(|base| if let Content::Set(members) = base { Some(members) } else { None });
                return self.set(ops, base, members);
            }
            (FieldOp::Map(ops), Content::Map(fields)) => {
                let base = base.and_then(|base| if let Content::Map(fields) = base { Some(fields) } else { None });
                return self.map(ops, base, fields);
            }
            _ => return Err(Refusal::WrongType),
        }
        Ok(())
    }

    /// Counts on in the actor's tally, under the new dot.
    fn count(&self, amount: i64, tallies: &mut DotMap<Tally>) {
        let mut tally = tally_of(tallies, &self.dot.actor);
        tally.add(amount);
        let others = tallies.iter().filter(|(dot, _)| dot.actor != self.dot.actor);
        let others = others.map(|(dot, tally)| (dot.clone(), *tally));
        *tallies = others.chain([(self.dot.clone(), tally)]).collect();
    }

    /// Assigns a value, with a time that is later than that of every value that the register has
    /// here. Otherwise an acknowledged assignment would have no effect after a clock went back.
    fn assign(&self, value: &Bytes, time_us: u64, values: &mut DotMap<Assignment>) {
        let newest = winner(values);
        let assigned = match newest {
            Some(newest) if older_assignments_are_ignored() && newest.time_us >= time_us => newest.clone(),
            _ => {
                let after = newest.map_or(0, |newest| newest.time_us.saturating_add(1));
                Assignment { time_us: time_us.max(after), value: value.clone() }
            }
        };
        *values = DotMap::of(self.dot.clone(), assigned);
    }

    fn set(&mut self, ops: &[SetOp], base: Option<&Members>, parts: &mut Members) -> Result<(), Refusal> {
        for op in ops {
            match (op, self.context) {
                (SetOp::Add(member), _) => parts.set(member.clone(), Dots::of(self.dot.clone(), ())),
                (SetOp::Remove(member), Some(context)) => self.remove(context, Target::Member(member.clone())),
                (SetOp::Remove(member), None) => {
                    let is_present = match parts.get(member) {
                        Some(dots) => !dots.is_empty(),
                        None => base.is_some_and(|base| base.contains(member)),
                    };
                    if !is_present {
                        return Err(Refusal::NotPresent(Absent::Member(member.clone())));
                    }
                    parts.set(member.clone(), Dots::default());
                }
            }
        }
        Ok(())
    }
}
