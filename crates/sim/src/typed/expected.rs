//! What the histories of the clients allow at the end.

use super::key::{TypedKey, TypedKind};
use bytes::Bytes;
use ombak_crdt::{FieldValue, State, Value};
use std::collections::BTreeMap;

/// The name of the counter in a map.
pub(super) const COUNTER_FIELD: &str = "n";
/// The name of the set in a map.
pub(super) const SET_FIELD: &str = "s";

/// What was tried with a member, which is added once.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    is_added: bool,
    is_removal_tried: bool,
    is_removed: bool,
}

/// What the histories of the clients allow at the end.
#[derive(Default)]
pub(crate) struct Expected {
    fates: BTreeMap<(TypedKey, Bytes), Fate>,
    /// Between which sums each counter is.
    sums: BTreeMap<TypedKey, (i128, i128)>,
    pub(super) acknowledged: u64,
    pub(super) removals: u64,
    pub(super) deletions: u64,
    pub(super) failed: u64,
}

impl Expected {
    /// A client is about to add a member, which nobody has added before.
    pub(super) fn adds(&mut self, key: TypedKey, member: &Bytes) {
        self.fates.insert((key, member.clone()), Fate::default());
    }

    pub(super) fn added(&mut self, key: TypedKey, member: &Bytes, is_acknowledged: bool) {
        self.ended(is_acknowledged);
        self.fates.entry((key, member.clone())).or_default().is_added = is_acknowledged;
    }

    /// A client is about to remove what it has seen.
    pub(super) fn removes(&mut self, key: TypedKey, member: &Bytes) {
        self.fates.entry((key, member.clone())).or_default().is_removal_tried = true;
    }

    pub(super) fn removed(&mut self, key: TypedKey, member: &Bytes, is_acknowledged: bool) {
        self.ended(is_acknowledged);
        self.removals += u64::from(is_acknowledged);
        self.fates.entry((key, member.clone())).or_default().is_removed |= is_acknowledged;
    }

    /// A client is about to delete a set in which it has seen these members.
    pub(super) fn deletes(&mut self, key: TypedKey, members: &[Bytes]) {
        members.iter().for_each(|member| self.removes(key, member));
    }

    /// A set to which somebody adds meanwhile stays as a whole, as in Riak: with what the client of
    /// the deletion had seen, and with members whose removal only the deleted copies knew.
    pub(super) fn deleted(&mut self, is_acknowledged: bool) {
        self.ended(is_acknowledged);
        self.deletions += u64::from(is_acknowledged);
    }

    pub(super) fn counted(&mut self, key: TypedKey, amount: i64, is_acknowledged: bool) {
        self.ended(is_acknowledged);
        let (least, most) = self.sums.entry(key).or_default();
        *least += i128::from(if is_acknowledged { amount } else { amount.min(0) });
        *most += i128::from(if is_acknowledged { amount } else { amount.max(0) });
    }

    fn ended(&mut self, is_acknowledged: bool) {
        self.acknowledged += u64::from(is_acknowledged);
        self.failed += u64::from(!is_acknowledged);
    }

    /// Says what is wrong with a value.
    pub(super) fn check(&self, key: TypedKey, state: Option<&State>) -> Result<(), String> {
        let (sum, members) = state.map(parts_of).unwrap_or_default();
        let (least, most) = self.sums.get(&key).copied().unwrap_or_default();
        if key.kind != TypedKind::Set && !(least..=most).contains(&sum) {
            return Err(format!("the sum is {sum}, and not between {least} and {most}"));
        }
        for ((_, member), fate) in self.fates.iter().filter(|((of, _), _)| *of == key) {
            let is_present = members.contains(member);
            let must_be_present = fate.is_added && !fate.is_removal_tried;
            let must_be_absent = fate.is_removed && !key.is_deleted_at_times();
            if is_present && must_be_absent || !is_present && must_be_present {
                return Err(format!("{member:?} is {}: {fate:?}", if is_present { "there" } else { "not there" }));
            }
        }
        match members.iter().find(|member| !self.fates.contains_key(&(key, (*member).clone()))) {
            Some(unknown) => Err(format!("{unknown:?} was added by nobody")),
            None => Ok(()),
        }
    }
}

/// The sum of the counter of a value, and its members. Those of a map are the members of its set
/// and the names of its registers.
pub(super) fn parts_of(state: &State) -> (i128, Vec<Bytes>) {
    match state.value() {
        Value::Counter(sum) => (sum, Vec::new()),
        Value::Set(members) => (0, members),
        Value::Map(fields) => {
            let (mut sum, mut all) = (0, Vec::new());
            for (field, value) in fields {
                match value {
                    FieldValue::Counter(of_map) => sum = of_map,
                    FieldValue::Set(members) => all.extend(members),
                    FieldValue::Register(_) => all.push(field.name),
                    FieldValue::Map(_) | FieldValue::Flag(_) => {}
                }
            }
            (sum, all)
        }
        Value::GSet(_) | Value::Hll(_) => (0, Vec::new()),
    }
}
