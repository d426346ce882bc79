//! Requests over several nodes, over real sockets.

use crate::support;

use crate::support::{Cluster, bucket, put_request, soon, until, with_r, with_w};
use bytes::Bytes;
use ombak_cluster::RequestOutcome;
use ombak_kv::{GetOptions, GetReply, PutCondition, PutOptions, PutRequest};
use ombak_types::props::SyncOnWrite;
use ombak_types::{Error, Object, Quorum, Sibling, SiblingMeta, VectorClock};

#[tokio::test]
async fn what_is_put_through_one_node_is_read_through_each() {
    let cluster = Cluster::of(3);
    for (through, key) in [(0, "a"), (1, "b"), (2, "c")] {
        soon(cluster.put(through, key, "v", with_w(3))).await.unwrap();
        for node in 0..3 {
            assert_eq!(soon(cluster.values(node, key)).await, ["v"]);
        }
        assert_eq!(cluster.holders(key), [0, 1, 2]);
    }
    cluster.stop().await;
}

#[tokio::test]
async fn all_that_an_object_has_arrives_at_the_other_nodes() {
    let cluster = Cluster::of(3);
    let meta = SiblingMeta {
        content_type: Some("text/plain".into()),
        charset: Some("utf-8".into()),
        user_meta: vec![("name".into(), "value".into())],
        ..SiblingMeta::default()
    };
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling { value: "v".into(), meta }] };
    let request = PutRequest { bucket: bucket(), key: Some("k".into()), object, options: with_w(3) };
    soon(cluster.node(0).kv().put(request)).await.unwrap();
    let mut seen = Vec::new();
    for node in 0..3 {
        let options = GetOptions { r: Some(Quorum::All), ..GetOptions::default() };
        let GetReply::Found(object) = soon(cluster.get(node, "k", options)).await.unwrap() else { panic!("absent") };
        assert_eq!(object.siblings[0].meta.user_meta, [(Bytes::from("name"), Bytes::from("value"))]);
        seen.push((object, cluster.stored(node, "k")));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
    cluster.stop().await;
}

/// The nodes without a position for a key, of five nodes with three copies.
fn strangers_to(cluster: &Cluster, key: &str) -> Vec<usize> {
    let positions = cluster.node(0).kv().preflist(&bucket(), key.as_bytes()).unwrap();
    let name = |node: usize| cluster.node(node).kv().node_name().to_owned();
    let known = |node: usize| cluster.node(0).peers().members().into_iter().find(|m| m.id == cluster.id(node));
    let names = |node| [Some(name(node)), known(node).map(|member| member.name)];
    let has_position = |node: &usize| positions.iter().any(|p| names(*node).contains(&Some(p.node.clone())));
    (0..cluster.nodes.len()).filter(|node| !has_position(node)).collect()
}

#[tokio::test]
async fn a_node_without_a_position_forwards_a_put_with_all_its_options() {
    let cluster = Cluster::of(5);
    let strangers = strangers_to(&cluster, "k");
    assert_eq!(strangers.len(), 2);
    let through = strangers[0];
    let all = || PutOptions {
        return_body: true,
        sync_on_write: Some(SyncOnWrite::All),
        condition: PutCondition::IfNoneMatch,
        ..with_w(3)
    };
    let reply = soon(cluster.put(through, "k", "v", all())).await.unwrap();
    let object = reply.object.expect("the body was asked for");
    assert_eq!(object.siblings[0].value, "v");
    assert!(object.siblings[0].meta.vtag.is_some() && object.siblings[0].meta.dot.is_some());
    assert_eq!(reply.key, None, "the client gave the key");
    let holders = cluster.holders("k");
    assert!(holders.len() == 3 && !holders.contains(&through), "{holders:?}");
    // The errors of the coordinator arrive with their kind.
    assert_eq!(soon(cluster.put(through, "k", "v", all())).await, Err(Error::MatchFound));
    let stale = PutOptions { condition: PutCondition::IfNotModified(VectorClock::new()), ..with_w(3) };
    assert_eq!(soon(cluster.put(through, "k", "v", stale)).await, Err(Error::Modified));
    let asis = PutOptions { asis: true, ..with_w(3) };
    let copy = PutRequest { object: object.clone(), ..put_request("copy", "", asis) };
    soon(cluster.node(through).kv().put(copy)).await.unwrap();
    let GetReply::Found(stored) = soon(cluster.get(through, "copy", with_r(3))).await.unwrap() else { panic!() };
    assert_eq!(stored, object, "no new event");
    cluster.stop().await;
}

#[tokio::test]
async fn each_question_is_counted_where_it_is_asked_and_where_it_is_served() {
    let cluster = Cluster::of(5);
    let through = strangers_to(&cluster, "k")[0];
    soon(cluster.put(through, "k", "v", with_w(3))).await.unwrap();
    soon(cluster.get(through, "k", with_r(3))).await.unwrap();
    let counts: Vec<_> = (0..5).map(|node| cluster.node(node).replica_counts()).collect();
    let sum = |of: fn(&ombak_stats::ReplicaCounts) -> u64| counts.iter().map(of).sum::<u64>();
    assert_eq!((counts[through].puts_forwarded, sum(|c| c.puts_forwarded), sum(|c| c.puts_coordinated)), (1, 1, 1));
    // A replica whose counter of fences is not known yet is asked twice.
    let stores = sum(|c| c.stores_sent);
    assert!(counts[through].stores_sent == 0 && (2..=4).contains(&stores), "{counts:?}");
    assert_eq!(stores, sum(|c| c.stores_served));
    assert!(counts[through].reads_sent >= 3, "{counts:?}");
    assert_eq!(sum(|c| c.reads_sent), sum(|c| c.reads_served));
    let outcomes: Vec<_> =
        cluster.holders("k").iter().flat_map(|n| cluster.beliefs.outcomes_of(cluster.id(*n))).collect();
    assert!(outcomes.iter().all(|outcome| *outcome == RequestOutcome::Answered), "{outcomes:?}");
    assert_eq!(outcomes.len() as u64, 1 + stores + counts[through].reads_sent);
    // Statistics see the same numbers.
    let figures = cluster.node(through).repair().cluster_figures();
    assert_eq!(figures.replicas, counts[through]);
    let asked = figures.peers.iter().map(|peer| peer.requests).sum::<u64>();
    assert_eq!((figures.peers.len(), asked), (4, 1 + counts[through].reads_sent));
    assert!(figures.peers.iter().filter(|peer| peer.requests > 0).all(|peer| peer.is_up && peer.is_connected));
    cluster.stop().await;
}

