//! Members that came back with another address.
//!
//! Members know each other by addresses, which the metadata has. A member that starts under another
//! address tells it to the others, and a majority has to decide that. If so many members have moved
//! that no majority finds each other, nothing can be decided. So a node with names in its
//! configuration looks for members that are away: it asks whoever answers under those names who it
//! is, and talks to a member where it has found it, until the metadata has the new address.
//!
//! A node whose configuration has plain addresses alone looks for nobody.

use super::known_members::others;
use super::state::Following;
use crate::peer_table::Member;
use futures_util::future::join_all;
use ombak_metadata::state::Metadata;
use ombak_runtime::RuntimeExt;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

/// The longest pause between two looks for members that are away.
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// A member that was found at another address than the metadata has.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// What the metadata had.
    from: SocketAddr,
    to: SocketAddr,
}

/// The members that were found at other addresses than the metadata has.
#[derive(Debug, Default)]
pub(in crate::member) struct MovedMembers(Mutex<BTreeMap<NodeId, Moved>>);

impl MovedMembers {
    /// Puts the addresses where members were found in place of those of the metadata. A member that
    /// has a new address in the metadata since, and one that is none any more, is forgotten here.
    fn correct(&self, mut members: Vec<Member>) -> Vec<Member> {
        let mut moved = self.0.lock();
        moved.retain(|node, at| members.iter().any(|member| member.id == *node && member.address == at.from));
        for member in &mut members {
            if let Some(at) = moved.get(&member.id) {
                member.address = at.to;
            }
        }
        members
    }

    fn note(&self, node: NodeId, from: SocketAddr, to: SocketAddr) {
        if from == to {
            self.0.lock().remove(&node);
        } else {
            self.0.lock().insert(node, Moved { from, to });
        }
    }
}

impl Following {
    /// The other members of a state, with the addresses at which they are reached.
    pub fn others_in(&self, state: &Metadata) -> Vec<Member> {
        self.moved.correct(others(state, self.id()))
    }

    /// Looks for members that are away under the names of the configuration, until the node stops.
    pub fn start_looking_for_members(self: &Arc<Self>) {
        if !self.seeds.have_names() || self.own_directory.older().is_some() {
            return;
        }
        // A node that stops meanwhile is not held.
        let (this, runtime) = (Arc::downgrade(self), self.runtime.clone());
        let mut pause = self.timing.metadata.maintenance;
        self.runtime.spawn(Box::pin(async move {
            let mut missed = BTreeSet::new();
            loop {
                runtime.sleep(pause).await;
                let Some(this) = this.upgrade() else { return };
                if this.is_stopping() || this.own_directory.older().is_some() {
                    return;
                }
                let away = this.members_away();
                let is_news = this.look_for(&away).await || away != missed;
                pause = if is_news { this.timing.metadata.maintenance } else { (pause * 2).min(PAUSE_MAX) };
                missed = away;
            }
        }));
    }

    fn members_away(&self) -> BTreeSet<NodeId> {
        let state = self.followed.get().metadata;
        let members = state.members().keys().copied();
        members.filter(|node| *node != self.id() && !self.is_up(*node)).collect()
    }

    /// Looks for members that are away. Returns whether one was found at another address.
    async fn look_for(&self, away: &BTreeSet<NodeId>) -> bool {
        if away.is_empty() {
            return false;
        }
        let state = self.followed.get().metadata;
        let seeds = self.seeds.look_up().await.into_iter().filter_map(|(_, address)| address.ok());
        // Most names lead to nodes with which this one talks already.
        let known = self.others_in(&state);
        let unknown = seeds.filter(|at| !known.iter().any(|member| member.address == *at && self.is_up(member.id)));
        // Last, so that they win: a member that answers where the metadata has it is reached there.
        let recorded = others(&state, self.id()).into_iter().filter(|member| away.contains(&member.id));
        let asked = unknown.chain(recorded.map(|member| member.address)).map(|address| async move {
            let identity = self.node.transport().identify(address, self.question_deadline()).await;
            identity.ok().map(|identity| (identity.node, address))
        });
        let answers = join_all(asked).await.into_iter().flatten();
        let found = answers.filter(|(node, _)| away.contains(node)).collect();
        self.talk_to(found).await
    }

    /// Talks to members at these addresses from now on. Returns whether one of them is new.
    async fn talk_to(&self, found: BTreeMap<NodeId, SocketAddr>) -> bool {
        // A state that is adopted meanwhile must not set the addresses back.
        let _adopting = self.adopting.lock().await;
        let state = self.followed.get().metadata;
        let mut is_news = false;
        for (node, to) in found {
            let known = others(&state, self.id()).into_iter().find(|member| member.id == node);
            let Some(Member { name, address: from, .. }) = known else { continue };
            let before = self.others_in(&state).into_iter().find(|member| member.id == node);
            if before.is_some_and(|before| before.address != to) {
                info!(member = name, address = %to, "a member was found at another address");
                is_news = true;
                self.moved.note(node, from, to);
            }
        }
        if is_news {
            self.node.set_members(self.others_in(&state));
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: u64, port: u16) -> Member {
        Member { id: NodeId::new(number), name: format!("n{number}"), address: at(port) }
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn ports(members: &[Member]) -> Vec<u16> {
        members.iter().map(|member| member.address.port()).collect()
    }

    #[test]
    fn a_member_keeps_the_address_at_which_it_was_found_until_the_metadata_has_another_one() {
        let moved = MovedMembers::default();
        let recorded = || vec![member(1, 10), member(2, 20)];
        assert_eq!(ports(&moved.correct(recorded())), [10, 20]);
        moved.note(NodeId::new(2), at(20), at(21));
        assert_eq!(ports(&moved.correct(recorded())), [10, 21]);
        assert_eq!(ports(&moved.correct(vec![member(1, 10), member(2, 22)])), [10, 22], "it has told its address");
        assert_eq!(ports(&moved.correct(recorded())), [10, 20], "what was found before is forgotten");
        moved.note(NodeId::new(2), at(20), at(21));
        moved.note(NodeId::new(2), at(20), at(20));
        assert_eq!(ports(&moved.correct(recorded())), [10, 20], "it is back where it was");
    }
}
