//! The histories of docs/design/datatypes.md that break simpler rules, as the code meets them.

use super::*;
use crate::testing::{actor, bytes};
use crate::{Precision, Refusal, Request, SetOp, Value};
use ombak_types::clock::Dot;
use ombak_types::props::DataType;

/// A copy of a set: its state and its log, here without bytes.
#[derive(Clone)]
struct Copy {
    state: State,
    log: Log,
}

impl Copy {
    fn new() -> Self {
        let state = State::new(DataType::Set, Precision::DEFAULT);
        Self { log: Log::new(VectorClock::new(), &state), state }
    }

    fn put(&mut self, replica: usize, ops: &[SetOp]) -> Record {
        self.try_put(replica, ops).unwrap()
    }

    fn try_put(&mut self, replica: usize, ops: &[SetOp]) -> Result<Record, Refusal> {
        let delta = self.state.delta(&Request::Set(ops.to_vec()), &actor(replica), None)?;
        let before = self.log.clock().clone();
        let dot = Dot { counter: before.counter(&actor(replica)) + 1, actor: actor(replica), stamp_secs: 0 };
        let record = Record { before, dot, delta };
        assert_eq!(self.take(&record), Offered::Taken);
        Ok(record)
    }

    fn take(&mut self, record: &Record) -> Offered {
        let offered = self.log.offer(record);
        if offered == Offered::Taken {
            self.state.merge_delta(&record.delta).unwrap();
        }
        offered
    }

    fn members(&self) -> Vec<Bytes> {
        match self.state.value() {
            Value::Set(members) => members,
            other => panic!("{other:?}"),
        }
    }
}

fn add(name: &str) -> SetOp {
    SetOp::Add(bytes(name))
}

fn remove(name: &str) -> SetOp {
    SetOp::Remove(bytes(name))
}

#[test]
fn a_record_behind_a_lost_one_is_not_taken() {
    let (mut a, mut b) = (Copy::new(), Copy::new());
    let lost = a.put(0, &[add("x")]);
    let next = a.put(0, &[add("y")]);
    assert_eq!(b.take(&next), Offered::MissingPast);
    assert!(b.members().is_empty() && b.log.clock().is_empty());
    assert_eq!((b.take(&lost), b.take(&next)), (Offered::Taken, Offered::Taken));
    assert_eq!(b.members(), a.members());
}

/// The set's clock does not tell that a removal was lost. The object's clock does.
#[test]
fn a_lost_removal_shows_in_the_objects_clock_alone() {
    let (mut a, mut b) = (Copy::new(), Copy::new());
    assert_eq!(b.take(&a.put(0, &[add("x")])), Offered::Taken);
    a.put(0, &[remove("x")]);
    let next = a.put(0, &[add("y")]);
    let mut deceived = b.clone();
    deceived.state.merge_delta(&next.delta).unwrap();
    assert_eq!(deceived.members(), [bytes("x"), bytes("y")]);
    assert_eq!(b.take(&next), Offered::MissingPast);
    let Lacks::Records(lacked) = a.log.lacks(b.log.clock()).unwrap() else { panic!("the tail has all") };
    assert!(lacked.iter().all(|record| b.take(record) == Offered::Taken));
    assert_eq!(b.members(), [bytes("y")]);
}

/// Why a put that prunes sends the whole state: the pruned clock hides what it builds on.
#[test]
fn a_pruned_clock_would_hide_a_gap() {
    let (mut a, mut b, mut c) = (Copy::new(), Copy::new(), Copy::new());
    let added = c.put(2, &[add("x")]);
    assert_eq!((a.take(&added), b.take(&added)), (Offered::Taken, Offered::Taken));
    let lost = c.put(2, &[remove("x")]);
    assert_eq!(a.take(&lost), Offered::Taken);
    let mut next = a.put(0, &[add("y")]);
    assert_eq!(b.clone().take(&next), Offered::MissingPast);
    next.before = VectorClock::new();
    assert_eq!(b.take(&next), Offered::Taken);
    assert_eq!((a.members(), b.members()), (vec![bytes("y")], vec![bytes("x"), bytes("y")]));
}

/// Why a value does not begin anew with the actor of a deleted one: the same dot names two members,
/// and each copy takes the other's for one that it has removed.
#[test]
fn an_actor_that_begins_anew_loses_members() {
    let mut deleted = Copy::new();
    deleted.put(0, &[add("x")]);
    let mut begun = Copy::new();
    begun.put(0, &[add("y")]);
    begun.state.merge(&deleted.state).unwrap();
    assert!(begun.members().is_empty());

    let mut other_actor = Copy::new();
    other_actor.put(1, &[add("y")]);
    other_actor.state.merge(&deleted.state).unwrap();
    assert_eq!(other_actor.members(), [bytes("x"), bytes("y")]);

    let left = deleted.state.emptied();
    let mut goes_on = Copy { log: Log::new(VectorClock::new(), &left), state: left };
    goes_on.put(0, &[add("y")]);
    goes_on.state.merge(&deleted.state).unwrap();
    assert_eq!(goes_on.members(), [bytes("y")]);
}

/// What a log takes can be folded, also if a node makes a mistake.
#[test]
fn a_record_that_cannot_be_folded_is_not_taken() {
    let mut a = Copy::new();
    let mut record = a.put(0, &[add("x")]);
    let mut b = Copy::new();
    let counted = State::new(DataType::Counter, Precision::DEFAULT).delta(&Request::Counter(1), &actor(0), None);
    let delta = std::mem::replace(&mut record.delta, counted.unwrap());
    assert_eq!(b.log.offer(&record), Offered::WrongType);
    record.delta = a.put(0, &[add("y")]).delta;
    assert_eq!(b.log.offer(&record), Offered::MissingPast);
    record.delta = delta;
    assert_eq!(b.log.offer(&record), Offered::Taken);
}

/// A quick delta is not made where the value decides.
#[test]
fn a_removal_without_a_context_needs_the_value() {
    let mut a = Copy::new();
    assert!(a.try_put(0, &[remove("x")]).is_err());
    a.put(0, &[add("x")]);
    let removal = Request::Set(vec![remove("x")]);
    let quick = |context| a.log.delta(&removal, Precision::DEFAULT, &actor(0), context);
    assert_eq!(quick(None), None);
    assert_eq!(
        quick(Some(a.log.seen())).as_ref(),
        a.state.delta(&removal, &actor(0), Some(a.log.seen())).ok().as_ref()
    );
}
