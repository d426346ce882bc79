//! Bucket properties that a cluster decides.

use crate::replicas::cluster::{Cluster, bucket};
use ombak_kv::buckets::{BucketRecord, RecordChange};
use ombak_kv::buckets::{PropertyAuthority, ProposedChange, Undecided};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;

/// Agrees to every change, and remembers it.
#[derive(Debug, Default)]
struct Agreeing(Mutex<Vec<ProposedChange>>);

impl PropertyAuthority for Agreeing {
    fn decide(&self, change: ProposedChange) -> Result<(), Undecided> {
        self.0.lock().push(change);
        Ok(())
    }

    fn catch_up(&self) {}
}

/// Another node may have changed the properties, and this node learns of it later. If its answer
/// were that nothing is to be done, an acknowledged change would be lost.
#[tokio::test]
async fn a_change_to_what_this_node_takes_for_the_present_state_is_decided_too() {
    let cluster = Cluster::of(1);
    let registry = cluster.nodes[0].buckets();
    let authority = Arc::new(Agreeing::default());
    let props = json!({"r": 1}).as_object().unwrap().clone();
    let known = BucketRecord { overrides: Arc::new(props.clone()), version: 3 };
    registry.follow(authority.clone(), vec![RecordChange::Bucket(bucket(), Some(known))]);
    registry.set_bucket(&bucket(), &props).unwrap();
    registry.reset_bucket(&ombak_types::Bucket::untyped("unknown")).unwrap();
    let decided: Vec<_> = authority.0.lock().iter().map(|change| change.expected).collect();
    assert_eq!(decided, [Some(3), None]);
}
