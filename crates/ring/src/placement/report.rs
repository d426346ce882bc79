//! What a member says about a change of the ring.

use crate::ring::RingVersion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a member says about a change of the ring. All of it is about one placement version at
/// least as high as `confirmed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The highest version of the placement that the member has adopted, and below which no
    /// request that it coordinated is under way.
    pub confirmed: RingVersion,
    /// The changing homes that the member has proved to every other member of the new set.
    pub proved: Vec<ProvedHome>,
    /// The changing homes of which the member is in the new set, and would not be full in some
    /// class if they flipped now.
    pub lacking: Vec<LackingHome>,
    /// Whether the member cannot take copies, because a disk is full or a store is broken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_no_copies: bool,
}

/// A home that a member of its old set has proved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvedHome {
    /// The home partition.
    pub home: u32,
    /// The number of the home version of the begin. A proof of an earlier attempt says nothing.
    pub begun: u64,
    /// The n of the classes in which the member was full when it began to prove.
    pub full: BTreeSet<u32>,
}

/// A home of which a member lacks something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LackingHome {
    /// The home partition.
    pub home: u32,
    /// The n of the classes.
    pub ns: BTreeSet<u32>,
}
