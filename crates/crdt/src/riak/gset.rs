//! Sets that only grow: tag 82, an ordered list of members. Versions 1 and 2 are the same.

use super::payload::{self, Payload};
use super::terms;
use crate::{BadBytes, GSet};
use ombak_types::etf::Term;

const TAG: u8 = 82;

pub(super) fn read(payload: &Payload<'_>) -> Result<GSet, BadBytes> {
    payload.expect(TAG, &[1, 2])?;
    terms::list(&payload.term()?)?.iter().map(terms::binary).collect()
}

pub(super) fn write(set: &GSet) -> Vec<u8> {
    let members = set.members().map(|member| Term::Binary(member.clone())).collect();
    payload::of_term(TAG, 2, &Term::List(members))
}
