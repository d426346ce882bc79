//! Members whose disk is full.

use super::ring_change_objects::{all_have, carry_out, until_at_rest, with_objects};
use super::*;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::fs::{DiskReserve, ReservedFs};

const RESERVE_BYTES: u64 = 4 << 20;

/// A place on a simulated disk, with a reserve.
fn on_simulated_disk(number: usize) -> (Place, Arc<FaultyFs>, Arc<DiskReserve>) {
    let (mut place, disk) = (Place::durable(number), FaultyFs::new(number as u64));
    let reserve = Arc::new(DiskReserve::new(disk.clone(), place.path(), RESERVE_BYTES));
    place.disk = Some((disk.clone(), Arc::new(ReservedFs::new(disk.clone(), reserve.clone()))));
    (place, disk, reserve)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_a_full_disk_leaves_and_nothing_is_lost() {
    let (_places, mut nodes) = alone(4).await;
    let (place, disk, reserve) = on_simulated_disk(5);
    nodes.push(place.start().await);
    form(&nodes).await;
    let keys = with_objects(&nodes).await;
    reserve.take_back().unwrap();
    disk.set_free_bytes(Some(0));
    let gone = nodes[4].clone();
    carry_out(&nodes[0], &[MemberChange::Leave(name_of(&gone))]).await;
    tokio::time::timeout(PATIENCE, gone.left()).await.expect("the member with the full disk leaves");
    assert!(reserve.is_short(), "nothing was paid for by the reserve");
    gone.stop().await;
    let rest: Vec<&MemberNode> = nodes[..4].iter().collect();
    until_at_rest(&rest).await;
    all_have(&rest, &keys).await;
    stop(&nodes[..4]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_says_that_a_disk_is_full_if_no_reserve_is_left() {
    let (_places, mut nodes) = alone(4).await;
    let (place, disk, _) = on_simulated_disk(5);
    nodes.push(place.start().await);
    form(&nodes).await;
    let keys = with_objects(&nodes).await;
    let is_reached = |node: &MemberNode| node.metadata().placement().is_some_and(|placement| placement.is_of_ring());
    until("all follow the ring", || nodes.iter().all(is_reached)).await;
    disk.set_free_bytes(Some(0));
    // A write that finds no room shows that.
    for number in 0..20 {
        let _ = put(&nodes[4], bucket(), &format!("late {number}"), 1).await;
    }
    let gone = nodes[4].clone();
    carry_out(&nodes[0], &[MemberChange::Leave(name_of(&gone))]).await;
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        let facts = nodes[0].ring_change().await;
        let why: Vec<_> =
            facts.iter().flat_map(|facts| &facts.obstacles).map(|obstacle| obstacle.why.clone()).collect();
        if why.iter().any(|why| {
            why == "waits for 'node5@test' to note the last step: its disk is full, or a store is broken (see its log)"
        }) {
            break;
        }
        assert!(Instant::now() < give_up_at, "the disk is not named: {why:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    disk.set_free_bytes(None);
    tokio::time::timeout(PATIENCE, gone.left()).await.expect("with room it leaves");
    gone.stop().await;
    let rest: Vec<&MemberNode> = nodes[..4].iter().collect();
    until_at_rest(&rest).await;
    for key in &keys {
        assert!(is_found(&nodes[0], bucket(), key).await, "{key}");
    }
    stop(&nodes[..4]).await;
}
