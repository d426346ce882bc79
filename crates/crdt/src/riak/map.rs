//! Maps: tag 77, `{Clock, Fields, Deferred}`. `Fields` is a dictionary from `{Name, Type}` to
//! `{Dots, Tombstone}`, and `Deferred` one from a context to the fields to remove. `Dots` is a
//! dictionary from a dot to the content as the request of the dot left it. The tombstone is a
//! content that is empty and has a clock; what it has seen was removed. Version 1 has ordered lists
//! for dictionaries, version 2 has `dict` records, and version 3 has maps.
//!
//! Contents: a counter is `{Clock, [{Actor, {Event, Added, Subtracted}}]}`, a register `{Value,
//! Time}`, a flag `{Clock, [Dot], [Context]}`, and sets and maps are as at the top.
//!
//! The decoder of terms bounds how deep terms nest. So maps are read if they nest ten deep in
//! version 1, and five deep in version 2, whose dictionaries nest too.
//!
//! Here the contents of a field's dots are merged into one when they are read. What Riak defers
//! inside a field waits at the top.

use super::payload::{self, Payload};
use super::{set, terms};
use crate::counter::Tally;
use crate::deferred::Deferred;
use crate::dot_map::{DotMap, Dots};
use crate::map::{Assignment, Content, Entry, Fields, Removal, Target};
use crate::{BadBytes, Clock, Dot, Field, FieldType, MAP_DEPTH_MAX, Map};
use bytes::Bytes;
use ombak_types::etf::Term;
use std::collections::BTreeMap;

const TAG: u8 = 77;

pub(super) fn read(payload: &Payload<'_>) -> Result<Map, BadBytes> {
    payload.expect(TAG, &[1, 2, 3])?;
    let mut reader = Reader::default();
    let (mut clock, fields) = reader.map(&payload.term()?)?;
    let mut dots = Vec::new();
    fields.list_dots(&mut dots);
    clock.merge(&dots.into_iter().collect());
    let mut map = Map { clock, fields, deferred: reader.deferred };
    map.apply_deferred();
    Ok(map)
}

/// Reads a tree, and collects the removals that wait in it.
#[derive(Default)]
struct Reader {
    path: Vec<Field>,
    deferred: Deferred<Removal>,
}

impl Reader {
    fn map(&mut self, term: &Term) -> Result<(Clock, Fields), BadBytes> {
        if self.path.len() >= MAP_DEPTH_MAX {
            return Err(BadBytes::TooDeep);
        }
        let [clock, fields, deferred] = term.as_tuple().ok_or(BadBytes::Unexpected("map"))?;
        let mut read = Fields::default();
        for (name, value) in terms::pairs(fields)? {
            let field = field(&name)?;
            self.path.push(field.clone());
            if let Some(entry) = self.entry(field.kind, &value)? {
                read.insert(field, entry);
            }
            self.path.pop();
        }
        for (context, removed) in terms::pairs(deferred)? {
            let context = terms::clock(&context)?;
            for name in terms::list(&removed)? {
                self.path.push(field(name)?);
                self.wait(&context, Target::Field);
                self.path.pop();
            }
        }
        Ok((terms::clock(clock)?, read))
    }

    /// A field with the merge of its contents; nothing if no dot is left.
    fn entry(&mut self, kind: FieldType, term: &Term) -> Result<Option<Entry>, BadBytes> {
        let [contents, tombstone] = term.as_tuple().ok_or(BadBytes::Unexpected("field"))?;
        let (mut presence, mut merged, mut seen) = (Dots::default(), Content::new(kind), Clock::new());
        for (dot, content) in terms::pairs(contents)? {
            let dot = terms::dot(&dot)?;
            let (mut clock, content) = self.content(kind, &content, &dot)?;
            let mut dots = Vec::new();
            content.list_dots(&mut dots);
            clock.merge(&dots.into_iter().collect());
            merged.join(&seen, &content, &clock, false);
            seen.merge(&clock);
            presence.insert(dot, ());
        }
        merged.subtract(&tombstone_clock(kind, tombstone)?);
        Ok((!presence.is_empty()).then_some(Entry { presence, content: merged }))
    }

