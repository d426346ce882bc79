//! Sets: tag 75, `{Clock, Members, Deferred}`. `Members` is a dictionary from a member to its dots,
//! and `Deferred` one from a context to the members to remove. Version 1 has ordered lists for
//! dictionaries, version 2 has `dict` records.

use super::payload::{self, Payload};
use super::terms;
use crate::deferred::Deferred;
use crate::members::Members;
use crate::{BadBytes, Clock, Set};
use bytes::Bytes;
use ombak_types::etf::Term;
use std::collections::BTreeSet;

const TAG: u8 = 75;

pub(super) fn read(payload: &Payload<'_>) -> Result<Set, BadBytes> {
    payload.expect(TAG, &[1, 2])?;
    let (mut clock, members, deferred) = parts(&payload.term()?)?;
    clock.merge(&members.dots().collect());
    let mut set = Set { clock, members, deferred };
    set.apply_deferred();
    Ok(set)
}

/// The parts of a set, at the top or inside a map.
pub(super) fn parts(term: &Term) -> Result<(Clock, Members, Deferred<Bytes>), BadBytes> {
    let [clock, members, deferred] = term.as_tuple().ok_or(BadBytes::Unexpected("set"))?;
    Ok((terms::clock(clock)?, read_members(members)?, read_deferred(deferred)?))
}

fn read_members(term: &Term) -> Result<Members, BadBytes> {
    let mut members = Members::default();
    for (name, dots) in terms::pairs(term)? {
        let dots = terms::dots(&dots)?;
        if !dots.is_empty() {
            members.set(terms::binary(&name)?, dots);
        }
    }
    Ok(members)
}

fn read_deferred(term: &Term) -> Result<Deferred<Bytes>, BadBytes> {
    let mut deferred = Deferred::default();
    for (context, removed) in terms::pairs(term)? {
        let context = terms::clock(&context)?;
        for member in terms::list(&removed)? {
            deferred.insert(&context, terms::binary(member)?);
        }
    }
    Ok(deferred)
}

pub(super) fn write(set: &Set) -> Vec<u8> {
    payload::of_term(TAG, 1, &term(&set.clock, &set.members, &set.deferred))
}

/// The term of version 1.
pub(super) fn term(clock: &Clock, members: &Members, deferred: &Deferred<Bytes>) -> Term {
    let member = |(name, dots): (&Bytes, _)| Term::pair(Term::Binary(name.clone()), terms::dots_term(dots));
    let removal = |(context, removed): (&Clock, &BTreeSet<Bytes>)| {
        let removed = removed.iter().map(|member| Term::Binary(member.clone())).collect();
        Term::pair(terms::clock_term(context), Term::List(removed))
    };
    Term::Tuple(vec![
        terms::clock_term(clock),
        Term::List(members.iter().map(member).collect()),
        Term::List(deferred.iter().map(removal).collect()),
    ])
}