#[tokio::test]
async fn a_fallback_takes_the_writes_of_a_node_that_has_stopped() {
    let cluster = Cluster::of(5);
    soon(cluster.put(0, "k", "old", with_w(3))).await.unwrap();
    let owners = cluster.holders("k");
    let (gone, through) = (owners[0], owners[1]);
    soon(cluster.node(gone).stop()).await;
    // Before the others know it, a request to it fails at once, and the quorum decides.
    let short = soon(cluster.put(through, "k", "x", with_w(3))).await;
    assert!(matches!(short, Err(Error::QuorumUnsatisfied { option: "w", need: 3, .. })), "{short:?}");
    let last = cluster.beliefs.outcomes_of(cluster.id(gone)).pop();
    assert!(matches!(last, Some(RequestOutcome::NotDelivered | RequestOutcome::NotAnswered)), "{last:?}");
    cluster.beliefs.set_down(cluster.id(gone), true);
    soon(cluster.put(through, "k", "y", with_w(3))).await.unwrap();
    let alive: Vec<usize> = (0..5).filter(|node| *node != gone).collect();
    let holders = alive.iter().filter(|node| cluster.stored(**node, "k").is_some()).count();
    assert_eq!(holders, 3, "two owners and the fallback");
    let strict = PutOptions { pw: Some(Quorum::All), ..PutOptions::default() };
    let refused = soon(cluster.put(through, "k", "z", strict)).await;
    assert_eq!(refused, Err(Error::QuorumUnsatisfied { option: "pw", need: 3, got: 2 }));
    for node in alive {
        assert_eq!(soon(cluster.values(node, "k")).await, ["old", "x", "y"], "through node {node}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_that_comes_back_with_another_address_is_asked_again() {
    let cluster = Cluster::of(3);
    soon(cluster.put(0, "k", "v", with_w(3))).await.unwrap();
    let mut members = cluster.node(0).members();
    let right = members.clone();
    members.iter_mut().for_each(|member| member.address = "127.0.0.1:9".parse().unwrap());
    cluster.node(0).set_members(members);
    let alone = soon(cluster.put(0, "k", "x", with_w(2))).await;
    assert!(matches!(alone, Err(Error::QuorumUnsatisfied { option: "w", need: 2, .. })), "{alone:?}");
    cluster.node(0).set_members(right);
    soon(cluster.put(0, "k", "y", with_w(3))).await.unwrap();
    cluster.node(0).set_members(Vec::new());
    assert_eq!(cluster.node(0).peers().members(), []);
    let strict = GetOptions { pr: Some(Quorum::All), ..GetOptions::default() };
    let alone = soon(cluster.get(0, "k", strict)).await;
    assert_eq!(alone, Err(Error::QuorumUnsatisfied { option: "pr", need: 3, got: 1 }));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_of_50_mb_does_not_hold_up_small_requests() {
    let cluster = Cluster::of(3);
    soon(cluster.put(0, "small", "v", with_w(3))).await.unwrap();
    let value = Bytes::from(vec![7; 50_000_000]);
    let sibling = Sibling { value: value.clone(), meta: SiblingMeta::default() };
    let object = Object { clock: VectorClock::new(), siblings: vec![sibling] };
    let big = PutRequest { object, ..put_request("big", "", with_w(3)) };
    let writing = {
        let kv = cluster.node(0).kv().clone();
        tokio::spawn(async move { kv.put(big).await })
    };
    let while_writing = small_reads_until(&cluster, || writing.is_finished()).await;
    writing.await.unwrap().unwrap();
    until("all have it", || cluster.holders("big").len() == 3).await;
    // A node that has lost its copy gets the value from another one, over the connection of small
    // requests.
    let key = support::storage_key("big");
    for (_, store) in cluster.node(0).kv().stores() {
        let _ = store.delete(&key).unwrap();
    }
    let reading = {
        let (kv, options) = (cluster.node(0).kv().clone(), with_r(2));
        let request = ombak_kv::GetRequest { bucket: bucket(), key: "big".into(), options };
        tokio::spawn(async move { kv.get(request).await })
    };
    let while_reading = small_reads_until(&cluster, || reading.is_finished()).await;
    let GetReply::Found(found) = reading.await.unwrap().unwrap() else { panic!("the value is gone") };
    assert!(found.siblings[0].value == value, "another value");
    // A request that waited behind the value would end after it.
    assert!(while_writing >= 3 && while_reading >= 3, "{while_writing} and {while_reading} small reads");
    cluster.stop().await;
}

/// Reads a small value from the other nodes, again and again. Returns how many reads ended before
/// the large request did.
async fn small_reads_until(cluster: &Cluster, is_finished: impl Fn() -> bool) -> usize {
    let mut ended = 0usize;
    while !is_finished() {
        soon(cluster.get(0, "small", with_r(3))).await.unwrap();
        ended += 1;
    }
    ended.saturating_sub(1)
}
