//! What jobs do, and what stays of them after a restart.

use crate::node::{Node, is_done};
use ombak_key_queues::{JobEnd, JobKind, KeyQueuesConfig, QueueError};
use ombak_types::Bucket;
use std::sync::atomic::Ordering;

/// A page at the start, and then next to nothing.
const SLOW: KeyQueuesConfig =
    KeyQueuesConfig { erase_keys_max: 10_000, reap_keys_max: 10_000, repair_keys_max: 10_000, keys_per_second: 1 };
const FAST: KeyQueuesConfig = KeyQueuesConfig { keys_per_second: 1_000_000, ..SLOW };

async fn put_keys(node: &Node, bucket: &str, count: usize) {
    for number in 0..count {
        node.put(bucket, &format!("k{number:04}"), "v").await;
    }
}

#[tokio::test]
async fn a_job_erases_what_its_fold_has_found_over_a_restart_and_leaves_what_has_changed() {
    let node = Node::start(SLOW).await;
    put_keys(&node, "b", 1_000).await;
    put_keys(&node, "other", 1).await;
    assert_eq!(node.fill(JobKind::Erase, "b").await, Ok(1_000));
    for number in 0..1_000 {
        if number % 10 == 0 {
            let key = format!("k{number:04}");
            let clock = node.get("b", &key).await.map(|object| object.clock).unwrap_or_default();
            node.put_with("b", &key, "new", clock).await;
        }
    }
    let node = node.restart(SLOW).await;
    let waiting = node.queues.jobs();
    assert!(waiting[0].ended.is_none() && waiting[0].keys == 1_000, "{waiting:?}");
    let node = node.restart(FAST).await;
    let job = node.last_ended().await;
    assert!(is_done(&job) && job.done + job.changed == 1_000, "{job:?}");
    assert!(job.changed >= 50, "most of the keys were not done when they changed: {job:?}");
    assert_eq!(node.count("b").await.0, 100, "what was written after the fold stays");
    assert!(node.get("b", "k0010").await.is_some() && node.get("b", "k0011").await.is_none());
    assert!(node.get("other", "k0000").await.is_some());
    let record = format!("{}.json", job.id);
    node.until("the keys of a job that has ended are gone", || async { node.files() == [&record[..]] }).await;
}

#[tokio::test]
async fn a_fold_that_finds_more_keys_than_there_is_room_for_leaves_nothing() {
    let node = Node::start(KeyQueuesConfig { erase_keys_max: 99, ..FAST }).await;
    put_keys(&node, "b", 100).await;
    let refused = node.fill(JobKind::Erase, "b").await;
    assert_eq!(refused, Err(QueueError::Full { kind: JobKind::Erase, room: 99 }));
    node.until("the file is removed", || async { node.files().is_empty() }).await;
    assert_eq!((node.queues.jobs(), node.count("b").await), (Vec::new(), (100, 0)));
    let after = node.fill(JobKind::Repair, "b").await;
    assert_eq!(after, Ok(100), "the other queues have their own room");
    assert!(is_done(&node.last_ended().await));
}

#[tokio::test]
async fn tombstones_are_reaped_although_they_are_to_be_kept() {
    let node = Node::start(FAST).await;
    put_keys(&node, "b", 300).await;
    for number in 0..200 {
        node.delete("b", &format!("k{number:04}")).await;
    }
    assert_eq!(node.count("b").await, (100, 200));
    assert_eq!(node.fill(JobKind::Reap, "b").await, Ok(200));
    let job = node.last_ended().await;
    assert!(is_done(&job) && job.done == 200, "{job:?}");
    assert_eq!(node.count("b").await, (100, 0));
}

#[tokio::test]
async fn a_tombstone_that_was_written_over_is_not_reaped() {
    let node = Node::start(FAST).await;
    put_keys(&node, "b", 20).await;
    for number in 0..20 {
        node.delete("b", &format!("k{number:04}")).await;
    }
    // The first job works while the second one waits.
    assert_eq!(node.fill(JobKind::Reap, "b").await, Ok(20));
    node.put("b", "k0003", "again").await;
    node.last_ended().await;
    assert_eq!(node.count("b").await, (1, 0));
}

#[tokio::test]
async fn a_drop_removes_what_the_bucket_had_and_its_tombstones() {
    let node = Node::start(FAST).await;
    put_keys(&node, "b", 500).await;
    put_keys(&node, "other", 10).await;
    node.delete("b", "k0001").await;
    let bucket = Bucket::untyped("b");
    let id = node.queues.drop_bucket(&bucket).await.unwrap();
    node.set_time(2_000_000_010);
    node.put("b", "later", "v").await;
    assert_eq!(node.queues.drop_bucket(&bucket).await, Ok(id), "the drop goes on");
    node.last_ended().await;
    let job = node.job(id);
    assert!(is_done(&job) && job.kind == JobKind::Drop && job.bucket == bucket, "{job:?}");
    assert_eq!(job.done, 499 + 500, "it erased and reaped: {job:?}");
    assert_eq!(node.count("b").await, (1, 0), "what was written later stays, and no tombstone");
    assert!(node.get("b", "later").await.is_some());
    assert_eq!(node.count("other").await, (10, 0));
    let again = node.queues.drop_bucket(&bucket).await.unwrap();
    assert!(again > id, "another drop");
    node.last_ended().await;
    assert_eq!(node.count("b").await, (0, 0));
}

