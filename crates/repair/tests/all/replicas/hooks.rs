//! Features attach to the engine through hooks, and the engine knows none of them.

use crate::replicas::cluster::{Cluster, bucket, count};
use crate::replicas::work::Work;
use bytes::Bytes;
use ombak_kv::hooks::{Change, Hooks, KindGate, PutFilter, ValueKind, WriteObserver};
use ombak_kv::{GetOptions, GetReply, Holdings, Kv, PutOptions};
use ombak_types::{Bucket, BucketProps, Dot, Error, Object, Sibling, VectorClock};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Notes for each change whether there was a version before and is one after it, and whether the
/// new clock has seen the old one.
#[derive(Default)]
struct Notes(Mutex<Vec<(bool, bool, bool)>>);

impl WriteObserver for Notes {
    fn changed(&self, change: &Change<'_>) {
        let descends = match (change.old, change.new) {
            (Some(old), Some(new)) => new.clock.descends(&old.clock),
            _ => true,
        };
        self.0.lock().push((change.old.is_some(), change.new.is_some(), descends));
    }
}

#[tokio::test]
async fn an_observer_learns_of_each_change_whoever_made_it() {
    let notes: Arc<Notes> = Arc::default();
    let observers = notes.clone();
    let cluster = Cluster::configured(3, |config| {
        config.hooks = Hooks { observers: vec![observers.clone()], ..Hooks::default() };
    });
    cluster.start_reaping();
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    assert_eq!(*notes.0.lock(), [(false, true, true); 3], "the client's write, and two of other nodes");
    cluster.delete(1, "k").await;
    cluster.wait_until("the tombstone is gone", || cluster.holders("k").is_empty()).await;
    let seen = notes.0.lock().clone();
    assert_eq!(seen[3..6], [(true, true, true); 3], "the tombstones");
    assert_eq!(seen[6..9], [(true, true, true); 3], "the tombstones lose their times");
    assert_eq!(seen[9..], [(true, false, true); 3], "the removals");
}

/// The copy of one node can be read only in part, and a read replaces it.
#[tokio::test]
async fn an_observer_learns_what_a_repair_has_replaced() {
    let notes: Arc<Notes> = Arc::default();
    let observers = notes.clone();
    let cluster = Cluster::configured(3, |config| {
        config.hooks = Hooks { observers: vec![observers.clone()], ..Hooks::default() };
    });
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let faults = &cluster.faults[1];
    faults.set(&faults.values_fail, true);
    cluster.get(1, "k", GetOptions::default()).await.unwrap();
    cluster.wait_until("the copy is repaired", || notes.0.lock().len() == 4).await;
    assert_eq!(notes.0.lock()[3], (true, true, true));
}

/// Refuses values that are too long, and marks the others.
struct Censor;