    fn content(&mut self, kind: FieldType, term: &Term, dot: &Dot) -> Result<(Clock, Content), BadBytes> {
        match kind {
            FieldType::Counter => read_counter(term),
            FieldType::Register => {
                let assignment = read_register(term)?;
                Ok((Clock::new(), Content::Register(DotMap::of(dot.clone(), assignment))))
            }
            FieldType::Map => {
                let (clock, fields) = self.map(term)?;
                Ok((clock, Content::Map(fields)))
            }
            FieldType::Flag => {
                let [clock, dots, contexts] = term.as_tuple().ok_or(BadBytes::Unexpected("flag"))?;
                for context in terms::list(contexts)? {
                    self.wait(&terms::clock(context)?, Target::Flag);
                }
                Ok((terms::clock(clock)?, Content::Flag(terms::dots(dots)?)))
            }
            FieldType::Set => {
                let (clock, members, deferred) = set::parts(term)?;
                for (context, removed) in deferred.iter() {
                    removed.iter().for_each(|member| self.wait(context, Target::Member(member.clone())));
                }
                Ok((clock, Content::Set(members)))
            }
        }
    }

    fn wait(&mut self, context: &Clock, target: Target) {
        self.deferred.insert(context, Removal { path: self.path.clone(), target });
    }
}

fn field(term: &Term) -> Result<Field, BadBytes> {
    let [name, kind] = term.as_tuple().ok_or(BadBytes::Unexpected("field name"))?;
    let kind = kind.as_atom().and_then(FieldType::from_riak_name).ok_or(BadBytes::UnknownType)?;
    Ok(Field { name: terms::binary(name)?, kind })
}

fn read_counter(term: &Term) -> Result<(Clock, Content), BadBytes> {
    let [clock, tallies] = term.as_tuple().ok_or(BadBytes::Unexpected("counter"))?;
    let mut read = DotMap::default();
    for (actor, tally) in terms::pairs(tallies)? {
        let [event, added, subtracted] = tally.as_tuple().ok_or(BadBytes::Unexpected("tally"))?;
        let tally = Tally { added: terms::amount(added)?, subtracted: terms::amount(subtracted)? };
        read.insert(Dot::new(terms::actor(&actor)?, terms::count(event)?), tally);
    }
    Ok((terms::clock(clock)?, Content::Counter(read)))
}

fn read_register(term: &Term) -> Result<Assignment, BadBytes> {
    let [value, time] = term.as_tuple().ok_or(BadBytes::Unexpected("register"))?;
    let time_us = time.as_u64().ok_or(BadBytes::Unexpected("time"))?;
    // Old versions begin with the atom `undefined`, which nobody assigned.
    let value = if value.as_atom().is_some() { Bytes::new() } else { terms::binary(value)? };
    Ok(Assignment { time_us, value })
}

/// What was removed of a field. A register has no clock, and its tombstone tells nothing.
fn tombstone_clock(kind: FieldType, term: &Term) -> Result<Clock, BadBytes> {
    match (kind, term) {
        (FieldType::Register, _) => Ok(Clock::new()),
        (_, Term::Tuple(parts)) => terms::clock(parts.first().ok_or(BadBytes::Unexpected("tombstone"))?),
        _ => Err(BadBytes::Unexpected("tombstone")),
    }
}

pub(super) fn write(map: &Map) -> Vec<u8> {
    let mut writer = Writer { map, waiting: BTreeMap::new(), path: Vec::new() };
    for (context, removals) in map.deferred.iter() {
        for removal in removals {
            writer.waiting.entry(place_of(removal)).or_default().push((context, removal));
        }
    }
    let term = writer.fields(&map.fields);
    payload::of_term(TAG, 1, &term)
}

/// Where Riak keeps a removal: that of a field in the map around it, others in the field.
fn place_of(removal: &Removal) -> &[Field] {
    match (&removal.target, removal.path.split_last()) {
        (Target::Field, Some((_, above))) => above,
        _ => &removal.path,
    }
}

