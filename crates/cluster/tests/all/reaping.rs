//! Tombstones are removed by rounds over real sockets (docs/design/replication.md §6).

use crate::support;

use crate::support::{Cluster, soon, until};
use ombak_kv::{DeleteMode, DeleteRequest, GetOptions};

#[tokio::test]
async fn a_deleted_key_leaves_no_tombstone_on_any_node() {
    let cluster = Cluster::configured(4, |parts| parts.kv.delete_mode = DeleteMode::Immediate);
    for number in 0..10 {
        let key = format!("k{number}");
        soon(cluster.put(number % 4, &key, "v", support::with_w(3))).await.unwrap();
        let get = GetOptions { r: Some(ombak_types::Quorum::All), ..GetOptions::default() };
        let bucket = support::bucket();
        let request =
            DeleteRequest { bucket, key: key.clone().into(), clock: None, get, put: support::with_w(3), rw: None };
        assert!(soon(cluster.node((number + 1) % 4).kv().delete(request)).await.unwrap().found);
        until("the tombstone is gone", || (0..4).all(|node| cluster.stored(node, &key).is_none())).await;
        soon(cluster.put(number % 4, &key, "w", support::with_w(3))).await.unwrap();
        assert_eq!(soon(cluster.values(0, &key)).await, ["w"]);
    }
    cluster.stop().await;
}
