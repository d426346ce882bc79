//! Counters: tag 71. Version 2 is `[{Actor, Added, Subtracted}]`. Version 1 is two grow-only
//! counters, `<<PLen:32, P, NLen:32, N>>`, each `<<70, 1, Term>>` of `[{Actor, Count}]`.

use super::payload::{self, Payload};
use super::{split_name, terms};
use crate::counter::Tally;
use crate::{BadBytes, Counter};
use ombak_types::Actor;
use ombak_types::etf::Term;

const TAG: u8 = 71;
const GROW_ONLY_TAG: u8 = 70;

pub(super) fn read(payload: &Payload<'_>) -> Result<Counter, BadBytes> {
    payload.expect(TAG, &[1, 2])?;
    let mut counter = Counter::new();
    if payload.version == 1 {
        let (added, rest) = split_name(payload.rest)?;
        let (subtracted, rest) = split_name(rest)?;
        if !rest.is_empty() {
            return Err(BadBytes::TrailingBytes);
        }
        for (actor, added) in read_grow_only(added)? {
            counter.insert(actor, Tally { added, subtracted: 0 });
        }
        for (actor, subtracted) in read_grow_only(subtracted)? {
            counter.insert(actor, Tally { added: 0, subtracted });
        }
        return Ok(counter);
    }
    for term in terms::list(&payload.term()?)? {
        let [actor, added, subtracted] = term.as_tuple().ok_or(BadBytes::Unexpected("tally"))?;
        let tally = Tally { added: terms::amount(added)?, subtracted: terms::amount(subtracted)? };
        counter.insert(terms::actor(actor)?, tally);
    }
    Ok(counter)
}

fn read_grow_only(bytes: &[u8]) -> Result<Vec<(Actor, u128)>, BadBytes> {
    let payload = Payload::split(bytes)?;
    payload.expect(GROW_ONLY_TAG, &[1])?;
    let pair = |(actor, amount): &(Term, Term)| Ok((terms::actor(actor)?, terms::amount(amount)?));
    terms::pairs(&payload.term()?)?.iter().map(pair).collect()
}

pub(super) fn write(counter: &Counter) -> Vec<u8> {
    let tally = |(actor, tally): (&Actor, &Tally)| {
        let (added, subtracted) = (terms::amount_term(tally.added), terms::amount_term(tally.subtracted));
        Term::Tuple(vec![terms::actor_term(actor), added, subtracted])
    };
    payload::of_term(TAG, 2, &Term::List(counter.tallies().map(tally).collect()))
}

/// Version 1, which Riak 1.4 reads and which all later versions store for these counters.
pub(super) fn write_legacy(counter: &Counter) -> Vec<u8> {
    let mut out = vec![TAG, 1];
    for side in [|tally: &Tally| tally.added, |tally: &Tally| tally.subtracted] {
        let pair = |(actor, tally)| Term::pair(terms::actor_term(actor), terms::amount_term(side(tally)));
        let counts = counter.tallies().filter(|(_, tally)| side(tally) > 0).map(pair);
        let bytes = payload::plain_of_term(GROW_ONLY_TAG, 1, &Term::List(counts.collect()));
        out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        out.extend_from_slice(&bytes);
    }
    out
}
