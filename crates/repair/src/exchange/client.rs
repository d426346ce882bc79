//! The questions of an exchange, their answers, and the ways to other nodes.
//!
//! All sums and mixes are those of [`super::sums`]. The transport gives them bytes.

use super::lists::LIST_MIXES_MAX;
use super::sums::{GROUPS, GroupSet, RANGES, RANGES_IN_GROUP};
use ombak_kv::ClassId;
use ombak_kv::replica::{COMPARE_KEYS_MAX, Held, HeldVersion};
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId};
use std::sync::Arc;

/// Maximum number of ranges that one question names. It is also the most that one exchange repairs:
/// further ones wait for the next exchange.
pub const SOME_RANGES_MAX: usize = 1_024;

/// A question of an exchange about one class.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeQuestion {
    /// The class.
    pub class: ClassId,
    /// The version of the home that the asking node knows. A node that knows another one refuses.
    pub home_version: RingVersion,
    /// Which keys are in the classes with this n, as a number. A node that knows other ones
    /// refuses: the n_val of a bucket is changing.
    pub class_print: u64,
    /// The first slot of expiry that the asking node compares. What expires before it is in no
    /// range, and in no sum. [`NO_SLOTS`](crate::NO_SLOTS): nothing that expires is compared.
    pub first_slot: u32,
    /// What is asked.
    pub part: ExchangePart,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum ExchangePart {
    /// Do you hold the same?
    Root(RootQuestion),
    /// The sums of all groups of ranges.
    Groups,
    /// The sums of the ranges of some groups: bit g stands for group g.
    Ranges {
        /// The groups.
        groups: GroupSet,
        /// Whether the asking node takes the outlines of these groups in place of the sums. A node
        /// of an earlier version answers with the sums.
        takes_outlines: bool,
    },
    /// The sums of some ranges.
    Some {
        /// The numbers of the ranges, ascending, at most [`SOME_RANGES_MAX`].
        ranges: Vec<u32>,
    },
    /// Which of these versions do you lack?
    List(ListQuestion),
    /// What do you hold of these keys?
    Keys(KeysQuestion),
    /// Note that everything was included.
    Mark(MarkQuestion),
}

/// Asks whether a node holds the same of a class. If it does, it notes that: everything in the
/// asking node's store up to `seq` is included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootQuestion {
    /// The id of the asking node's store.
    pub store_id: u64,
    /// The seq of the cut.
    pub seq: u64,
    /// The sum of the whole class.
    pub sum: u64,
    /// The seq of the answering node's store in the mark that the asking node has for it; 0: it has
    /// none.
    pub marked_seq: u64,
}

/// The versions that the asking node holds in some ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuestion {
    /// The numbers of the ranges, ascending, at most [`SOME_RANGES_MAX`].
    pub ranges: Vec<u32>,
    /// The list has all versions of these ranges whose mixes lie between these two numbers, both
    /// included.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// The mixes, ascending, at most [`LIST_MIXES_MAX`].
    pub mixes: Vec<u64>,
}

/// Asks what a node holds of some keys. It compares, and syncs its store then.
#[derive(Clone, Debug, PartialEq)]
pub struct KeysQuestion {
    /// The id of the asking node's store.
    pub store_id: u64,
    /// As in [`RootQuestion`].
    pub marked_seq: u64,
    /// The versions, at most [`COMPARE_KEYS_MAX`].
    pub versions: Vec<HeldVersion>,
}

/// Says that everything in the asking node's store up to `seq` is included here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkQuestion {
    /// The id of the asking node's store.
    pub store_id: u64,
    /// The seq.
    pub seq: u64,
    /// The token that the node had when the exchange began. With another one it notes nothing.
    pub token: u64,
}

/// The answer to a question of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub enum ExchangeAnswer {
    /// To [`ExchangePart::Root`].
    Root(RootAnswer),
    /// Sums, in the order of the groups or ranges. Those that are missing at the end are 0.
    Sums(Vec<u64>),
    /// To [`ExchangePart::Ranges`], if the asking node takes them:
    /// [`OUTLINE_NUMBERS`](crate::OUTLINE_NUMBERS) for each group.
    Outlines(Vec<u64>),
    /// The mixes of a list that the node lacks, ascending.
    Lacked(Vec<u64>),
    /// To [`ExchangePart::Keys`].
    Keys(KeysAnswer),
    /// To [`ExchangePart::Mark`]: the seq of the answering node's store at which it held
    /// everything. The mark is durable there. 0: the mark was not noted.
    Marked(u64),
}

/// What a node says of itself when an exchange begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootAnswer {
    /// Whether its sum is the same, and it has noted that.
    pub is_same: bool,
    /// What can be relied on.
    pub standing: Standing,
    /// What it has noted of the asking node's store: everything up to this seq was included; 0:
    /// nothing that holds.
    pub known_seq: u64,
}

/// What can be relied on of a node's store of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether the node is known to hold everything of the class.
    pub is_full: bool,
    /// Whether the seq in the asking node's mark is lost: the store issued it and does not have it
    /// any more.
    pub is_lost: bool,
    /// The id of the store; 0 if the class is not full.
    pub store_id: u64,
    /// A random number that the node has drawn when the class became full; 0 while it is not full.
    pub token: u64,
    /// The store has on its disk everything that the answer is about, up to this seq.
    pub seq: u64,
}

