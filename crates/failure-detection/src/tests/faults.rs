//! Nodes that are killed, paused, cut off or deaf.

use super::network::{MS, Net, SEC, id};
use crate::codec::{PacketCodec, put_process};
use crate::packet::{Body, Packet};
use crate::{Change, PeerState, Process};
use bytes::BufMut;
use foca::{Codec, Header, Member, Message, State};
use ombak_types::NodeId;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn a_killed_node_is_down_within_about_three_seconds_and_up_within_one_after_its_return() {
    let (mut slowest_down, mut slowest_up) = (SEC(0), SEC(0));
    for count in [2, 3, 5, 9] {
        for seed in 0..40 {
            let mut net = Net::formed(count, seed);
            net.loss_per_mille = 10;
            let jitter = MS(net.random(1000));
            net.run_for(jitter);
            let victim = id(1 + net.random(count));
            net.kill(victim);
            let took = net.run_until(SEC(10), |net| {
                net.members().filter(|node| *node != victim).all(|node| net.state(victim, node) == PeerState::Down)
            });
            slowest_down = slowest_down.max(took);
            net.restart(victim);
            slowest_up = slowest_up.max(net.run_until(SEC(10), Net::all_up));
        }
    }
    assert!(slowest_down <= MS(3_500), "{slowest_down:?}");
    assert!(slowest_up <= SEC(1), "{slowest_up:?}");
}

#[test]
fn a_node_that_restarts_at_once_is_a_new_incarnation_and_never_down() {
    let mut net = Net::formed(4, 3);
    net.restart(id(2));
    net.run_for(SEC(10));
    net.expect_all_up();
    let downs: Vec<_> = net.downs();
    assert!(downs.is_empty(), "{downs:?}");
    let restarted = |change: &Change| matches!(change, Change::Up(process) if process.boot_number == 2);
    assert_eq!(net.changes.iter().filter(|(_, by, change)| *by != id(2) && restarted(change)).count(), 3);
}

#[test]
fn pauses_of_200_ms_take_nobody_down() {
    for seed in 0..10 {
        let mut net = Net::formed(5, seed);
        net.loss_per_mille = 10;
        for _ in 0..100 {
            let node = id(1 + net.random(5));
            net.pause(node);
            net.run_for(MS(200));
            net.resume(node);
            let pause = MS(net.random(200));
            net.run_for(pause);
        }
        let downs: Vec<_> = net.downs();
        assert!(downs.is_empty(), "{downs:?}");
    }
}

/// All nodes share one loaded machine, which stops all of them at once.
#[test]
fn a_machine_that_stops_takes_nobody_down() {
    for seed in 0..10 {
        let mut net = Net::formed(5, seed);
        for _ in 0..20 {
            net.members().for_each(|node| net.pause(node));
            let pause = MS(net.random(5_000));
            net.run_for(pause);
            net.members().for_each(|node| net.resume(node));
            let pause = MS(net.random(1_000));
            net.run_for(pause);
        }
        let downs: Vec<_> = net.downs();
        assert!(downs.is_empty(), "{downs:?}");
    }
}

/// A suspect counts as up, so nothing is moved because of a short pause. If it goes on in time, it
/// is up again and was never down.
#[test]
fn a_node_that_misses_a_probe_is_suspect_until_it_refutes_that_or_its_time_has_passed() {
    for seed in 0..30 {
        let mut net = Net::formed(3, seed);
        let is_suspect = |net: &Net| net.state(id(2), id(1)) == PeerState::Suspect;
        net.pause(id(2));
        net.run_until(SEC(3), is_suspect);
        assert!(net.core(id(1)).view().is_up(id(2)), "a suspect counts as up");
        net.resume(id(2));
        net.run_until(SEC(2), |net| net.members().all(|by| by == id(2) || net.state(id(2), by) == PeerState::Up));
        assert!(net.downs().is_empty(), "{:?}", net.downs());

        net.pause(id(2));
        net.run_until(SEC(3), is_suspect);
        let took = net.run_until(SEC(3), |net| net.state(id(2), id(1)) == PeerState::Down);
        assert!(took >= SEC(1), "it was down {took:?} after the suspicion");
        assert!(!net.core(id(1)).view().is_up(id(2)));
        net.resume(id(2));
        net.run_until(SEC(2), Net::all_up);
    }
}

