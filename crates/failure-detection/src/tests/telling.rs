//! What nodes tell about themselves.

use super::network::{MS, Net, SEC, id};
use crate::{Change, ClassSet, SoftState};
use ombak_types::NodeId;
use std::collections::BTreeSet;

fn counting(value: u64) -> SoftState {
    SoftState { counters: [(1, value)].into(), ..SoftState::default() }
}

fn told(net: &Net, of: NodeId, by: NodeId) -> Option<u64> {
    net.core(by).view().peers[&of].soft_state.as_ref()?.counters.get(&1).copied()
}

#[test]
fn the_last_state_reaches_everybody_through_losses_restarts_and_returns() {
    let mut net = Net::formed(4, 9);
    net.loss_per_mille = 200;
    for value in 0..20 {
        net.publish(id(1), counting(value));
        net.run_for(MS(130));
        if value == 10 {
            net.restart(id(2));
            net.kill(id(3));
        }
    }
    net.restart(id(3));
    net.run_until(SEC(10), |net| [2, 3, 4].into_iter().all(|by| told(net, id(1), id(by)) == Some(19)));
    net.loss_per_mille = 0;
    net.run_for(SEC(3));
    net.restart(id(2));
    net.run_until(SEC(10), |net| told(net, id(1), id(2)) == Some(19));
    net.restart(id(1));
    net.publish(id(1), counting(1));
    net.run_until(SEC(10), |net| [2, 3, 4].into_iter().all(|by| told(net, id(1), id(by)) == Some(1)));
}

#[test]
fn frequent_changes_are_told_once_an_interval_and_no_change_is_told_once() {
    let mut net = Net::formed(2, 9);
    for value in 0..100 {
        net.publish(id(1), counting(value));
        net.run_for(MS(100));
    }
    let news = |net: &Net| net.changes.iter().filter(|(_, _, change)| *change == Change::Told(id(1))).count();
    assert!((9..=12).contains(&news(&net)), "{}", news(&net));
    net.run_for(SEC(2));
    net.changes.clear();
    for _ in 0..50 {
        net.publish(id(1), counting(99));
        net.run_for(MS(100));
    }
    assert_eq!((news(&net), told(&net, id(1), id(2))), (0, Some(99)));
}

#[test]
fn owed_classes_of_all_others_count() {
    let mut net = Net::formed(3, 9);
    let owed = ClassSet::Listed(BTreeSet::from([(5, 3)]));
    net.publish(id(1), SoftState { owed: [(id(2), owed)].into(), ..SoftState::default() });
    net.run_for(SEC(2));
    let view = net.core(id(3)).view();
    assert!(view.is_owed(id(2), 5, 3));
    assert!(!view.is_owed(id(2), 5, 2) && !view.is_owed(id(1), 5, 3));
}
