//! Imports while the node takes no writes, or is about to take none.

use crate::support::{Node, bucket};
use ombak_kv::{Holdings, ImportOutcome, Kv};
use ombak_runtime::{OtherClocks, Runtime, TokioRuntime};
use ombak_types::{Bucket, Error, Object, Sibling, StoreFailureKind, VectorClock};
use parking_lot::Mutex;
use std::sync::Arc;

fn import(kv: &Kv, bucket: &Bucket) -> Result<ImportOutcome, Error> {
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("v")] };
    kv.importer().import(bucket, b"k", object)
}

fn assert_closed(imported: &Result<ImportOutcome, Error>) {
    let is_closed =
        matches!(imported, Err(Error::Storage(failure)) if failure.kind == StoreFailureKind::ClosedToWrites);
    assert!(is_closed, "{imported:?}");
}

fn is_empty(kv: &Kv, bucket: &Bucket) -> bool {
    kv.find_object(&Holdings::Bucket(bucket.clone())).unwrap().is_none()
}

#[test]
fn an_import_is_refused_while_the_node_or_the_bucket_takes_no_writes() {
    let (node, other) = (Node::start(), Bucket::untyped("other"));
    node.kv.close_to_writes();
    assert_closed(&import(&node.kv, &bucket()));
    node.kv.open_to_writes();
    node.kv.close_part_to_writes(&Holdings::Bucket(bucket()));
    assert_closed(&import(&node.kv, &bucket()));
    assert_eq!(import(&node.kv, &other), Ok(ImportOutcome::New));
    assert!(is_empty(&node.kv, &bucket()));
    node.kv.open_part_to_writes();
    assert_eq!(import(&node.kv, &bucket()), Ok(ImportOutcome::New));
}

/// What is closed and opened again in the middle of an import: after it has looked at the ring and
/// at the properties of its bucket, and before it stores anything.
type InTheMiddle = Arc<Mutex<Option<(Kv, Holdings)>>>;

/// A node that closes and opens when it looks at its wall clock.
fn node_that_closes(in_the_middle: &InTheMiddle) -> Node {
    let closes = in_the_middle.clone();
    let runtime = OtherClocks::of(Arc::new(TokioRuntime)).with_wall_clock(move || {
        let in_the_middle = closes.lock().clone();
        if let Some((kv, part)) = in_the_middle {
            kv.close_part_to_writes(&part);
            kv.open_part_to_writes();
        }
        TokioRuntime.wall_clock()
    });
    Node::configured(|config| config.runtime = Arc::new(runtime))
}

#[test]
fn an_import_from_before_the_closing_of_its_bucket_stores_nothing() {
    for (part, is_refused) in [
        (Holdings::Bucket(bucket()), true),
        (Holdings::Everything, true),
        (Holdings::Bucket(Bucket::untyped("other")), false),
    ] {
        let in_the_middle = InTheMiddle::default();
        let node = node_that_closes(&in_the_middle);
        *in_the_middle.lock() = Some((node.kv.clone(), part.clone()));
        let imported = import(&node.kv, &bucket());
        *in_the_middle.lock() = None;
        if is_refused {
            assert_closed(&imported);
        } else {
            assert_eq!(imported, Ok(ImportOutcome::New), "{part:?}");
        }
        assert_eq!(is_empty(&node.kv, &bucket()), is_refused, "{part:?}");
    }
}
