//! What the parts of the model share: keys, copies, the metadata and the messages.

use super::exchange::Kind;
use super::marks::{About, Mark, Told};
use ombak_ring::Positions;
use ombak_ring::placement::{HomePlacement, Placement, ProofOrder, Report};
use ombak_ring::staging::{MemberStatus, Members};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The place of a key in the list of keys.
pub type Key = usize;

/// A copy is the set of the writes that it has seen, one bit each. So a merge is a union, and a
/// descendant is a superset.
pub type Copied = u64;

/// A key: its class, and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    pub home: u32,
    pub n: u32,
}

/// What a write has seen, and whether it deletes that.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    pub seen: Copied,
    pub is_delete: bool,
}

/// The bits of a copy.
pub fn bits(copy: Copied) -> impl Iterator<Item = usize> {
    (0..64).filter(move |bit| copy & (1 << bit) != 0)
}

/// What an entry of the metadata made.
#[derive(Clone, Debug)]
pub struct State {
    pub placement: Placement,
    pub members: Members,
}

impl State {
    pub fn home(&self, class: Class) -> HomePlacement<'_> {
        self.placement.home(class.home)
    }

    /// The version at which the home changed last.
    pub fn changed(&self, class: Class) -> u64 {
        self.home(class).version().number
    }

    pub fn number(&self) -> u64 {
        self.placement.version().number
    }

    pub fn is_primary(&self, node: NodeId, class: Class) -> bool {
        self.home(class).is_primary(node, class.n)
    }

    pub fn primaries(&self, class: Class) -> BTreeSet<NodeId> {
        self.home(class).primaries(class.n).into_iter().collect()
    }

    /// Who serves each position and who owns it, in the ring in force and in the other one.
    pub fn positions(&self, class: Class, serves: &dyn Fn(NodeId, bool) -> bool) -> Vec<Vec<(NodeId, NodeId)>> {
        let home = self.home(class);
        let rings = [Some(home.in_force()), home.other()].into_iter().flatten();
        let in_ring = |ring: &std::sync::Arc<ombak_ring::Ring>| {
            let owners = ring.replica_set(class.home, class.n);
            let rows: Positions = ring.positions(class.home, class.n, |node| {
                let node = ring.id(node);
                serves(node, owners.contains(&node))
            });
            rows.iter().map(|row| (ring.id(row.node), ring.id(row.owner))).collect()
        };
        rings.map(in_ring).collect()
    }

    pub fn status(&self, node: NodeId) -> Option<MemberStatus> {
        self.members.get(&node).copied()
    }
}

/// What a member answers to the leader.
#[derive(Clone, Debug)]
pub struct Answer {
    pub report: Report,
    /// The last entry below which no request of the member is under way.
    pub confirmed_entry: usize,
    /// Whether it holds nothing and owes nothing.
    pub is_empty: bool,
    /// The number of the question.
    pub question: u64,
}

/// What a copy is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Owed,
    HandBack,
    Exchange,
}

/// A copy that is sent names the moment at which it was read.
#[derive(Clone, Debug)]
pub enum Message {
    Write {
        request: u64,
        attempt: u32,
        key: Key,
        copy: Copied,
        stamp: u64,
        read_at: u64,
    },
    /// `newer` is the entry that the coordinator lacks; then the write does not count.
    Written {
        request: u64,
        attempt: u32,
        newer: Option<usize>,
    },
    Read {
        request: u64,
        attempt: u32,
        key: Key,
        stamp: u64,
    },
    Found {
        request: u64,
        attempt: u32,
        copy: Copied,
        counts: bool,
        newer: Option<usize>,
    },
    Metadata {
        last: usize,
    },
    Question {
        term: u64,
        question: u64,
        orders: Vec<ProofOrder>,
    },
    Answer {
        term: u64,
        answer: Box<Answer>,
    },
    Prove {
        home: u32,
        begun: u64,
        copies: Vec<(Key, Copied)>,
        /// The seqs of the prover's stores that the proof covers.
        seqs: Vec<(Key, u64)>,
        read_at: u64,
    },
    Proved {
        home: u32,
        begun: u64,
        seqs: Vec<(Key, u64, About)>,
    },
    Push {
        key: Key,
        copy: Copied,
        stamp: u64,
        purpose: Purpose,
        read_at: u64,
    },
    /// `holds` says whether the receiver is a primary at the sender's version.
    Pushed {
        key: Key,
        copy: Copied,
        stamp: u64,
        holds: bool,
        newer: Option<usize>,
        purpose: Purpose,
    },
    Fill {
        class: (u32, u32),
        changed: u64,
    },
    Filled {
        class: (u32, u32),
        changed: u64,
        copies: Vec<(Key, About)>,
        read_at: u64,
    },
    /// A question of an exchange about one key.
    Ask {
        key: Key,
        kind: Kind,
        number: u64,
        changed: u64,
    },
    Said {
        key: Key,
        kind: Kind,
        number: u64,
        about: Box<About>,
    },
    Marked {
        key: Key,
        changed: u64,
        mark: Mark,
    },
    /// The questions of a round of reaping, and the answer to both.
    Vote {
        key: Key,
        number: u64,
        stamp: u64,
        copy: Copied,
    },
    LookForOthers {
        key: Key,
        number: u64,
        stamp: u64,
    },
    Agreed {
        key: Key,
        number: u64,
        told: Told,
    },
    Remove {
        key: Key,
        stamp: u64,
        copy: Copied,
        told: BTreeMap<NodeId, Told>,
    },
}