/// Writes a tree in version 1. Each dot of a field gets the whole content: merged they are the same
/// again, and whoever removes one of them leaves the others with a tombstone.
struct Writer<'a> {
    map: &'a Map,
    /// The removals that wait, by the places where Riak keeps them.
    waiting: BTreeMap<&'a [Field], Vec<(&'a Clock, &'a Removal)>>,
    path: Vec<Field>,
}

impl Writer<'_> {
    fn clock(&self) -> Term {
        terms::clock_term(&self.map.clock)
    }

    fn fields(&mut self, fields: &Fields) -> Term {
        let written = fields.iter().map(|(field, entry)| {
            self.path.push(field.clone());
            let value = self.entry(entry);
            self.path.pop();
            Term::pair(field_term(field), value)
        });
        let written = written.collect();
        let deferred = self.waiting(|removal| match &removal.target {
            Target::Field => removal.path.last().map(field_term),
            Target::Flag | Target::Member(_) => None,
        });
        Term::Tuple(vec![self.clock(), Term::List(written), dictionary(deferred)])
    }

    fn entry(&mut self, entry: &Entry) -> Term {
        let dots = entry.presence.dots().map(|dot| Term::pair(terms::dot_term(dot), self.content(&entry.content, dot)));
        let dots = Term::List(dots.collect());
        let empty = match &entry.content {
            Content::Register(_) => register_term(&Assignment::default()),
            Content::Counter(_) => Term::Tuple(vec![Term::nil(), Term::nil()]),
            Content::Map(_) | Content::Flag(_) | Content::Set(_) => {
                Term::Tuple(vec![Term::nil(), Term::nil(), Term::nil()])
            }
        };
        Term::pair(dots, empty)
    }

    fn content(&mut self, content: &Content, dot: &Dot) -> Term {
        match content {
            Content::Counter(tallies) => {
                let tally = |(dot, tally): (&Dot, &Tally)| {
                    let (added, subtracted) = (terms::amount_term(tally.added), terms::amount_term(tally.subtracted));
                    let tally = Term::Tuple(vec![Term::from(dot.count), added, subtracted]);
                    Term::pair(terms::actor_term(&dot.actor), tally)
                };
                Term::pair(self.clock(), Term::List(tallies.iter().map(tally).collect()))
            }
            Content::Register(values) => {
                let value = values.iter().find(|(other, _)| *other == dot).map(|(_, value)| value.clone());
                register_term(&value.unwrap_or_default())
            }
            Content::Map(fields) => self.fields(fields),
            Content::Flag(dots) => {
                let waiting = self.waiting(|removal| (removal.target == Target::Flag).then(Term::nil));
                let contexts = waiting.keys().map(|context| terms::clock_term(context)).collect();
                Term::Tuple(vec![self.clock(), terms::dots_term(dots), Term::List(contexts)])
            }
            Content::Set(members) => {
                let mut deferred = Deferred::default();
                for (context, removal) in self.here() {
                    if let Target::Member(member) = &removal.target {
                        deferred.insert(context, member.clone());
                    }
                }
                set::term(&self.map.clock, members, &deferred)
            }
        }
    }

    /// The removals that wait at the path.
    fn here(&self) -> &[(&Clock, &Removal)] {
        self.waiting.get(&self.path[..]).map(Vec::as_slice).unwrap_or_default()
    }

    /// Those of them that `pick` takes, by their contexts.
    fn waiting(&self, pick: impl Fn(&Removal) -> Option<Term>) -> BTreeMap<&Clock, Vec<Term>> {
        let mut picked: BTreeMap<&Clock, Vec<Term>> = BTreeMap::new();
        for (context, removal) in self.here() {
            if let Some(term) = pick(removal) {
                picked.entry(context).or_default().push(term);
            }
        }
        picked
    }
}

fn dictionary(lists: BTreeMap<&Clock, Vec<Term>>) -> Term {
    let pair = |(context, items): (&Clock, _)| Term::pair(terms::clock_term(context), Term::List(items));
    Term::List(lists.into_iter().map(pair).collect())
}

fn field_term(field: &Field) -> Term {
    Term::pair(Term::Binary(field.name.clone()), Term::atom(field.kind.riak_name()))
}

fn register_term(assignment: &Assignment) -> Term {
    Term::pair(Term::Binary(assignment.value.clone()), Term::from(assignment.time_us))
}