/// A node is suspected while the machine stops. When the machine goes on, the node has the rest of
/// its time to refute that.
#[test]
fn a_suspicion_does_not_grow_while_the_machine_stands_still() {
    for seed in 0..30 {
        let mut net = Net::formed(3, seed);
        net.pause(id(2));
        net.run_for(MS(1_000));
        net.members().for_each(|node| net.pause(node));
        net.run_for(SEC(10));
        net.members().for_each(|node| net.resume(node));
        net.run_for(SEC(5));
        assert!(net.downs().is_empty(), "{:?}", net.downs());
    }
}

#[test]
fn a_node_that_was_paused_for_long_comes_back_and_takes_nobody_for_dead() {
    for seed in 0..30 {
        let mut net = Net::formed(3, seed);
        let pause = MS(2_000 + net.random(10_000));
        net.pause(id(2));
        net.run_for(pause);
        net.resume(id(2));
        let took = net.run_until(SEC(5), Net::all_up);
        assert!(took <= SEC(1), "{took:?}");
        net.run_for(SEC(5));
        assert!(net.downs().iter().all(|(_, by, node)| *by != id(2) && *node == id(2)), "{:?}", net.downs());
    }
}

/// Node 1 hears nobody. It takes all others for dead, and says so to whoever hears it.
#[test]
fn a_deaf_node_takes_no_healthy_node_down_for_others() {
    for seed in 0..30 {
        let mut net = Net::formed(5, seed);
        net.members().skip(1).for_each(|node| net.cut(node, id(1)));
        net.run_for(SEC(30));
        let harmed: Vec<_> = net.downs().into_iter().filter(|(_, by, node)| *by != id(1) && *node != id(1)).collect();
        assert!(harmed.is_empty(), "{harmed:?}");
        assert_eq!(net.state(id(1), id(3)), PeerState::Down, "a node that hears nobody answers nobody");
        net.heal();
        net.run_until(SEC(5), Net::all_up);
    }
}

/// The others reach both ends of the link.
#[test]
fn a_single_link_that_works_one_way_takes_nobody_down() {
    for seed in 0..10 {
        let mut net = Net::formed(4, seed);
        net.cut(id(1), id(2));
        net.run_for(SEC(30));
        assert!(net.downs().is_empty(), "{:?}", net.downs());
    }
}

#[test]
fn both_sides_of_a_split_find_each_other_again_even_if_each_is_one_node() {
    for (count, seed) in [(2, 1), (2, 2), (3, 3), (5, 4), (8, 5)] {
        let mut net = Net::formed(count, seed);
        let (left, right): (Vec<_>, Vec<_>) = net.members().partition(|node| node.get() * 2 <= count);
        for (a, b) in left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b))) {
            net.cut(a, b);
            net.cut(b, a);
        }
        net.run_for(SEC(20));
        assert_eq!(net.state(left[0], right[0]), PeerState::Down);
        net.heal();
        let took = net.run_until(SEC(10), Net::all_up);
        assert!(took <= SEC(1), "{took:?}");
    }
}

#[test]
fn a_node_that_leaves_is_known_to_have_left_at_once() {
    let mut net = Net::formed(4, 7);
    net.leave(id(3));
    net.run_for(MS(50));
    for by in [1, 2, 4] {
        assert_eq!(net.state(id(3), id(by)), PeerState::Left);
    }
    // A packet of before arrives late.
    let stopped = net.core(id(1)).view().peers[&id(3)].process.unwrap();
    let me = Process { renewal: 0, ..net.core(id(2)).view().peers[&id(1)].process.unwrap() };
    let renewed = Process { renewal: 1, ..stopped };
    net.inject(id(3), id(1), &detector_packet(renewed, me, &[]));
    assert_eq!(net.state(id(3), id(1)), PeerState::Left);
    net.run_for(SEC(10));
    assert_eq!(net.state(id(3), id(1)), PeerState::Left);
    net.restart(id(3));
    net.run_until(SEC(1), Net::all_up);
    net.kill(id(3));
    net.run_for(SEC(5));
    assert_eq!(net.state(id(3), id(1)), PeerState::Down, "this time it did not say so");
}

