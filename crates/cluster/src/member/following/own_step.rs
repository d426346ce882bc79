//! What a state of the metadata asks of the node that follows it.
//!
//! What it is: a pure function of two states and of who this node is.

use ombak_metadata::state::{MemberStatus, Metadata};
use ombak_types::NodeId;

/// What this node does because of a state that it has adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::member) enum OwnStep {
    /// It was marked as down, and says that it is up.
    SayUp,
    /// The member with the name of this node, whose place it has taken, is gone.
    TakeBackName,
    /// It was removed.
    TakeNoPart,
    /// What it does about its way into a cluster.
    Join(JoinStep),
}

/// What a node does about its way into a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::member) enum JoinStep {
    /// A join that it began did not happen, so other nodes may join it again.
    Stay,
    /// It joins, and looks from now on whether it still does.
    WatchWithdrawal,
    /// It does not join after all, and begins a cluster of its own.
    BeginAlone,
}

/// The step that follows from `state` after `last`, for the node with this identity and this name.
/// `is_joining` says that it is about to leave its own cluster for another one.
pub(super) fn own_step(
    last: &Metadata,
    state: &Metadata,
    (me, name): (NodeId, &str),
    is_joining: bool,
) -> Option<OwnStep> {
    let status = |of: &Metadata| of.members().get(&me).map(|member| member.status);
    let has_twin = |of: &Metadata| of.members().iter().any(|(node, member)| *node != me && member.name == name);
    match (status(last), status(state)) {
        (_, Some(MemberStatus::Down)) => Some(OwnStep::SayUp),
        (_, Some(MemberStatus::Exiting)) if state.members().len() == 1 && !is_joining => {
            Some(OwnStep::Join(JoinStep::Stay))
        }
        (Some(MemberStatus::Joining), None) => Some(OwnStep::Join(JoinStep::BeginAlone)),
        (before, Some(MemberStatus::Joining)) if before != Some(MemberStatus::Joining) => {
            Some(OwnStep::Join(JoinStep::WatchWithdrawal))
        }
        (Some(_), Some(_)) if has_twin(last) && !has_twin(state) => Some(OwnStep::TakeBackName),
        (Some(_), None) if state.was_removed(me) => Some(OwnStep::TakeNoPart),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_metadata::state::{Command, Lineage, NewMember, RaftId};
    use ombak_ring::{Ring, RingSize, RingVersion};

    const A: NodeId = NodeId::new(1);
    const B: NodeId = NodeId::new(2);
    const C: NodeId = NodeId::new(3);

    fn name(node: NodeId) -> String {
        format!("n{}@h", node.get())
    }

    fn member(node: NodeId) -> NewMember {
        let number = node.get();
        let (name, peer_address) = (name(node), format!("h:{number}"));
        NewMember { node, name, peer_address, log: RaftId::new(100 + number), boot: 1, milestone: None }
    }

    /// A cluster of A alone, after these commands.
    fn state(commands: impl IntoIterator<Item = Command>) -> Metadata {
        let ring = Ring::of_one_node(A, RingSize::new(8).unwrap(), RingVersion::first(7));
        let found = Command::Found { lineage: Lineage { id: 7, forced_from: None }, member: member(A), ring };
        let mut state = Metadata::default();
        for (index, command) in (1..).zip([found].into_iter().chain(commands)) {
            state.apply(index, command).unwrap();
        }
        state
    }

    fn joins(node: NodeId) -> Command {
        Command::AddMember(member(node))
    }

    const fn becomes(node: NodeId, expected: MemberStatus, status: MemberStatus) -> Command {
        Command::SetStatus { node, expected, status }
    }

    fn step(of: NodeId, last: &Metadata, state: &Metadata) -> Option<OwnStep> {
        own_step(last, state, (of, &name(of)), false)
    }

    #[test]
    fn a_node_that_joins_looks_once_whether_it_still_does() {
        let (before, joining) = (state([]), state([joins(B)]));
        assert_eq!(step(B, &before, &joining), Some(OwnStep::Join(JoinStep::WatchWithdrawal)));
        assert_eq!(step(B, &joining, &joining), None);
        assert_eq!(step(A, &before, &joining), None, "it is another node");
    }

    #[test]
    fn a_node_that_was_left_out_begins_alone_and_one_that_was_removed_takes_no_part() {
        let left_out = state([joins(B), Command::WithdrawMember { node: B }]);
        assert_eq!(step(B, &state([joins(B)]), &left_out), Some(OwnStep::Join(JoinStep::BeginAlone)));
        let full = || [joins(B), becomes(B, MemberStatus::Joining, MemberStatus::Valid)];
        let removed = state(full().into_iter().chain([Command::RemoveMember { node: B }]));
        assert_eq!(step(B, &state(full()), &removed), Some(OwnStep::TakeNoPart));
        assert_eq!(step(B, &removed, &removed), None);
    }

    #[test]
    fn a_node_that_is_marked_as_down_says_with_each_state_that_it_is_up() {
        let down = state([becomes(A, MemberStatus::Valid, MemberStatus::Down)]);
        assert_eq!(step(A, &state([]), &down), Some(OwnStep::SayUp));
        assert_eq!(step(A, &down, &down), Some(OwnStep::SayUp));
    }

    #[test]
    fn a_node_that_is_alone_and_does_not_move_stays() {
        let exiting = state([becomes(A, MemberStatus::Valid, MemberStatus::Exiting)]);
        assert_eq!(step(A, &state([]), &exiting), Some(OwnStep::Join(JoinStep::Stay)));
        assert_eq!(own_step(&state([]), &exiting, (A, &name(A)), true), None, "it is about to join another cluster");
        let leaves = state([joins(B), becomes(A, MemberStatus::Valid, MemberStatus::Exiting)]);
        assert_eq!(step(A, &state([joins(B)]), &leaves), None, "it leaves a cluster");
    }

    #[test]
    fn a_node_takes_back_its_name_when_the_member_with_it_is_gone() {
        let commands = || [joins(B), joins(C)];
        let gone = state(commands().into_iter().chain([Command::WithdrawMember { node: B }]));
        let of_c = |name: &str| own_step(&state(commands()), &gone, (C, name), false);
        assert_eq!(of_c(&name(B)), Some(OwnStep::TakeBackName));
        assert_eq!(of_c(&name(C)), None);
    }
}
