//! A node that goes on after a pause, and what others hold for it, over real sockets.

use crate::support;

use crate::support::{Cluster, soon, until};
use ombak_cluster::Detection;
use ombak_kv::{Peers, PutOptions};
use ombak_runtime::{OtherClocks, TokioRuntime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A key whose owners are the first three of four nodes.
fn key_of_the_first(cluster: &Cluster) -> String {
    let kv = cluster.node(0).kv();
    let owners: Vec<_> = (0..3).map(|node| cluster.id(node)).collect();
    let mut keys = (0..).map(|number| format!("k{number}"));
    let is_of_them = |key: &String| {
        let share = kv.share_of_key(&support::bucket(), &key.clone().into()).unwrap();
        owners.iter().all(|owner| share.nodes.contains(owner))
    };
    keys.find(is_of_them).unwrap()
}

/// What a node holds for one that asks is brought at once, also before failure detection knows that
/// the node is there again.
#[tokio::test]
async fn what_is_held_for_a_node_that_asks_is_brought_at_once() {
    let cluster = Cluster::of(4);
    let key = key_of_the_first(&cluster);
    let (away, holder) = (cluster.id(0), cluster.node(3).kv());
    until("the node has looked what it holds", || !holder.has_something_for(away)).await;
    cluster.beliefs.set_down(away, true);
    soon(cluster.put(1, &key, "v", support::with_w(3))).await.unwrap();
    until("the fallback has the copy", || cluster.stored(3, &key).is_some()).await;
    assert_eq!(cluster.stored(0, &key), None);
    assert!(!holder.has_something_for(cluster.id(3)));
    assert!(!cluster.node(3).peers().is_up(away));
    until("the copy is brought", || !holder.has_something_for(away)).await;
    assert!(cluster.stored(0, &key).is_some());
    cluster.stop().await;
}

/// The clock of the first node jumps, as after SIGSTOP. Its reads wait, and end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_jumped_asks_the_others_before_it_answers() {
    let ahead_ms = Arc::new(AtomicU64::new(0));
    let number = AtomicUsize::new(0);
    let cluster = Cluster::configured(4, |parts| {
        parts.detection = Some(Detection::default());
        if number.fetch_add(1, Ordering::SeqCst) == 0 {
            let ahead_ms = ahead_ms.clone();
            let now = move || Instant::now() + Duration::from_millis(ahead_ms.load(Ordering::SeqCst));
            parts.kv.runtime = Arc::new(OtherClocks::of(Arc::new(TokioRuntime)).with_monotonic_clock(now));
        }
    });
    let sees = |by: usize, of: usize| by == of || cluster.node(by).peers().is_up(cluster.id(of));
    until("all nodes are up", || (0..4).all(|by| (0..4).all(|of| sees(by, of)))).await;
    let key = key_of_the_first(&cluster);
    soon(cluster.put(1, &key, "v", PutOptions::default())).await.unwrap();
    until("all have it", || (0..3).all(|node| cluster.stored(node, &key).is_some())).await;
    ahead_ms.store(3_000, Ordering::SeqCst);
    assert_eq!(soon(cluster.values_with(0, &key, support::with_r(3))).await, ["v"]);
    let counts = cluster.node(0).transport().counts();
    let answered = (1..4).all(|node| counts[&cluster.id(node)].calls > 0);
    assert!(answered);
    cluster.stop().await;
}