/// What stands before the body of a packet.
const ENVELOPE_BYTES: usize = 2 + Process::BYTES + 8;

fn detector_packet(from: Process, to: Process, updates: &[Member<Process>]) -> Vec<u8> {
    let header = Header { src: from, src_incarnation: 0, dst: to, message: Message::Gossip };
    let mut message = Vec::new();
    PacketCodec.encode_header(&header, &mut message).unwrap();
    message.put_u16(updates.len() as u16);
    updates.iter().for_each(|update| PacketCodec.encode_member(update, &mut message).unwrap());
    Packet { from, known_boot_number: 0, body: Body::Detector(&message) }.encode().to_vec()
}

#[test]
fn a_node_that_is_no_member_is_neither_probed_nor_believed() {
    let mut net = Net::formed(3, 1);
    let stranger = Process::new(id(99), 5, 5);
    let me = Process::new(id(1), 1, 0);
    net.inject(stranger.node, id(1), &detector_packet(stranger, me, &[Member::alive(stranger)]));
    assert!(!net.core(id(1)).has_heard_of(stranger.node));
    // A member that speaks of a stranger is believed in all but that. The sender's process is one
    // that the receiver does not know yet.
    let member = Process::new(id(2), 7, 7);
    net.inject(id(2), id(1), &detector_packet(member, me, &[Member::alive(stranger)]));
    assert!(!net.core(id(1)).has_heard_of(stranger.node));
    // The network itself fails the test if anything is sent to the stranger.
    net.run_for(SEC(10));
    let known: BTreeSet<NodeId> = net.core(id(1)).view().peers.keys().copied().collect();
    assert_eq!(known, BTreeSet::from([id(2), id(3)]));
}

#[test]
fn a_packet_under_another_nodes_name_is_refused() {
    let mut net = Net::formed(3, 1);
    let third = net.core(id(1)).view().peers[&id(3)].process.unwrap();
    let me = net.core(id(3)).view().peers[&id(1)].process.unwrap();
    let down = Member::new(Process { renewal: 9, ..third }, 0, State::Down);
    net.inject(id(2), id(1), &detector_packet(third, me, std::slice::from_ref(&down)));
    // The envelope is honest and the message in it is not.
    let sender = net.core(id(1)).view().peers[&id(2)].process.unwrap();
    let lie = detector_packet(third, me, &[down]);
    let message = &lie[ENVELOPE_BYTES..];
    let honest = Packet { from: sender, known_boot_number: 0, body: Body::Detector(message) };
    let renewed = Process { renewal: 5, ..third };
    net.inject(id(2), id(1), &honest.encode());
    let lie = detector_packet(renewed, me, &[]);
    net.inject(id(2), id(1), &Packet { body: Body::Detector(&lie[ENVELOPE_BYTES..]), ..honest }.encode());
    assert_eq!(net.core(id(1)).view().peers[&id(3)].process, Some(third), "node 2 does not speak for node 3");
    let mut leaving = Packet { from: third, known_boot_number: 0, body: Body::Leaving }.encode().to_vec();
    net.inject(id(2), id(1), &leaving);
    leaving.truncate(9);
    net.inject(id(3), id(1), &leaving);
    net.run_for(MS(100));
    net.expect_all_up();
    assert!(net.downs().is_empty());
    let mut name = Vec::new();
    put_process(&third, &mut name);
    assert_eq!(name.len(), Process::BYTES);
}

