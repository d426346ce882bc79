//! A machine's clock that goes back: a later write nevertheless has a later timestamp.

use crate::support::{Node, found, map, values};
use ombak_runtime::OtherClocks;
use ombak_types::VectorClock;
use ombak_types::time::UnixMicros;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// In a bucket without siblings Riak resolves conflicts by these timestamps: a value with an older
/// one would lose.
#[tokio::test]
async fn a_write_is_stamped_later_than_what_it_replaces_although_the_clock_went_back() {
    let buckets = [
        json!({"allow_mult": true, "dvv_enabled": true}),
        json!({"allow_mult": false}),
        json!({"allow_mult": false, "last_write_wins": true}),
    ];
    for props in buckets {
        let now_micros = Arc::new(AtomicU64::new(2_000_000_000));
        let clock = now_micros.clone();
        let node = Node::configured(|config| {
            config.default_props = map(props.clone());
            let clock = move || UnixMicros(clock.load(Ordering::SeqCst));
            config.runtime = Arc::new(OtherClocks::of(config.runtime.clone()).with_wall_clock(clock));
        });
        let first = node.put_back("key", "first", VectorClock::new()).await;
        let mut newest = first.last_modified().unwrap();
        assert_eq!(newest, UnixMicros(2_000_000_000), "{props}");
        now_micros.store(1_000_000_000, Ordering::SeqCst);
        let mut seen = first.clock;
        for value in ["second", "third"] {
            let written = node.put_back("key", value, seen).await;
            let stamp = written.last_modified().unwrap();
            assert_eq!(stamp, UnixMicros(newest.0 + 1), "{props}: {value}");
            assert_eq!(values(&found(node.get("key").await.unwrap())), [value], "{props}");
            (newest, seen) = (stamp, written.clock);
        }
        // The value of a client without a context is added beside the others if the bucket keeps
        // siblings; otherwise it replaces them.
        let blind = node.put_back("key", "blind", VectorClock::new()).await;
        assert_eq!(blind.last_modified(), Some(UnixMicros(newest.0 + 1)), "{props}");
        assert!(values(&found(node.get("key").await.unwrap())).contains(&"blind".to_owned()), "{props}");
    }
}
