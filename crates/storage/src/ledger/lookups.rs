//! Looks many keys up in a snapshot of a ledger.
//!
//! The keys are taken in the order of the ledger. Where they lie close together, a walk over the
//! ledger passes beside them, because passing an entry costs a fraction of a look-up. Where they
//! lie apart, each is looked up alone.
//!
//! Invariants:
//! * The answers are those of `get_at` for each key.
//! * Whatever the keys are, walks add little to what looking each of them up would cost:
//!   [`Allowance`] bounds how many entries they pass, and [`HIDDEN_BY_KEY`] bounds how many the
//!   library passes inside.

use super::index::{LedgerIndex, LedgerView};
use super::keys::{LedgerKey, store_key};
use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::journal::{Entry, KeyIndex};
use std::cmp::Ordering;
use std::ops::Bound;

/// No walk is begun for fewer keys.
const WALKED_KEYS_MIN: usize = 16;
/// How many entries a walk may pass beyond those that its keys have earned.
const UNEARNED_MAX: usize = 16;
/// How many entries a walk may pass for each key that it has answered. To pass more costs more than
/// to look the key up.
const EARNED_BY_KEY: usize = 3;
/// No walk is begun where there may be more entries for each key that a snapshot does not show.
const HIDDEN_BY_KEY: u64 = 8;
/// How many keys are looked up alone after a walk. After a walk of little use, it is this many
/// times as many.
const ALONE_MIN: usize = 16;
const ALONE_GROWTH: usize = 4;

/// How many entries a walk may still pass.
struct Allowance(usize);

impl Allowance {
    fn new() -> Self {
        Self(UNEARNED_MAX)
    }

    /// A key was answered. What was earned among many neighbours is not spent where there are few.
    fn earn(&mut self) {
        self.0 = (self.0 + EARNED_BY_KEY).min(UNEARNED_MAX + EARNED_BY_KEY);
    }

    /// An entry was passed. Returns whether the walk may go on.
    fn spend(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// The keys that are looked up, and the answers so far.
struct Lookups<'a> {
    keys: &'a [&'a [u8]],
    /// The places of different keys in `keys`, in the order of the ledger.
    order: Vec<usize>,
    /// The places of keys that `order` has already, and where.
    repeated: Vec<(usize, usize)>,
    /// How many of `order` are answered.
    answered: usize,
    answers: Vec<Option<Entry>>,
}

impl<'a> Lookups<'a> {
    fn new(keys: &'a [&'a [u8]]) -> Self {
        let mut order: Vec<usize> = (0..keys.len()).filter(|place| !LedgerKey::is_cut(keys[*place])).collect();
        order.sort_unstable_by_key(|place| keys[*place]);
        let mut repeated = Vec::new();
        order.dedup_by(|place, kept| {
            let is_repeated = keys[*place] == keys[*kept];
            if is_repeated {
                repeated.push((*place, *kept));
            }
            is_repeated
        });
        Self { keys, order, repeated, answered: 0, answers: vec![None; keys.len()] }
    }

    /// The keys that have no answer yet.
    fn rest(&self) -> &[usize] {
        self.order.get(self.answered..).unwrap_or_default()
    }

    /// The next key that has no answer yet.
    fn next(&self) -> Option<&'a [u8]> {
        self.rest().first().map(|place| self.keys[*place])
    }

    /// The ledger keys of the first and the last key that have no answer yet.
    fn bounds(&self) -> Option<(LedgerKey, LedgerKey)> {
        let (first, last) = (self.rest().first()?, self.rest().last()?);
        Some((LedgerKey::of_key(self.keys[*first]), LedgerKey::of_key(self.keys[*last])))
    }

    fn answer(&mut self, entry: Option<Entry>) {
        if let Some(place) = self.order.get(self.answered) {
            self.answers[*place] = entry;
            self.answered += 1;
        }
    }

    fn into_answers(mut self) -> Vec<Option<Entry>> {
        self.repeated.iter().for_each(|(place, kept)| self.answers[*place] = self.answers[*kept]);
        self.answers
    }
}

impl<const HAS_VALUES: bool> LedgerIndex<HAS_VALUES> {
    /// The entries of keys; see `KeyIndex::entries_at`.
    pub(super) fn look_up_in_order(
        &self,
        keys: &[&[u8]],
        view: &LedgerView,
    ) -> Result<Vec<Option<Entry>>, StorageError> {
        let (mut lookups, mut alone, mut may_walk) = (Lookups::new(keys), ALONE_MIN, true);
        while !lookups.rest().is_empty() {
            let before = lookups.answered;
            if may_walk && lookups.rest().len() >= WALKED_KEYS_MIN {
                match self.walk_beside(&mut lookups, view) {
                    // It may be an entry that nobody wants.
                    Err(error) if error.is_unreadable_version() => may_walk = false,
                    walked => walked?,
                }
            }
            let was_of_use = lookups.answered - before >= WALKED_KEYS_MIN;
            alone = if was_of_use { ALONE_MIN } else { alone.saturating_mul(ALONE_GROWTH) };
            for _ in 0..alone {
                let Some(key) = lookups.next() else { break };
                lookups.answer(self.entry_at(key, view)?);
            }
        }
        for (place, key) in keys.iter().enumerate().filter(|(_, key)| LedgerKey::is_cut(key)) {
            lookups.answers[place] = self.entry_at(key, view)?;
        }
        Ok(lookups.into_answers())
    }

    fn entry_at(&self, key: &[u8], view: &LedgerView) -> Result<Option<Entry>, StorageError> {
        Ok(self.get_at(key, view, ReadMode::Blocking)?.map(|found| found.entry))
    }

    /// Answers keys from the next one on, as long as they lie close together in the ledger.
    fn walk_beside(&self, lookups: &mut Lookups<'_>, view: &LedgerView) -> Result<(), StorageError> {
        let Some((from, to)) = lookups.bounds() else { return Ok(()) };
        let hidden_max = lookups.rest().len() as u64 * HIDDEN_BY_KEY;
        if self.tree.hidden_between(&from.bytes, &to.bytes) > hidden_max {
            return Ok(());
        }
        let (mut allowance, mut failed, mut goes_on) = (Allowance::new(), None, true);
        let (from, to) = (Bound::Included(&from.bytes[..]), Bound::Included(&to.bytes[..]));
        self.tree.scan(&view.tree, from, to, |ledger_key, value| {
            let met = store_key(ledger_key).unwrap_or_default();
            while let Some(key) = lookups.next() {
                let entry = match key.cmp(met) {
                    Ordering::Greater => break,
                    Ordering::Less => None,
                    Ordering::Equal => match self.decode(&value) {
                        Ok(decoded) => Self::answer(decoded).map(|found| found.entry),
                        Err(error) => {
                            failed = Some(error);
                            break;
                        }
                    },
                };
                lookups.answer(entry);
                allowance.earn();
            }
            goes_on = failed.is_none() && allowance.spend();
            goes_on
        })?;
        // A walk that was not stopped has reached the last key. The others are not there.
        while goes_on && lookups.next().is_some() {
            lookups.answer(None);
        }
        failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
