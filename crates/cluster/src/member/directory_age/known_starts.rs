//! What this node knows of the directories of other nodes, for nodes that ask whether theirs is
//! older (docs/design/replication.md §8).

use crate::member::questions::question::{Answer, Question};
use crate::member::questions::who_is::who_is;
use crate::metadata::MetadataSlot;
use ombak_kv::Kv;
use ombak_metadata::state::Metadata;
use ombak_node_files::Milestone;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::warn;

/// How many nodes are remembered. A node that knows the secret could tell any number of them.
const NODES_MAX: usize = 4096;

/// What this node knows of the directories of other nodes beside the metadata.
#[derive(Default)]
pub(crate) struct KnownStarts {
    /// The last milestone with which each node went on. While there is no majority, the metadata
    /// does not have it. It survives this process.
    seen: Mutex<BTreeMap<NodeId, Milestone>>,
    /// Whether `seen` has something that is not on disk.
    has_news: AtomicBool,
    /// Locked while `seen` is written.
    saving: tokio::sync::Mutex<()>,
    /// The nodes that take no part, with the reason.
    older: Mutex<BTreeMap<NodeId, String>>,
}

impl KnownStarts {
    /// Answers the questions of a node about itself; `None`: it is another question.
    pub fn answer(
        &self,
        peer: NodeId,
        question: &Question,
        metadata: &Metadata,
        slot: &MetadataSlot,
    ) -> Option<Answer> {
        match question {
            Question::Start => {
                let known = metadata.members().get(&peer);
                let seen_progress = known.and_then(|known| slot.load_full()?.seen_progress(known.log));
                Some(Answer::Start {
                    recorded: known.and_then(|known| known.milestone),
                    boot: known.map(|known| known.boot),
                    seen: self.seen.lock().get(&peer).copied(),
                    log: known.map(|known| known.log),
                    seen_progress: seen_progress.map(|progress| (progress.term, progress.index)),
                })
            }
            Question::GoesOn { milestone } => {
                self.older.lock().remove(&peer);
                let mut seen = self.seen.lock();
                if seen.len() < NODES_MAX || seen.contains_key(&peer) {
                    let last = seen.entry(peer).or_insert(Milestone { number: 0, token: 0 });
                    if *last < *milestone {
                        *last = *milestone;
                        self.has_news.store(true, Ordering::SeqCst);
                    }
                }
                Some(Answer::Noted)
            }
            Question::WhoIs { name, address } => {
                // Only a member that knows the newest state can say that nobody has them.
                let answer = who_is(metadata, peer, name, address);
                let is_sure = metadata.members().len() <= 1 || matches!(answer, Answer::WhoIs { same: Some(_), .. });
                is_sure.then_some(answer)
            }
            Question::IsOlder { why } => {
                self.note_older(peer, why.clone());
                Some(Answer::Noted)
            }
            _ => None,
        }
    }

    /// Takes over what an earlier process of this node has seen.
    pub fn remember(&self, before: BTreeMap<NodeId, Milestone>) {
        self.seen.lock().extend(before);
    }

    /// Whether something was seen that is not on disk.
    pub fn has_news(&self) -> bool {
        self.has_news.load(Ordering::SeqCst)
    }

    /// Notes that a node takes no part.
    pub fn note_older(&self, node: NodeId, why: String) {
        let mut older = self.older.lock();
        if older.len() < NODES_MAX || older.contains_key(&node) {
            older.insert(node, why);
        }
    }

    /// Why a node takes no part, if it does not.
    pub fn older(&self, node: NodeId) -> Option<String> {
        self.older.lock().get(&node).cloned()
    }

    /// Makes durable what this node has seen of the directories of the members of `state`.
    pub async fn save(&self, kv: &Kv, state: impl FnOnce() -> Metadata) {
        let _saving = self.saving.lock().await;
        if !self.has_news.swap(false, Ordering::SeqCst) {
            return;
        }
        let state = state();
        let seen = self.seen.lock().clone();
        let seen = seen.into_iter().filter(|(node, _)| state.members().contains_key(node)).collect();
        let there = kv.clone();
        let saved = kv.offload(move || there.directory().save_seen_milestones(&seen)).await;
        if !matches!(saved, Ok(Ok(()))) {
            self.has_news.store(true, Ordering::SeqCst);
            warn!(?saved, "what this node has seen of the others' directories could not be written");
        }
    }
}