#[test]
fn a_member_that_is_removed_is_forgotten_and_can_return() {
    let mut net = Net::formed(3, 1);
    let without = BTreeSet::from([id(1), id(2)]);
    net.set_members(id(1), &without);
    net.set_members(id(2), &without);
    net.run_for(SEC(5));
    assert!(!net.core(id(1)).view().peers.contains_key(&id(3)));
    assert!(!net.core(id(1)).has_heard_of(id(3)));
    assert_eq!(net.state(id(1), id(3)), PeerState::Down, "nobody answers a node that is no member");
    let all = net.members().collect();
    net.set_members(id(1), &all);
    net.set_members(id(2), &all);
    net.run_until(SEC(2), Net::all_up);
}

/// docs/design/replication.md §8
#[test]
fn a_node_with_an_older_directory_learns_of_its_later_start() {
    let mut net = Net::formed(3, 1);
    net.restart(id(2));
    net.restart(id(2));
    net.run_until(SEC(1), Net::all_up);
    net.kill(id(2));
    net.start(id(2), 2);
    net.run_for(SEC(2));
    assert_eq!(net.core(id(2)).view().later_boot_number, Some(3));
    assert!(net.changes.iter().any(|(_, by, change)| (*by, *change) == (id(2), Change::LaterBoot(3))));
}

#[test]
fn a_seed_decides_everything() {
    let run = |seed| {
        let mut net = Net::formed(5, seed);
        net.loss_per_mille = 100;
        net.kill(id(2));
        net.run_for(SEC(5));
        net.restart(id(2));
        net.run_for(SEC(5));
        net.changes
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill(u64),
    Restart(u64),
    Pause(u64),
    Resume(u64),
    Cut(u64, u64),
    Split(u64),
    Heal,
    Loss(u64),
}

fn fault(count: u64) -> impl Strategy<Value = Fault> {
    let node = 1..=count;
    prop_oneof![
        node.clone().prop_map(Fault::Kill),
        node.clone().prop_map(Fault::Restart),
        node.clone().prop_map(Fault::Pause),
        node.clone().prop_map(Fault::Resume),
        (node.clone(), node).prop_map(|(a, b)| Fault::Cut(a, b)),
        any::<u64>().prop_map(Fault::Split),
        Just(Fault::Heal),
        (0..500u64).prop_map(Fault::Loss),
    ]
}

fn strike(net: &mut Net, fault: Fault) {
    match fault {
        Fault::Kill(node) => net.kill(id(node)),
        Fault::Restart(node) => net.restart(id(node)),
        Fault::Pause(node) => net.pause(id(node)),
        Fault::Resume(node) => net.resume(id(node)),
        Fault::Cut(a, b) => net.cut(id(a), id(b)),
        Fault::Split(sides) => {
            let side = |node: NodeId| sides >> node.get() & 1;
            for (a, b) in net.members().flat_map(|a| net.members().map(move |b| (a, b))).collect::<Vec<_>>() {
                if side(a) != side(b) {
                    net.cut(a, b);
                }
            }
        }
        Fault::Heal => net.heal(),
        Fault::Loss(per_mille) => net.loss_per_mille = per_mille,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn healthy_nodes_are_up_for_each_other_soon_after_healing_and_stay_up(
        count in 2..7u64,
        seed in any::<u64>(),
        faults in prop::collection::vec((fault(6), 0..4_000u64), 0..25),
    ) {
        let mut net = Net::new(count, seed);
        for (fault, pause) in faults {
            let exists = match fault {
                Fault::Kill(a) | Fault::Restart(a) | Fault::Pause(a) | Fault::Resume(a) => a <= count,
                Fault::Cut(a, b) => a.max(b) <= count,
                Fault::Split(_) | Fault::Heal | Fault::Loss(_) => true,
            };
            if exists {
                strike(&mut net, fault);
                net.run_for(MS(pause));
            }
        }
        net.heal();
        for node in net.members().filter(|node| net.is_dead(*node)).collect::<Vec<_>>() {
            net.restart(node);
        }
        net.run_until(SEC(5), Net::all_up);
        net.run_for(SEC(3));
        net.changes.clear();
        net.run_for(SEC(20));
        net.expect_all_up();
        let downs = net.downs();
        prop_assert!(downs.is_empty(), "{:?}", downs);
    }
}