/// Home partitions without keys of the bucket come first, and say nothing about the room.
#[tokio::test]
async fn a_drop_waits_for_room_in_the_queue_and_is_not_done_before() {
    let node = Node::start(KeyQueuesConfig { erase_keys_max: 0, ..FAST }).await;
    node.put("b", "k", "v").await;
    let id = node.queues.drop_bucket(&Bucket::untyped("b")).await.unwrap();
    node.until("the drop waits or ends", || async {
        let job = node.job(id);
        job.waits_for.is_some() || job.ended.is_some()
    })
    .await;
    let job = node.job(id);
    assert!(
        job.ended.is_none() && job.waits_for.is_some_and(|why| why.contains("room for 0 more")),
        "{:?}",
        node.job(id)
    );
    assert!(node.get("b", "k").await.is_some());
}

#[tokio::test]
async fn a_paused_job_rests_over_a_restart_and_goes_on_when_it_is_told_to() {
    let node = Node::start(SLOW).await;
    put_keys(&node, "b", 300).await;
    node.fill(JobKind::Erase, "b").await.unwrap();
    let id = node.queues.jobs().pop().unwrap().id;
    node.queues.pause(id).await.unwrap();
    let node = node.restart(FAST).await;
    // Another job has its turn meanwhile.
    put_keys(&node, "other", 10).await;
    node.fill(JobKind::Erase, "other").await.unwrap();
    node.until("the other job has ended", || async { node.queues.jobs().pop().unwrap().ended.is_some() }).await;
    assert!(node.job(id).is_paused && node.job(id).ended.is_none());
    assert!(node.count("b").await.0 >= 100);
    node.queues.resume(id).await.unwrap();
    node.last_ended().await;
    assert_eq!((is_done(&node.job(id)), node.count("b").await.0), (true, 0));
}

#[tokio::test]
async fn a_cancelled_job_leaves_the_rest_of_its_keys() {
    let node = Node::start(SLOW).await;
    put_keys(&node, "b", 300).await;
    node.fill(JobKind::Erase, "b").await.unwrap();
    let id = node.queues.jobs().pop().unwrap().id;
    node.queues.cancel(id).await.unwrap();
    assert_eq!(node.queues.cancel(id).await, Err(QueueError::NoSuchJob(id)));
    let node = node.restart(FAST).await;
    assert!(matches!(node.job(id).ended, Some((JobEnd::Cancelled, _))));
    assert!(node.count("b").await.0 >= 100);
    assert_eq!(node.files(), [format!("{id}.json")]);
}

#[tokio::test]
async fn jobs_of_a_drop_are_steered_with_the_drop() {
    let node = Node::start(SLOW).await;
    put_keys(&node, "b", 1_000).await;
    let id = node.queues.drop_bucket(&Bucket::untyped("b")).await.unwrap();
    node.until("its first job is there", || async { node.queues.jobs().len() == 2 }).await;
    let part = node.queues.jobs().pop().unwrap();
    assert_eq!(part.part_of, Some(id));
    assert_eq!(node.queues.pause(part.id).await, Err(QueueError::PartOfDrop(part.id, id)));
    node.queues.pause(id).await.unwrap();
    assert!(node.job(part.id).is_paused);
    node.queues.cancel(id).await.unwrap();
    assert!(node.queues.jobs().iter().all(|job| matches!(job.ended, Some((JobEnd::Cancelled, _)))));
}

/// They go to the end of their file, and their job rests while others have their turn.
#[tokio::test]
async fn keys_that_cannot_be_erased_do_not_hold_up_the_others() {
    let node = Node::start(FAST).await;
    put_keys(&node, "b", 250).await;
    for number in 0..5 {
        node.put("b", &format!("refused{number}"), "v").await;
    }
    node.refuses.store(true, Ordering::SeqCst);
    assert_eq!(node.fill(JobKind::Erase, "b").await, Ok(255));
    let id = node.queues.jobs().pop().unwrap().id;
    node.until("the others are erased", || async { node.count("b").await.0 == 5 }).await;
    put_keys(&node, "other", 10).await;
    node.fill(JobKind::Erase, "other").await.unwrap();
    node.until("another job is done", || async { node.queues.jobs().pop().unwrap().ended.is_some() }).await;
    let job = node.job(id);
    assert_eq!((job.ended, job.waits_for.as_deref(), node.count("b").await.0), (None, Some("overload"), 5));
    node.refuses.store(false, Ordering::SeqCst);
    node.last_ended().await;
    let job = node.job(id);
    assert!(is_done(&job) && job.done == 255, "{job:?}");
    assert_eq!(node.count("b").await.0, 0);
}

