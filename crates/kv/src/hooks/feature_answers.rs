//! Questions of a feature that all nodes answer together.

use ombak_runtime::Waited;
use ombak_types::Error;
use std::time::Instant;

/// Answers the questions of a feature from what this node keeps beside its stores, such as an
/// index. The engine chooses which node answers for which home partitions
/// ([`Kv::ask_feature`](crate::Kv::ask_feature)), and knows nothing of what is asked.
pub trait FeatureAnswers: Send + Sync {
    /// The name, under which other nodes ask. It is sent, so it never changes.
    fn name(&self) -> &'static str;

    /// Answers for some of the home partitions. What it says must be true of the stores at some
    /// moment of the call or shortly before; how long before is a matter of the feature. Blocks.
    ///
    /// # Errors
    /// `StoreFailureKind::Busy`: nothing can be said now, and others or this node may be able to
    /// soon. Any other error: this node is not asked again.
    fn answer(&self, question: &FeatureQuestion<'_>) -> Result<FeatureAnswer, Error>;
}

/// A question to a node.
#[derive(Clone, Copy)]
pub struct FeatureQuestion<'a> {
    /// What is asked.
    pub content: &'a [u8],
    /// The home partitions to answer for.
    pub homes: &'a [AskedHome],
    /// Whether somebody still waits for the answer. Whoever takes long asks it at times.
    pub waited: &'a Waited<'a>,
}

/// A home partition that a node is asked to answer for. The node is full for what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedHome {
    /// Its number.
    pub home: u32,
    /// A moment since which the node is full. Before it, copies may have come that others had long
    /// before: what was made of the store before that moment may lack them.
    pub full_since: Instant,
}

/// The answer of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureAnswer {
    /// The home partitions of the question that it is about, at least one.
    pub homes: Vec<u32>,
    /// What is said about them together.
    pub bytes: Vec<u8>,
}
