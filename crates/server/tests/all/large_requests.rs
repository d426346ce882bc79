//! Requests that take long to process, and other requests at the same time.

use crate::support::Home;
use ombak_client::Client;
use ombak_client::messages::{RpbContent, RpbPair, RpbPutReq};
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const CLIENTS: usize = 4;
const INDEX_ENTRIES: usize = 40_000;
const SMALL_PUTS: usize = 40;

fn put(key: &str, content: RpbContent) -> RpbPutReq {
    let (bucket, key) = (Some("b".into()), Some(key.to_owned().into()));
    RpbPutReq { bucket, key, content: Some(content), ..RpbPutReq::default() }
}

/// An object with very many index entries, which differ from one `round` to the next.
fn large(round: usize) -> RpbContent {
    let entry = |n: usize| RpbPair { key: "field_bin".into(), value: Some(format!("term-{round}-{n}").into()) };
    RpbContent {
        value: vec![1; 1024].into(),
        indexes: (0..INDEX_ENTRIES).map(entry).collect(),
        ..RpbContent::default()
    }
}

/// Puts large objects until told to stop or until the node ends. Returns how long each put took.
async fn put_large_objects(address: String, key: String, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut client = Client::connect(&address).await.expect("connects");
    let (first, second) = (put(&key, large(1)), put(&key, large(2)));
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let request = if took.len() % 2 == 0 { &first } else { &second };
        if client.put_with(request).await.is_err() {
            break;
        }
        took.push(began.elapsed());
    }
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_put_does_not_wait_for_large_ones_and_the_node_stops_under_them() {
    let home = Home::new("storage_backend = leveled");
    let node = home.start();
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        clients.spawn(put_large_objects(node.pb.clone(), format!("large-{n}"), Arc::clone(&stop)));
    }
    // There are several connections, so that each network thread of the node serves some of them.
    let mut small = Vec::new();
    for _ in 0..CLIENTS {
        small.push(Client::connect(&node.pb).await.expect("connects"));
    }
    let content = RpbContent { value: vec![2; 1024].into(), ..RpbContent::default() };
    let mut took = Vec::new();
    for n in 0..SMALL_PUTS {
        let began = Instant::now();
        small[n % CLIENTS].put_with(&put(&format!("small-{n}"), content.clone())).await.expect("put");
        took.push(began.elapsed());
    }
    let small_took = median(took);
    node.signal(Signal::TERM);
    assert_eq!(node.wait(), Some(0));
    stop.store(true, Ordering::Relaxed);
    let large_took = median(clients.join_all().await.concat());
    assert!(small_took * 4 < large_took, "small puts took {small_took:?}, large ones {large_took:?}");
    home.assert_no_errors_logged();
}
