//! What goes wrong, and what operators do.

use super::leader::Entry;
use super::world::{Event, SECOND, World};
use ombak_ring::staging::{Change, MemberStatus};
use ombak_types::NodeId;

impl World {
    pub fn fault(&mut self) {
        let nodes: Vec<NodeId> = self.members.keys().copied().collect();
        let (Some(a), Some(b)) = (self.rng.pick(&nodes), self.rng.pick(&nodes)) else { return };
        let time =
            if self.rng.percent(25) { self.rng.within(SECOND, 90 * SECOND) } else { self.rng.within(100, 8 * SECOND) };
        match self.rng.within(0, 99) {
            0..20 => self.kill(a, time),
            20..36 => {
                if let Some(member) = self.members.get_mut(&a) {
                    member.paused_until = self.now + time;
                }
            }
            36..58 => self.cut(a, b, time),
            58..61 => self.elect(),
            61..70 => self.deafen(),
            70..86 => self.change_members(),
            86..93 if self.allowed.lost_stores => self.lose_store(a, time),
            93..100 if self.allowed.down && !self.is_alive(a) => self.at(0, Event::Append(Entry::Down(a))),
            _ => {}
        }
    }

    /// Some members do not hear from the leader.
    fn deafen(&mut self) {
        let until = self.now + self.rng.within(5 * SECOND, 40 * SECOND);
        for member in self.members.values_mut() {
            if self.rng.percent(40) {
                member.deaf_until = until;
            }
        }
    }

    pub fn kill(&mut self, node: NodeId, time: u64) {
        if let Some(member) = self.members.get_mut(&node).filter(|member| member.is_running) {
            member.kill();
            self.at(time, Event::Start(node));
        }
    }

    fn lose_store(&mut self, node: NodeId, time: u64) {
        // A member that is to be a primary is the most interesting one.
        let joining: Vec<NodeId> =
            self.members.values().filter(|member| !member.joining.is_empty()).map(|member| member.id).collect();
        let node = if self.rng.percent(70) { self.rng.pick(&joining).unwrap_or(node) } else { node };
        self.kill(node, time.min(3 * SECOND));
        self.oracle.destroy(&self.shared, &self.members, node);
        if let Some(member) = self.members.get_mut(&node) {
            member.lose_store(&self.shared);
        }
    }

    fn change_members(&mut self) {
        let members = &self.shared.now().members;
        let of_status =
            |wanted| members.iter().filter(|(_, status)| **status == wanted).map(|(node, _)| *node).collect();
        let valid: Vec<NodeId> = of_status(MemberStatus::Valid);
        let down: Vec<NodeId> = of_status(MemberStatus::Down);
        let (Some(node), joiner) = (self.rng.pick(&valid), NodeId::new(self.next_node)) else { return };
        let forced = self.rng.pick(&down).unwrap_or(node);
        let join = Change::Join { node: joiner };
        let may_shrink = valid.len() > 2;
        let changes = match self.rng.within(0, 9) {
            0..3 if valid.len() < 6 => vec![join],
            3..6 if may_shrink => vec![Change::Leave { node }],
            6 | 7 => vec![join, Change::Replace { node, with: joiner }],
            8 if self.allowed.force && may_shrink => vec![Change::ForceRemove { node: forced }],
            9 if self.allowed.force => vec![join, Change::ForceReplace { node: forced, with: joiner }],
            _ => return,
        };
        self.next_node += 1;
        self.at(0, Event::Append(Entry::Goal(changes)));
    }
}
