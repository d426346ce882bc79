//! Fullness tokens, doubt and what voids marks (docs/design/anti-entropy.md §4, §5, §9).

use crate::engines::cluster::{Cluster, bucket};
use crate::exchanges::{World, storage_key, w};
use ombak_kv::repair_host::{Access, PeerStore, RepairHost};
use ombak_kv::{ClassId, FillReason};
use ombak_repair::{ExchangePart, ExchangeQuestion, NO_SLOTS};
use ombak_ring::placement::Step;
use ombak_runtime::Asker;
use ombak_storage::fs::sim::Loss;
use std::sync::Arc;

const NODES: usize = 3;
const NODE: usize = 1;

fn host(cluster: &Cluster, node: usize) -> Arc<dyn RepairHost> {
    cluster.kv(node).repair_host()
}

fn class_of(cluster: &Cluster, key: &str) -> ClassId {
    ClassId { partition: cluster.home_of(&bucket(), key), n: 3 }
}

/// What a node tells of its store of a class; none while it is not full.
fn own(cluster: &Cluster, class: ClassId) -> Option<PeerStore> {
    let host = host(cluster, NODE);
    let ns = host.buckets().snapshot().all_n_vals();
    host.transfers().own_store(host.partitions(), class, &ns).unwrap()
}

async fn with_a_token() -> (Cluster, ClassId, PeerStore) {
    let cluster = Cluster::of(NODES);
    let key = (0..).map(|number| format!("k{number}")).find(|key| cluster.owners(&bucket(), key, 3).len() == NODES);
    let key = key.unwrap();
    cluster.put(0, &bucket(), &key, "v", w(3)).await.unwrap();
    cluster.wait_until_settled().await;
    let class = class_of(&cluster, &key);
    let before = own(&cluster, class).unwrap();
    assert_eq!(own(&cluster, class), Some(before), "it is drawn once");
    (cluster, class, before)
}