impl PutFilter for Censor {
    fn before_put(&self, on: &Bucket, _key: &[u8], _props: &BucketProps, object: &mut Object) -> Result<(), Error> {
        assert_eq!(*on, bucket());
        for sibling in object.siblings.iter_mut().filter(|sibling| !sibling.meta.deleted) {
            if sibling.value.len() > 8 {
                return Err(Error::PrecommitFail(None));
            }
            sibling.meta.charset = Some("seen".into());
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_filter_changes_or_refuses_what_a_client_puts() {
    let cluster = Cluster::configured(5, |config| {
        config.hooks = Hooks { filters: vec![Arc::new(Censor)], ..Hooks::default() };
    });
    for through in 0..5 {
        let refused = cluster.put(through, "k", "much too long", PutOptions::default()).await;
        assert_eq!(refused, Err(Error::PrecommitFail(None)), "also when another node coordinates");
    }
    assert_eq!(cluster.holders("k"), [] as [usize; 0]);
    cluster.put(0, "k", "short", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let GetReply::Found(object) = cluster.get(1, "k", GetOptions::default()).await.unwrap() else { panic!("absent") };
    assert_eq!(object.siblings[0].meta.charset.as_deref(), Some(&b"seen"[..]));
}

/// Closes and opens a part in the middle of a put: after it has looked at the properties of its
/// bucket, and before it stores anything.
#[derive(Default)]
struct ClosesInTheMiddle(Arc<OnceLock<(Vec<Kv>, Holdings)>>);

impl PutFilter for ClosesInTheMiddle {
    fn before_put(&self, _on: &Bucket, _key: &[u8], _props: &BucketProps, _object: &mut Object) -> Result<(), Error> {
        let Some((nodes, part)) = self.0.get() else { return Ok(()) };
        for kv in nodes {
            kv.close_part_to_writes(part);
            kv.open_part_to_writes();
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_put_from_before_the_closing_of_its_bucket_reaches_no_replica_and_other_buckets_go_on() {
    let of_type = Holdings::Type("another".into());
    for (part, is_refused) in [
        (Holdings::Bucket(bucket()), true),
        (Holdings::Everything, true),
        (Holdings::Bucket(Bucket::untyped("other")), false),
        (of_type, false),
    ] {
        for asis in [false, true] {
            let closes: Arc<OnceLock<(Vec<Kv>, Holdings)>> = Arc::default();
            let there = closes.clone();
            let cluster = Cluster::configured(3, |config| {
                config.hooks = Hooks { filters: vec![Arc::new(ClosesInTheMiddle(there.clone()))], ..Hooks::default() };
            });
            assert!(closes.set((cluster.nodes.clone(), part.clone())).is_ok());
            let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("v")] };
            let options = PutOptions { asis, w: count(1), ..PutOptions::default() };
            let put = cluster.put_object(0, "k", object, options).await;
            assert_eq!(put.is_err(), is_refused, "{part:?}, asis {asis}: {put:?}");
            assert_eq!(cluster.holders("k").is_empty(), is_refused, "{part:?}, asis {asis}");
        }
    }
}

/// A counter: each actor's sum of what it has added.
#[derive(Debug)]
struct Counter;

type Sums = BTreeMap<String, u64>;

fn sums_of(sibling: &Sibling) -> Sums {
    let text = str::from_utf8(&sibling.value).unwrap();
    let entry = |entry: &str| entry.split_once('=').map(|(actor, sum)| (actor.to_owned(), sum.parse().unwrap()));
    text.split(' ').filter_map(entry).collect()
}

fn sibling_of(sums: &Sums, like: &Sibling) -> Sibling {
    let entries: Vec<String> = sums.iter().map(|(actor, sum)| format!("{actor}={sum}")).collect();
    Sibling { value: entries.join(" ").into(), meta: like.meta.clone() }
}

fn merged(one: Sibling, other: Sibling) -> Sibling {
    let mut sums = sums_of(&one);
    for (actor, sum) in sums_of(&other) {
        let mine = sums.entry(actor).or_default();
        *mine = sum.max(*mine);
    }
    // Every order of merges gives the same metadata.
    let like = if (&one.meta.vtag, &one.value) >= (&other.meta.vtag, &other.value) { &one } else { &other };
    sibling_of(&sums, like)
}

impl ValueKind for Counter {
    fn number(&self) -> u16 {
        7
    }

    fn serves(&self, props: &BucketProps) -> bool {
        props.allow_mult
    }

    fn operation_of(&self, _props: &BucketProps, value: &Sibling) -> Option<Bytes> {
        Some(value.value.clone())
    }

    fn begins(&self, _props: &BucketProps, values: &[Sibling]) -> bool {
        values.is_empty()
    }

    fn apply(
        &self,
        _props: &BucketProps,
        values: &mut Vec<Sibling>,
        operation: &Sibling,
        event: &Dot,
    ) -> Result<Sibling, Error> {
        let local = self.merge(std::mem::take(values)).pop();
        let more: u64 = str::from_utf8(&operation.value)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Error::Unsupported("not a number".into()))?;
        let mut sums = local.as_ref().map(sums_of).unwrap_or_default();
        *sums.entry(format!("{:?}", event.actor)).or_default() += more;
        Ok(sibling_of(&sums, operation))
    }

    fn merge(&self, values: Vec<Sibling>) -> Vec<Sibling> {
        values.into_iter().reduce(merged).into_iter().collect()
    }

    fn show(&self, value: Sibling) -> Result<Sibling, Error> {
        Ok(value)
    }
}

#[tokio::test]
async fn a_kind_of_values_applies_operations_and_merges_what_was_concurrent() {
    let cluster = Cluster::configured(3, |config| {
        config.hooks = Hooks { kinds: vec![Arc::new(Counter)], ..Hooks::default() };
    });
    for round in 1..=5u64 {
        let all = || PutOptions { w: count(3), ..PutOptions::default() };
        let (a, b, c) = tokio::join!(
            cluster.put(0, "k", "1", all()),
            cluster.put(1, "k", "2", all()),
            cluster.put(2, "k", "3", all())
        );
        assert_eq!((a, b, c), (Ok(()), Ok(()), Ok(())));
        for through in 0..3 {
            let options = GetOptions { r: count(3), ..GetOptions::default() };
            let GetReply::Found(object) = cluster.get(through, "k", options).await.unwrap() else { panic!("absent") };
            let [value] = &object.siblings[..] else { panic!("{object:?}") };
            assert_eq!(sums_of(value).values().sum::<u64>(), round * 6, "nothing is lost or counted twice");
        }
    }
    assert!(cluster.put(0, "k", "no number", PutOptions::default()).await.is_err());
}

/// Opens when it is told to.
#[derive(Default)]
struct Gate(AtomicBool);

impl KindGate for Gate {
    fn may_write(&self) -> Result<(), Error> {
        let is_open = self.0.load(Ordering::SeqCst);
        if is_open { Ok(()) } else { Err(Error::Unsupported("not yet".into())) }
    }
}

#[tokio::test]
async fn while_the_gate_is_closed_operations_are_refused_and_plain_values_stay_plain() {
    let gate: Arc<Gate> = Arc::default();
    let asked = gate.clone();
    let cluster = Cluster::configured(3, |config| {
        let kind_gate: Option<Arc<dyn KindGate>> = Some(asked.clone());
        config.hooks = Hooks { kinds: vec![Arc::new(Counter)], kind_gate, ..Hooks::default() };
    });
    let operation = || PutOptions { operation: Some(7), w: count(3), ..PutOptions::default() };
    let all = || PutOptions { w: count(3), ..PutOptions::default() };
    for through in 0..3 {
        let refused = cluster.put(through, "k", "1", operation()).await;
        assert_eq!(refused, Err(Error::Unsupported("not yet".into())));
    }
    assert_eq!(cluster.holders("k"), [] as [usize; 0]);
    cluster.put(0, "plain", "no number", all()).await.unwrap();
    gate.0.store(true, Ordering::SeqCst);
    cluster.put(0, "k", "1", operation()).await.unwrap();
    assert!(cluster.put(0, "plain", "no number", all()).await.is_err(), "now it is an operation");
}