/// The keys behind the damage are erased, too.
#[tokio::test]
async fn a_job_whose_keys_are_damaged_or_gone_says_so_and_does_what_it_can() {
    for is_damaged in [true, false] {
        let node = Node::start(SLOW).await;
        put_keys(&node, "b", 500).await;
        node.fill(JobKind::Erase, "b").await.unwrap();
        let id = node.queues.jobs().pop().unwrap().id;
        node.queues.pause(id).await.unwrap();
        let file = node.dir.path().join(format!("key_queues/{id}.0.keys"));
        if is_damaged {
            let mut bytes = std::fs::read(&file).unwrap();
            // In the keys of a page that no worker has begun.
            let place = bytes.len() * 4 / 5;
            bytes[place] ^= 1;
            std::fs::write(&file, bytes).unwrap();
        } else {
            std::fs::remove_file(&file).unwrap();
        }
        let node = node.restart(FAST).await;
        node.queues.resume(id).await.unwrap();
        let job = node.last_ended().await;
        let Some((JobEnd::Lost(why), _)) = &job.ended else { panic!("{job:?}") };
        let left = node.count("b").await.0;
        if is_damaged {
            assert!(why.starts_with("1 of its keys cannot be read") && left == 1, "{left} are left, {job:?}");
            assert!(job.done == 499 && job.damage.is_some(), "{job:?}");
        } else {
            assert!(left > 0, "nothing else is erased");
        }
    }
}

#[tokio::test]
async fn what_a_fold_wrote_that_did_not_end_is_removed_at_the_start() {
    let node = Node::start(FAST).await;
    std::fs::write(node.dir.path().join("key_queues/77.0.keys"), "half of a head").unwrap();
    std::fs::write(node.dir.path().join("key_queues/78.json"), "{\"format\": 1").unwrap();
    let node = node.restart(FAST).await;
    let others = || async { node.files().iter().all(|file| file == "78.json") };
    node.until("only the record that is damaged stays, for an operator", others).await;
    put_keys(&node, "b", 1).await;
    node.fill(JobKind::Erase, "b").await.unwrap();
    assert!(node.last_ended().await.id > 78, "no number is used twice");
}

/// A drop does not lose what the damage of a file has cost one of its jobs.
#[tokio::test]
async fn a_drop_finds_the_keys_again_that_a_damaged_file_has_lost() {
    let node = Node::start(SLOW).await;
    put_keys(&node, "b", 500).await;
    let id = node.queues.drop_bucket(&Bucket::untyped("b")).await.unwrap();
    node.until("its first job is there", || async { node.queues.jobs().len() == 2 }).await;
    let part = node.queues.jobs().pop().unwrap().id;
    node.queues.pause(id).await.unwrap();
    let file = node.dir.path().join(format!("key_queues/{part}.0.keys"));
    let mut bytes = std::fs::read(&file).unwrap();
    let place = bytes.len() * 4 / 5;
    bytes[place] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let node = node.restart(FAST).await;
    node.queues.resume(id).await.unwrap();
    node.last_ended().await;
    assert!(matches!(node.job(part).ended, Some((JobEnd::Lost(_), _))), "{:?}", node.job(part));
    assert!(is_done(&node.job(id)), "{:?}", node.job(id));
    assert_eq!(node.count("b").await, (0, 0));
}

#[tokio::test]
async fn a_node_that_leaves_its_cluster_ends_its_jobs_and_begins_no_more() {
    let node = Node::start(SLOW).await;
    put_keys(&node, "b", 300).await;
    let drop = node.queues.drop_bucket(&Bucket::untyped("b")).await.unwrap();
    assert!(node.kv.jobs_not_ended() >= 1);
    node.kv.set_leaving(true);
    assert_eq!(node.fill(JobKind::Erase, "b").await, Err(QueueError::Leaves));
    assert_eq!(node.queues.drop_bucket(&Bucket::untyped("other")).await, Err(QueueError::Leaves));
    let node = node.restart(FAST).await;
    node.kv.set_leaving(true);
    node.last_ended().await;
    assert!(is_done(&node.job(drop)), "a drop goes on: {:?}", node.job(drop));
    assert_eq!((node.count("b").await, node.kv.jobs_not_ended()), ((0, 0), 0));
    node.kv.set_leaving(false);
    assert_eq!(node.fill(JobKind::Repair, "b").await, Ok(0));
}