async fn is_full_again(cluster: &Cluster, class: ClassId) -> PeerStore {
    cluster.wait_until("the class is full", |c| own(c, class).is_some()).await;
    own(cluster, class).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_outlives_restarts_and_a_lost_tail() {
    let (cluster, class, before) = with_a_token().await;
    cluster.stop(NODE, Loss::Nothing).await;
    cluster.start(NODE);
    assert_eq!(is_full_again(&cluster, class).await, before);
    cluster.stop(NODE, Loss::Everything).await;
    cluster.start_knowing(NODE, Some(FillReason::LostWrites));
    assert_eq!(is_full_again(&cluster, class).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_other_loss_draws_a_token_that_is_on_the_disk_at_once() {
    for reason in [FillReason::NewStore, FillReason::Restored, FillReason::Unreadable] {
        let (cluster, class, before) = with_a_token().await;
        assert!(cluster.kv(NODE).set_all_filling(reason));
        // The machine goes down before anything else is saved.
        cluster.stop(NODE, Loss::Everything).await;
        cluster.start(NODE);
        let after = is_full_again(&cluster, class).await;
        assert!(after.store_id == before.store_id && after.token != before.token, "{reason:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_puts_what_was_there_in_doubt_until_a_complete_round() {
    let world = World::new().await;
    let (cluster, key) = (&world.cluster, world.keys().remove(0));
    let class = class_of(cluster, &key);
    world.round().await;
    let up_to = |cluster: &Cluster| host(cluster, NODE).transfers().doubt.up_to(class.partition);
    let last = host(cluster, NODE).partitions().find(class.partition).unwrap().store().last_seq();
    assert!({
        let host = host(cluster, NODE);
        host.transfers().found_damage(host.partitions(), class.partition, None)
    });
    assert_eq!((up_to(cluster), cluster.kv(NODE).is_full(class)), (last, false));
    cluster.stop(NODE, Loss::Everything).await;
    cluster.start(NODE);
    assert_eq!(up_to(cluster), last, "it was saved before");
    cluster.wait_until("it is full", |c| c.kv(NODE).is_full(class)).await;
    assert_eq!(up_to(cluster), last, "nothing was compared with the marks yet");
    world.start_exchanges(NODE);
    cluster.repair(NODE).start_exchange_round();
    cluster.wait_until("the doubt has ended", |c| up_to(c) == 0).await;
}

/// No mark covers the copy: without doubt it would be brought to the others again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_in_doubt_that_all_others_lack_is_dropped() {
    let world = World::new().await;
    let (cluster, key) = (&world.cluster, world.keys().remove(0));
    let class = class_of(cluster, &key);
    for node in [0, 2] {
        let digest = cluster.stored(node, &bucket(), &key).unwrap();
        let partition = host(cluster, node).partitions().find(class.partition).unwrap();
        let key = storage_key(&key);
        assert!(partition.lock(&key, Access::Blocking).unwrap().remove_proven(digest).unwrap());
    }
    let last = host(cluster, NODE).partitions().find(class.partition).unwrap().store().last_seq();
    host(cluster, NODE).transfers().doubt.raise(class.partition, last);
    cluster.repair(NODE).start_exchange_round();
    cluster.wait_until("the copy is gone", |c| c.holders(&bucket(), &key).is_empty()).await;
    let dropped = cluster.repair(NODE).dropped_copies().unwrap();
    assert!(dropped.iter().any(|copy| copy.key[..] == storage_key(&key)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_whose_keys_change_gets_another_token_and_no_mark_holds() {
    let world = World::new().await;
    let (cluster, key) = (&world.cluster, world.keys().remove(0));
    let class = class_of(cluster, &key);
    world.round().await;
    let before = own(cluster, class).unwrap();
    assert!(host(cluster, NODE).transfers().marks.covers_any(class, 1));
    assert!(cluster.kv(NODE).renew_fullness(&[2, 5].into()));
    assert_eq!(own(cluster, class), Some(before), "other classes");
    assert!(cluster.kv(NODE).renew_fullness(&[2, 3].into()));
    let after = own(cluster, class).unwrap();
    assert!(after.store_id == before.store_id && after.token != before.token);
    assert!(!host(cluster, NODE).transfers().marks.covers_any(class, 1));
    cluster.stop(NODE, Loss::Everything).await;
    cluster.start(NODE);
    assert_eq!(is_full_again(cluster, class).await, after, "it was told, so it was saved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_know_other_keys_in_a_class_do_not_exchange_it() {
    let world = World::new().await;
    let (cluster, key) = (&world.cluster, world.keys().remove(0));
    let class = class_of(cluster, &key);
    let here = host(cluster, NODE);
    let class_print = here.buckets().snapshot().class_print(class.n);
    let ask = async |class_print| {
        let (home_version, part) = (here.home_version(class.partition), ExchangePart::Groups);
        let question = ExchangeQuestion { class, home_version, class_print, first_slot: NO_SLOTS, part };
        cluster.repair(NODE).answer_exchange(Asker::default(), cluster.id(0), question).await
    };
    assert!(ask(class_print ^ 1).await.is_err());
    world.round().await;
    assert!(ask(class_print).await.is_ok());
}

/// What a node handed back in between was not removed. With the token of before, a mark that names
/// it would say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_becomes_a_primary_again_has_another_token() {
    const JOINS: usize = 3;
    let cluster = Cluster::with_owners(4, 3, |_| ());
    cluster.put(0, &bucket(), "k", "v", w(3)).await.unwrap();
    cluster.wait_until_settled().await;
    let token = |node: usize, class| host(&cluster, node).transfers().fullness.token(class);
    // Tokens of all classes are drawn together, also of those that a node is no primary of.
    for node in [0, JOINS] {
        let host = host(&cluster, node);
        let class = ClassId { partition: 0, n: 3 };
        assert!(host.transfers().own_store(host.partitions(), class, &[3].into()).unwrap().is_some());
    }
    cluster.set_goal(&[0, 1, JOINS]).await;
    let placement = cluster.placement();
    let homes: Vec<ClassId> = placement.homes().map(|home| ClassId { partition: home.home(), n: 3 }).collect();
    let before: Vec<_> = homes.iter().map(|class| [0, JOINS].map(|node| token(node, *class))).collect();
    cluster.step(Step::Begin).await;
    let joining: Vec<ClassId> = cluster.kv(JOINS).filling_classes().into_iter().map(|(class, _)| class).collect();
    assert!(!joining.is_empty());
    for (class, [stays, joins]) in homes.iter().zip(before) {
        assert_eq!(token(0, *class), stays, "a mark stays where both stay primaries");
        let is_same = token(JOINS, *class) == joins;
        assert_eq!(is_same, !joining.contains(class), "{class:?}");
    }
}
