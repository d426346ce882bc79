//! Clusters of one to seven nodes.

mod world;

use crate::node::{ProposeError, StartError};
use crate::raft::wire::{self, Request, Response};
use crate::state::{BucketName, Command, MemberStatus, Metadata, Refusal, TypeName};
use bytes::Bytes;
use futures_util::future;
use ombak_runtime::{Runtime, RuntimeExt, within};
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::Loss;
use ombak_types::{Bucket, NodeId, PropMap};
use serde_json::json;
use world::{World, id};

fn map(n_val: u32) -> PropMap {
    json!({"n_val": n_val}).as_object().cloned().unwrap()
}

fn create_type(name: &str) -> Command {
    let name = TypeName(Bytes::copy_from_slice(name.as_bytes()));
    Command::PutType { name, expected: None, active: false, overrides: map(3) }
}

fn set_bucket(name: &str, expected: Option<u64>, n_val: u32) -> Command {
    let bucket = BucketName { r#type: "default".into(), name: Bytes::copy_from_slice(name.as_bytes()) };
    Command::PutBucket { bucket, expected, type_expected: None, overrides: Some(map(n_val)) }
}

fn propose(world: &World, at: u64, command: Command) -> Result<u64, ProposeError> {
    let (node, deadline) = (world.node(at), world.deadline(20));
    world.run(async move { node.propose(command, deadline).await })
}

fn has_type(metadata: &Metadata, name: &str) -> bool {
    metadata.types().contains_key(name.as_bytes())
}

#[test]
fn a_command_follows_on_the_state_that_it_was_decided_on_or_is_refused() {
    let world = cluster(7, 3);
    let at = leader(&world).unwrap();
    let (node, deadline) = (world.node(at), world.deadline(20));
    let (first, second) = world.run(async move {
        let is_first = |now: &Metadata| !has_type(now, "first");
        // The first one is under way, and no part of the state, when the second one is proposed.
        let first = node.propose(create_type("first"), deadline);
        future::join(first, node.propose_while(is_first, create_type("second"), deadline)).await
    });
    assert!(first.is_ok());
    assert_eq!(second, Err(ProposeError::Refused(Refusal::Changed)));
    let (node, deadline) = (world.node(at), world.deadline(20));
    let third = world
        .run(async move { node.propose_while(|now| has_type(now, "first"), create_type("third"), deadline).await });
    assert!(third.is_ok() && !has_type(&world.node(at).metadata(), "second"));
    let (node, deadline) = (world.node(at), world.deadline(20));
    let (last, next) = world.run(async move {
        // Nothing comes between the look at the state and the command.
        let last = node.propose_while(|now| !has_type(now, "next"), create_type("last"), deadline);
        future::join(last, node.propose(create_type("next"), deadline)).await
    });
    assert!(last.unwrap() < next.unwrap(), "a command came between");
    let follower = (1..=3).find(|number| *number != at).unwrap();
    let (node, deadline) = (world.node(follower), world.deadline(20));
    let elsewhere = world.run(async move { node.propose_while(|_| true, create_type("fourth"), deadline).await });
    assert_eq!(elsewhere, Err(ProposeError::NoLeader), "only the leader knows what comes before");
}

fn activate(world: &World, at: u64, name: &'static str) -> Result<Vec<NodeId>, ProposeError> {
    let (node, deadline) = (world.node(at), world.deadline(20));
    world.run(async move { node.activate_type(name.as_bytes(), deadline).await })
}

fn is_active(world: &World, at: u64, name: &str) -> bool {
    world.node(at).metadata().types().get(name.as_bytes()).is_some_and(|record| record.active)
}

fn set_status(world: &World, node: u64, expected: MemberStatus, status: MemberStatus) {
    propose(world, 1, Command::SetStatus { node: id(node), expected, status }).unwrap();
}

fn leader(world: &World) -> Option<u64> {
    world.nodes().iter().find(|node| node.is_leader()).map(|node| node.describe().node.get())
}

/// The voters, as the leader sees them.
fn voters(world: &World) -> Vec<u64> {
    let Some(leader) = leader(world) else { return Vec::new() };
    let node = world.node(leader);
    let voters = node.voters();
    let members = node.metadata().members().clone();
    members.iter().filter(|(_, member)| voters.contains(&member.log)).map(|(node, _)| node.get()).collect()
}

/// A cluster of valid members with the voters that it should have.
fn cluster(seed: u64, count: u64) -> World {
    grown(World::new(seed), count)
}

/// Three voters that make a snapshot when their logs are longer than this.
fn cluster_with_snapshots(seed: u64, log_bytes_min: u64) -> World {
    let mut world = World::new(seed);
    world.timing.log_bytes_min = log_bytes_min;
    grown(world, 3)
}

fn grown(mut world: World, count: u64) -> World {
    world.start(1).unwrap();
    for number in 2..=count {
        join(&mut world, number);
    }
    let wanted = match count {
        1..=2 => 1,
        3..=4 => 3,
        _ => 5,
    };
    world.wait_for("the right number of voters", |world| voters(world).len() == wanted);
    world
}

fn join(world: &mut World, number: u64) {
    world.start(number).unwrap();
    let (node, deadline) = (world.node(number), world.deadline(30));
    world.run(async move { node.join(id(1), deadline).await }).unwrap();
    set_status(world, number, MemberStatus::Joining, MemberStatus::Valid);
}

fn wait_until_equal(world: &World) {
    world.wait_for("all nodes have the same state", |world| {
        let nodes = world.nodes();
        let first = nodes[0].metadata();
        nodes.iter().all(|node| node.metadata() == first) && leader(world).is_some()
    });
}

#[test]
fn a_node_alone_is_useful_at_once_and_after_a_power_loss() {
    let mut world = World::new(1);
    world.start(1).unwrap();
    assert_eq!(world.node(1).metadata().ring().map(|ring| ring.size().get()), Some(8));
    propose(&world, 1, create_type("t")).unwrap();
    assert_eq!(propose(&world, 1, create_type("t")), Err(ProposeError::Refused(Refusal::Changed)));
    assert_eq!(activate(&world, 1, "t"), Ok(vec![]));
    assert_eq!(activate(&world, 1, "t"), Ok(vec![]), "again");
    assert_eq!(activate(&world, 1, "other"), Err(ProposeError::Refused(Refusal::NoType)));
    let before = world.node(1).metadata();
    world.kill(1, Loss::Everything);
    world.start(1).unwrap();
    assert!(is_active(&world, 1, "t"), "the state is there before anything is elected");
    world.wait_for("the node tells its new start", |world| world.node(1).metadata().members()[&id(1)].boot == 2);
    assert_eq!(
        (world.node(1).metadata().ring(), world.node(1).metadata().lineage()),
        (before.ring(), before.lineage())
    );
}

#[test]
fn a_node_whose_disk_was_full_takes_part_again_without_a_restart() {
    for (seed, full) in [(60, 1), (61, 2), (62, 3)] {
        let world = cluster(seed, 3);
        let others: Vec<u64> = (1..=3).filter(|number| *number != full).collect();
        world.disk(full).set_free_bytes(Some(0));
        for (at, name) in others.iter().zip(["a", "b"]) {
            // The leader may be the one whose disk is full: then the others choose another one. An
            // attempt whose answer was lost may have had its effect.
            let is_decided = || {
                matches!(propose(&world, *at, create_type(name)), Ok(_) | Err(ProposeError::Refused(Refusal::Changed)))
            };
            assert!((0..10).any(|_| is_decided()), "the others decide nothing while the disk of {full} is full");
        }
        world.disk(full).set_free_bytes(None);
        wait_until_equal(&world);
        propose(&world, full, create_type("c")).unwrap();
        wait_until_equal(&world);
    }
}

/// Whether a node refuses at once to vote, because its log waits for room on the disk. Without an
/// answer the request would lie in a queue until there is room.
fn refuses_votes(world: &World, at: u64) -> bool {
    let (node, runtime) = (world.node(at), world.runtime.clone());
    let log = node.metadata().members()[&id(at)].log;
    let rpc = openraft::raft::VoteRequest::new(openraft::Vote::new(0, log), None);
    let request = wire::encode(&Request::Vote { to: log, rpc }, &[]).unwrap();
    let answer = world.run(async move {
        let limit = runtime.now() + std::time::Duration::from_millis(1);
        within(&runtime, Some(limit), node.handle(id(9), request, limit)).await
    });
    let answer = answer.expect("the request waits in a queue");
    matches!(wire::decode::<Response>(&answer).unwrap().0, Response::Refused { why } if why.contains("has no room"))
}

#[test]
fn what_would_wait_for_room_is_refused() {
    let world = cluster_with_snapshots(65, 2000);
    assert!(!refuses_votes(&world, 3));
    world.disk(3).set_free_bytes(Some(0));
    let mut version = None;
    write_versions(&world, [1, 2], &mut version, 2);
    world.wait_for("an append waits for room", |world| refuses_votes(world, 3));
    world.disk(3).set_free_bytes(None);
    wait_until_equal(&world);
    assert!(!refuses_votes(&world, 3));
}

/// Writes so many versions of a bucket, through the nodes in turn.
fn write_versions(world: &World, at: [u64; 2], version: &mut Option<u64>, count: u32) {
    for number in 0..count {
        let mut tries = 0..10;
        while !matches!(
            propose(world, at[number as usize % 2], set_bucket("b", *version, number % 7 + 1)),
            Ok(_) | Err(ProposeError::Refused(Refusal::Changed))
        ) {
            tries.next().expect("the others decide while one disk is full");
        }
        let bucket = Bucket::untyped("b");
        let version_at = |at: u64| world.node(at).metadata().buckets().get(&bucket).map(|record| record.version);
        *version = at.iter().filter_map(|at| version_at(*at)).max();
    }
}

#[test]
fn a_snapshot_that_finds_no_room_waits_for_it() {
    let world = cluster_with_snapshots(63, 1500);
    let mut version = None;
    for free_bytes in (0..4000).step_by(250) {
        let full = free_bytes / 250 % 3 + 1;
        world.disk(full).set_free_bytes(Some(free_bytes));
        write_versions(&world, [full % 3 + 1, (full + 1) % 3 + 1], &mut version, 24);
        world.disk(full).set_free_bytes(None);
        wait_until_equal(&world);
        propose(&world, full, create_type(&free_bytes.to_string())).unwrap();
        wait_until_equal(&world);
    }
    let path = std::path::Path::new(world::DIR).join("metadata.snapshot");
    assert!((1..=3).all(|number| world.disk(number).file_identity(&path).is_ok()), "a snapshot was not made");
}

#[test]
fn a_received_snapshot_that_finds_no_room_waits_for_it() {
    let world = cluster_with_snapshots(64, 2000);
    world.part(&[3]);
    let mut version = None;
    write_versions(&world, [1, 2], &mut version, 1300);
    let lacks = world.node(3).applied() + 1;
    world.wait_for("the entries are purged", |world| {
        (1..=2).all(|number| world.node(number).purged().is_some_and(|purged| purged > lacks))
    });
    world.disk(3).set_free_bytes(Some(0));
    world.heal();
    let runtime = world.runtime.clone();
    world.run(async move { runtime.sleep(std::time::Duration::from_secs(20)).await });
    assert!(world.node(3).applied() < lacks + 100, "it took the snapshot without room");
    assert!(refuses_votes(&world, 3));
    world.disk(3).set_free_bytes(None);
    wait_until_equal(&world);
    propose(&world, 3, create_type("t")).unwrap();
}

#[test]
fn types_are_created_and_activated_from_every_node() {
    for (seed, count) in [(2, 1), (3, 3), (4, 5), (5, 7)] {
        let world = cluster(seed, count);
        for at in 1..=count {
            let name: &'static str = ["a", "b", "c", "d", "e", "f", "g"][at as usize - 1];
            propose(&world, at, create_type(name)).unwrap();
            assert_eq!(activate(&world, at, name), Ok(vec![]), "{count} nodes, at {at}");
            for other in 1..=count {
                assert!(is_active(&world, other, name), "{count} nodes, activated at {at}, looked at {other}");
            }
        }
        wait_until_equal(&world);
    }
}

#[test]
fn a_minority_reads_on_and_decides_nothing() {
    let world = cluster(6, 5);
    propose(&world, 1, create_type("t")).unwrap();
    assert_eq!(activate(&world, 1, "t"), Ok(vec![]));
    world.part(&[4, 5]);
    let refused = propose(&world, 4, create_type("minority"));
    assert!(matches!(refused, Err(ProposeError::NoLeader | ProposeError::Unknown)), "{refused:?}");
    assert!(is_active(&world, 4, "t") && is_active(&world, 5, "t"));
    world.wait_for("the majority has a leader", |world| (1..=3).any(|number| world.node(number).is_leader()));
    propose(&world, 1, create_type("u")).unwrap();
    let mut unreached = activate(&world, 2, "u").unwrap();
    unreached.sort();
    assert_eq!(unreached, [id(4), id(5)], "activation names the members that it did not reach");
    assert!((1..=3).all(|number| is_active(&world, number, "u")) && !is_active(&world, 4, "u"));
    world.heal();
    wait_until_equal(&world);
    assert!(is_active(&world, 4, "u"));
}

#[test]
fn no_acknowledged_change_is_lost_when_leaders_lose_their_power() {
    let mut world = cluster(7, 3);
    for round in 0..6u32 {
        world.wait_for("a leader", |world| leader(world).is_some());
        let victim = leader(&world).unwrap();
        let other = if victim == 1 { 2 } else { 1 };
        propose(&world, other, set_bucket(&format!("b{round}"), None, round + 1)).unwrap();
        world.kill(victim, if round % 2 == 0 { Loss::Everything } else { Loss::Some });
        world.wait_for("another leader", |world| leader(world).is_some_and(|leader| leader != victim));
        propose(&world, other, set_bucket(&format!("c{round}"), None, round + 1)).unwrap();
        world.start(victim).unwrap();
        wait_until_equal(&world);
        assert_eq!(world.node(victim).metadata().buckets().len(), 2 * (round as usize + 1));
    }
}

#[test]
fn a_voter_that_is_gone_for_long_is_replaced_and_one_that_leaves_at_once() {
    let mut world = cluster(8, 4);
    let gone = *voters(&world).iter().find(|voter| Some(**voter) != leader(&world)).unwrap();
    let spare = (1..=4).find(|number| !voters(&world).contains(number)).unwrap();
    world.kill(gone, Loss::Nothing);
    world.wait_for("the spare member votes", |world| {
        let voters = voters(world);
        voters.contains(&spare) && !voters.contains(&gone)
    });
    world.start(gone).unwrap();
    wait_until_equal(&world);
    let leaver = *voters(&world).iter().find(|voter| **voter != 1).unwrap();
    set_status(&world, leaver, MemberStatus::Valid, MemberStatus::Leaving);
    world.wait_for("the leaving member does not vote", |world| {
        let voters = voters(world);
        voters.len() == 3 && !voters.contains(&leaver)
    });
    propose(&world, 1, Command::RemoveMember { node: id(leaver) }).unwrap();
    propose(&world, 1, set_bucket("b", None, 2)).unwrap();
}

#[test]
fn a_newcomer_gets_a_snapshot_also_if_the_power_fails_meanwhile() {
    let mut world = World::new(9);
    world.timing.log_bytes_min = 2000;
    world.start(1).unwrap();
    let mut version = None;
    for n_val in 0..1200 {
        version = Some(propose(&world, 1, set_bucket("b", version, n_val % 7 + 1)).unwrap());
    }
    world.wait_for("the log begins with a snapshot", |world| world.node(1).purged() > Some(100));
    let mut cuts = 0;
    for number in 2..24 {
        world.start(number).unwrap();
        world.disk(number).cut_power_at(number - 1);
        let (node, deadline) = (world.node(number), world.deadline(10));
        let joined = world.run(async move { node.join(id(1), deadline).await });
        let is_off = world.disk(number).is_off();
        assert!(joined.is_ok() || is_off, "call {}: {joined:?}", number - 1);
        cuts += u32::from(is_off);
        world.kill(number, Loss::Everything);
        world.start(number).unwrap();
        wait_until_equal(&world);
    }
    assert!(cuts > 10, "only {cuts} power cuts");
}

#[test]
fn a_seed_decides_everything() {
    let history = |seed| {
        let mut world = cluster(seed, 3);
        propose(&world, 2, create_type("t")).unwrap();
        world.part(&[1]);
        world.wait_for("another leader", |world| world.node(2).is_leader() || world.node(3).is_leader());
        propose(&world, 3, set_bucket("b", None, 5)).unwrap();
        world.heal();
        wait_until_equal(&world);
        world.kill(2, Loss::Some);
        world.start(2).unwrap();
        wait_until_equal(&world);
        (world.trace(), world.node(1).metadata())
    };
    let first = history(10);
    assert_eq!(first, history(10));
    assert_ne!(first.0, history(11).0);
}

#[test]
fn a_damaged_log_keeps_the_node_from_starting() {
    let mut world = World::new(12);
    world.start(1).unwrap();
    propose(&world, 1, create_type("t")).unwrap();
    world.kill(1, Loss::Nothing);
    let path = std::path::Path::new(world::DIR).join("metadata.log");
    world.disk(1).flip_bit(&path, 8 * 100).unwrap();
    assert!(matches!(world.start(1), Err(StartError::Log(_))));
}