/// What a node holds of some keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysAnswer {
    /// What can be relied on. It is of a time after the look at the keys.
    pub standing: Standing,
    /// As in [`RootAnswer`].
    pub known_seq: u64,
    /// For each version of the question, in its order.
    pub held: Vec<KeyHeld>,
}

/// What a node holds of a key, compared with the version in the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeld {
    /// It can be read, and compares like this.
    Readable(Held),
    /// As [`Self::Readable`], but it is in doubt: it is no evidence that the version was not
    /// removed.
    InDoubt(Held),
    /// Something that the node cannot read.
    Unreadable,
}

impl KeyHeld {
    /// How what can be read compares, in doubt or not.
    pub const fn held(self) -> Option<Held> {
        match self {
            Self::Readable(held) | Self::InDoubt(held) => Some(held),
            Self::Unreadable => None,
        }
    }

    /// Whether the version is lacked: there is nothing, or something that neither contains it nor
    /// is contained in it.
    pub const fn is_lack(self) -> bool {
        matches!(self.held(), Some(Held::Nothing | Held::Other))
    }
}

/// Another node, as the other side of exchanges.
pub trait ExchangeClient: Send + Sync {
    /// Asks the node. A busy node refuses, and is asked again later.
    fn ask(&self, question: ExchangeQuestion) -> BoxFuture<'static, Result<ExchangeAnswer, Error>>;
}

/// The ways to other nodes.
pub trait ExchangePeers: Send + Sync {
    /// A node; none if it is known to have no exchanges, as earlier versions.
    fn client(&self, node: NodeId) -> Option<Arc<dyn ExchangeClient>>;

    /// Whether a node is known to have exchanges, also while it is down. A class of which one
    /// primary has none is not exchanged: nobody knows what that node has removed or lost.
    fn has_exchanges(&self, node: NodeId) -> bool {
        self.client(node).is_some()
    }
}

/// What a question takes beside its numbers, about: 60 bytes of headers of the transport, and 25
/// that name the class and what both nodes have to know of it.
const QUESTION_BYTES: u64 = 85;
/// What an answer takes beside its numbers, about: 24 bytes of headers of the transport, and its
/// kind.
const ANSWER_BYTES: u64 = 28;

impl ExchangePart {
    /// Whether the sizes are within their bounds, and the numbers of ranges ascend.
    pub(super) fn is_valid(&self) -> bool {
        let are_ranges = |ranges: &[u32]| {
            ranges.len() <= SOME_RANGES_MAX
                && ranges.is_sorted_by(|a, b| a < b)
                && ranges.last().is_none_or(|last| (*last as usize) < RANGES)
        };
        match self {
            Self::Root(_) | Self::Groups | Self::Ranges { .. } | Self::Mark(_) => true,
            Self::Some { ranges } => are_ranges(ranges),
            Self::Keys(keys) => keys.versions.len() <= COMPARE_KEYS_MAX,
            Self::List(list) => {
                let ListQuestion { ranges, from, to, mixes } = list;
                let is_inside = |mix: &u64| (from..=to).contains(&mix);
                are_ranges(ranges) && mixes.len() <= LIST_MIXES_MAX && mixes.is_sorted() && mixes.iter().all(is_inside)
            }
        }
    }

    /// The bytes of the question, about, with the headers of the transport.
    pub fn bytes(&self) -> u64 {
        let numbers = match self {
            Self::Root(_) => 3,
            Self::Groups => 0,
            Self::Ranges { .. } => 2,
            Self::Some { ranges } => ranges.len() / 4,
            Self::List(list) => list.mixes.len() + list.ranges.len() / 4 + 2,
            Self::Keys(keys) => 2 + keys.versions.iter().map(|version| 8 + version.key.len() / 8).sum::<usize>(),
            Self::Mark(_) => 3,
        };
        QUESTION_BYTES + 8 * numbers as u64
    }

    /// The most bytes that its answer may have, about.
    pub(super) fn answer_bytes_max(&self) -> u64 {
        let numbers = match self {
            Self::Root(_) => 3,
            Self::Mark(_) => 1,
            Self::Groups => GROUPS,
            Self::Ranges { groups, .. } => groups.count_ones() as usize * RANGES_IN_GROUP,
            Self::Some { ranges } => ranges.len(),
            Self::List(list) => list.mixes.len(),
            Self::Keys(keys) => 4 + keys.versions.len() / 8,
        };
        ANSWER_BYTES + 8 * numbers as u64
    }
}

impl ExchangeAnswer {
    /// The bytes of the answer, about, with the headers of the transport.
    pub fn bytes(&self) -> u64 {
        let numbers = match self {
            Self::Root(_) => 3,
            Self::Sums(numbers) | Self::Outlines(numbers) | Self::Lacked(numbers) => numbers.len(),
            Self::Keys(keys) => 4 + keys.held.len() / 8,
            Self::Marked(_) => 1,
        };
        ANSWER_BYTES + 8 * numbers as u64
    }
}
