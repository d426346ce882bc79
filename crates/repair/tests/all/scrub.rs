//! Scrubbing over several engines in one process: what nobody reads is found and repaired.

use crate::engines::cluster::{Cluster, bucket, count};
use ombak_kv::{KvConfig, PutOptions, ScrubConfig, ScrubReport, ScrubState, ScrubbedStore};
use ombak_storage::ReadMode;
use ombak_types::names::encode_storage_key;
use std::path::Path;
use std::time::Duration;

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), ..PutOptions::default() }
}

fn scrubbed(config: &mut KvConfig) {
    let interval = Duration::from_secs(30 * 86_400);
    config.scrub = ScrubConfig { is_enabled: true, interval, bytes_per_second_max: 0 };
}

/// A node that was closed and started has nothing in memory, and its files are complete.
async fn restart(cluster: &Cluster, node: usize) {
    cluster.close(node).await;
    cluster.start(node);
    cluster.wait_until_settled().await;
}

/// Waits until a node has read everything once, at the highest rate.
async fn scrub(cluster: &Cluster, node: usize) -> ScrubReport {
    cluster.kv(node).start_scrub().unwrap();
    let is_over = |c: &Cluster| c.kv(node).scrub_report().state == ScrubState::Waiting;
    cluster.wait_until("a round is over", is_over).await;
    cluster.kv(node).scrub_report()
}

fn sum(report: &ScrubReport, count: impl Fn(&ScrubbedStore) -> u64) -> u64 {
    report.stores.iter().map(count).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_nobody_reads_is_repaired_from_the_other_nodes() {
    let (cluster, bucket) = (Cluster::configured(3, scrubbed), bucket());
    for n in 0..20 {
        cluster.put(0, &bucket, &format!("k{n}"), "value", w(3)).await.unwrap();
    }
    restart(&cluster, 1).await;
    let clean = scrub(&cluster, 1).await;
    assert_eq!((sum(&clean, |store| store.damaged), sum(&clean, |store| store.places)), (0, 0), "{clean:?}");
    assert!(sum(&clean, |store| store.bytes_read) > 20 * 50, "{clean:?}");
    cluster.damage(1, &bucket, "k7");
    assert_eq!(cluster.kv(1).unreadable_keys(), (0, 0), "nobody has noticed it");
    let report = scrub(&cluster, 1).await;
    assert_eq!(sum(&report, |store| store.damaged), 1, "{report:?}");
    cluster.wait_until("it is repaired", |c| c.kv(1).unreadable_keys() == (0, 1)).await;
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k7", 3);
    let mut key = Vec::new();
    encode_storage_key(&bucket, b"k7", &mut key);
    let home = cluster.home_of(&bucket, "k7");
    let (_, store) = cluster.kv(1).stores().find(|(partition, _)| *partition == home).unwrap();
    assert!(store.get(&key, ReadMode::Blocking).unwrap().is_some(), "it can be read again");
    let after = cluster.kv(1).scrub_report();
    let of_home = after.stores.iter().find(|store| store.partition == home).unwrap();
    assert_eq!((of_home.damaged, of_home.repaired, of_home.waiting), (1, 1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_copy_is_reported_and_stays() {
    let cluster = Cluster::configured(3, scrubbed);
    let bucket = cluster.create_type("one", 1);
    let owner = cluster.owners(&bucket, "k", 1)[0];
    cluster.put(owner, &bucket, "k", "value", w(1)).await.unwrap();
    restart(&cluster, owner).await;
    cluster.damage(owner, &bucket, "k");
    let report = scrub(&cluster, owner).await;
    assert_eq!(sum(&report, |store| store.damaged), 1, "{report:?}");
    let is_reported = |c: &Cluster| sum(&c.kv(owner).scrub_report(), |store| store.not_repairable) == 1;
    cluster.wait_until("it is known that nobody can repair it", is_reported).await;
    let unreadable = cluster.repair(owner).unreadable_report(10);
    assert_eq!(unreadable.versions.iter().map(|version| &version.key[..]).collect::<Vec<_>>(), [b"k"]);
    // Another round tells of it again, and removes nothing.
    scrub(&cluster, owner).await;
    cluster.heal(owner, &bucket, "k");
    cluster.wait_until("it is there again", |c| c.kv(owner).unreadable_keys().0 == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_remembers_what_has_been_read() {
    let (cluster, bucket) = (Cluster::configured(1, scrubbed), bucket());
    cluster.put(0, &bucket, "k", "value", w(1)).await.unwrap();
    restart(&cluster, 0).await;
    let before = scrub(&cluster, 0).await;
    assert!(before.stores.iter().all(|store| store.is_done && store.last_full_secs.is_some()), "{before:?}");
    restart(&cluster, 0).await;
    cluster.wait_until("the stores are known", |c| !c.kv(0).scrub_report().stores.is_empty()).await;
    let after = cluster.kv(0).scrub_report();
    assert_eq!((after.state, after.round_began_secs), (ScrubState::Waiting, before.round_began_secs));
    // A file that is lost begins a new round.
    cluster.close(0).await;
    cluster.remove_file(0, Path::new("/data/scrub.json"));
    cluster.start(0);
    let is_read = |c: &Cluster| {
        let report = c.kv(0).scrub_report();
        report.state == ScrubState::Waiting && report.stores.iter().all(|store| store.bytes_read > 0)
    };
    cluster.wait_until("everything is read again", is_read).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_pauses_it_and_lets_it_go_on() {
    let cluster = Cluster::configured(1, scrubbed);
    let kv = cluster.kv(0);
    kv.set_scrub_paused(true).unwrap();
    assert_eq!(kv.scrub_report().state, ScrubState::Paused);
    kv.set_scrub_paused(false).unwrap();
    assert_ne!(kv.scrub_report().state, ScrubState::Paused);
    let off = Cluster::of(1);
    assert_eq!(off.kv(0).scrub_report().state, ScrubState::Off);
    assert!(off.kv(0).start_scrub().is_err() && off.kv(0).set_scrub_paused(true).is_err());
}
