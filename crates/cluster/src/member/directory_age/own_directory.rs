//! Whether this node's directory is the newest one, and whether the node is still a member
//! (docs/design/replication.md §8).
//!
//! A node asks the other members what they know of its directory before it takes part. It judges
//! by itself: a milestone that it has not passed, or a log that was longer once, shows that its
//! directory is an older copy, or that two processes run with copies of it. A member that does not
//! answer cannot hold a node up, because it may be lost. It is asked before the first message of
//! the metadata passes between the two.

use super::admission::{MemberAdmission, WAS_REMOVED};
use crate::deliberate_faults::removed_nodes_take_part;
use crate::member::MEMBERS;
use crate::member::questions::question::{Answer, Question, decode, encode};
use crate::metadata::{Acquaintance, MetadataSlot, question};
use ombak_kv::{Kv, NoPart};
use ombak_metadata::state::{Member, MemberStatus, RaftId, Refusal};
use ombak_metadata::{LogProgress, OwnMilestones};
use ombak_node_files::{Milestone, OwnMetadata};
use ombak_peer::handshake::{HandshakeError, RefusalKind};
use ombak_peer::{IdentifyError, Peers};
use ombak_runtime::{BoxFuture, Published, Runtime, RuntimeExt, within};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a node waits for the end of the process that has its identity at other nodes, in
/// questions. They notice a machine that was lost after some seconds.
const TWICE_MAX_QUESTIONS: u32 = 5;
/// The pause before they are asked again.
const TWICE_PAUSE: Duration = Duration::from_millis(200);

/// The pause of a message that waits for the answer to a question that another message has asked.
const ASKING_PAUSE: Duration = Duration::from_millis(10);

/// What a member says.
enum Said {
    /// It knows nothing that this directory has not passed.
    Nothing,
    /// The directory is older.
    Older(String),
    /// The node was removed from the cluster.
    Removed(String),
    /// Another process has the identity of this node.
    RunsTwice(String),
    /// It does not answer.
    NoAnswer,
}

/// What is known of this node's directory.
pub(crate) struct OwnDirectory {
    pub(super) kv: Kv,
    runtime: Arc<dyn Runtime>,
    transport: Peers,
    admission: Arc<MemberAdmission>,
    slot: MetadataSlot,
    question_max: Duration,
    /// The log as it was before this node took part.
    saved: Mutex<Option<(RaftId, LogProgress)>>,
    asked: Mutex<BTreeSet<NodeId>>,
    /// Members that are being asked.
    asking: Mutex<BTreeSet<NodeId>>,
    /// Why the node takes no part, if it does not: its directory is older, or it was removed.
    older: Published<Option<String>>,
    /// Whether it was removed.
    is_removed: AtomicBool,
    /// What node.json says since the last note.
    pub(super) noted: Mutex<Option<(Option<Milestone>, OwnMetadata)>>,
}

/// A member that is being asked, until this is dropped.
struct Asking<'a> {
    own_directory: &'a OwnDirectory,
    node: NodeId,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.own_directory.asking.lock().remove(&self.node);
    }
}

impl OwnDirectory {
    pub fn new(
        kv: Kv,
        runtime: Arc<dyn Runtime>,
        transport: Peers,
        admission: Arc<MemberAdmission>,
        slot: MetadataSlot,
        question_max: Duration,
    ) -> Self {
        let identity = kv.directory().identity();
        let is_removed = identity.as_ref().is_some_and(|identity| identity.was_removed);
        let is_out = is_removed || identity.is_some_and(|identity| identity.is_restored);
        let older = is_out.then(|| "an earlier start has found that".to_owned());
        Self {
            kv,
            runtime,
            transport,
            admission,
            slot,
            question_max,
            saved: Mutex::default(),
            asked: Mutex::default(),
            asking: Mutex::default(),
            older: Published::new(older),
            is_removed: AtomicBool::new(is_removed),
            noted: Mutex::default(),
        }
    }

    /// Sets how far the log is on disk, before this node takes part.
    pub fn set_saved(&self, log: RaftId, progress: LogProgress) {
        *self.saved.lock() = Some((log, progress));
    }

    /// Why this node takes no part; `None` as long as nothing shows that it must not.
    pub fn older(&self) -> Option<String> {
        self.older.get()
    }

    /// Waits until something shows that this directory is older. `None` when the node is gone.
    pub async fn found(&self) -> Option<String> {
        self.older.wait_for(Option::is_some).await.flatten()
    }

    /// Ends the waiting for that: the node stops.
    pub fn end(&self) {
        self.older.end();
    }

    /// Notes that this directory is older.
    pub fn set_older(&self, why: String) {
        if self.older.get().is_none() {
            self.older.set(Some(why));
        }
    }

    /// Notes that this node was removed from its cluster.
    pub fn set_removed(&self, why: String) {
        if self.older.get().is_none() && !removed_nodes_take_part() {
            self.is_removed.store(true, Ordering::SeqCst);
            self.set_older(why);
        }
    }

    /// Whether this node takes no part because it was removed.
    pub fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::SeqCst)
    }

    /// Why requests of clients are refused when the node takes no part.
    pub fn no_part(&self) -> NoPart {
        if self.is_removed() { NoPart::Removed } else { NoPart::OlderDirectory }
    }

    /// What an operator reads about a node that takes no part.
    pub fn text(&self, why: &str) -> String {
        if self.is_removed() { removed_text(why) } else { older_text(why) }
    }

    /// Asks a member that lets this node in no more whether that is because it was removed.
    pub async fn ask_whether_removed(&self, address: SocketAddr) {
        let deadline = self.runtime.now() + self.question_max;
        if let Said::Removed(why) = self.knock(address, deadline).await {
            self.set_removed(why);
        }
    }

    /// Asks all other members before this node takes part. The error says that another process has
    /// its identity.
    pub async fn ask_all(&self, members: Vec<(NodeId, SocketAddr)>) -> Result<(), String> {
        let give_up_at = self.runtime.now() + self.question_max * TWICE_MAX_QUESTIONS;
        let mut waiting = members;
        while !waiting.is_empty() && self.older().is_none() {
            let deadline = self.runtime.now() + self.question_max;
            let asked = waiting.iter().map(|(node, address)| self.ask(*node, Some(*address), deadline));
            let said = futures_util::future::join_all(asked).await;
            let mut twice = None;
            let mut again = Vec::new();
            for (member, said) in waiting.into_iter().zip(said) {
                match said {
                    Said::Older(why) => self.set_older(why),
                    Said::Removed(why) => self.set_removed(why),
                    Said::RunsTwice(why) => {
                        twice = Some(why);
                        again.push(member);
                    }
                    Said::Nothing | Said::NoAnswer => {}
                }
            }
            waiting = again;
            if let Some(why) = twice {
                if self.runtime.now() >= give_up_at {
                    return Err(why);
                }
                self.runtime.sleep(TWICE_PAUSE).await;
            }
        }
        self.tell_all().await;
        Ok(())
    }

    /// Whether messages of the metadata may pass between this node and another one. Asks that node
    /// first, if it was not asked.
    pub async fn may_talk(&self, node: NodeId) -> bool {
        if self.older().is_some() {
            return false;
        }
        if self.asked.lock().contains(&node) {
            return true;
        }
        let deadline = self.runtime.now() + self.question_max;
        while !self.is_member(node) {
            if self.has_asked_somebody() {
                return true;
            }
            // A node that joins hears of several members at once, and asks them at once. A message
            // that was refused meanwhile would look like an answer that was lost.
            if self.admission.known.load().is_none() || self.runtime.now() >= deadline {
                return false;
            }
            self.runtime.sleep(ASKING_PAUSE).await;
        }
        while !self.asking.lock().insert(node) {
            self.runtime.sleep(ASKING_PAUSE).await;
            if self.asked.lock().contains(&node) {
                return true;
            }
            if self.runtime.now() >= deadline {
                return false;
            }
        }
        let _asking = Asking { own_directory: self, node };
        let said = self.ask(node, None, deadline).await;
        match said {
            Said::Nothing => {
                self.tell(node).await;
                true
            }
            Said::Older(why) => {
                self.set_older(why);
                false
            }
            Said::Removed(why) => {
                self.set_removed(why);
                false
            }
            Said::RunsTwice(_) | Said::NoAnswer => false,
        }
    }

    /// The members that have answered the question of this start.
    pub fn answered(&self) -> Vec<NodeId> {
        self.asked.lock().iter().copied().collect()
    }

    #[cfg(test)]
    pub fn note_answered(&self, node: NodeId) {
        self.asked.lock().insert(node);
    }

    fn is_member(&self, node: NodeId) -> bool {
        self.admission.known.load_full().is_some_and(|known| known.members().contains_key(&node))
    }

    /// Whether some member was asked, if there are others. A node that became a member lately
    /// cannot be asked before this node has heard of it.
    fn has_asked_somebody(&self) -> bool {
        let Some(known) = self.admission.known.load_full() else { return false };
        let counts = |(node, member): &(&NodeId, &Member)| **node != self.id() && member.status != MemberStatus::Down;
        let mut others = known.members().iter().filter(counts).peekable();
        let asked = self.asked.lock();
        others.peek().is_none() || others.any(|(node, _)| asked.contains(node))
    }

    async fn ask(&self, node: NodeId, address: Option<SocketAddr>, deadline: Instant) -> Said {
        if let Ok(answer) = self.send(node, &Question::Start, deadline).await {
            return match answer {
                Answer::Start { .. } => match self.judge(&answer) {
                    Some(why) => Said::Older(why),
                    None => {
                        self.asked.lock().insert(node);
                        Said::Nothing
                    }
                },
                _ => Said::NoAnswer,
            };
        }
        match address {
            Some(address) => self.knock(address, deadline).await,
            None => Said::NoAnswer,
        }
    }

    /// Why a member does not let this node in.
    async fn knock(&self, address: SocketAddr, deadline: Instant) -> Said {
        match self.transport.identify(address, deadline).await {
            Err(IdentifyError::Handshake(HandshakeError::RefusedByPeer(refusal))) => match refusal.kind {
                RefusalKind::OlderDirectory => Said::Older(refusal.text),
                RefusalKind::NodeIdInUse => Said::RunsTwice(refusal.text),
                RefusalKind::NotAdmitted if refusal.text.contains(WAS_REMOVED) => Said::Removed(refusal.text),
                _ => Said::NoAnswer,
            },
            _ => Said::NoAnswer,
        }
    }

    async fn send(&self, node: NodeId, asked: &Question, deadline: Instant) -> Result<Answer, String> {
        let call = self.transport.call(node, question(MEMBERS, encode(asked), deadline));
        let answer = within(&*self.runtime, Some(deadline), call).await.map_err(|_| "it did not answer".to_owned())?;
        decode(&answer.map_err(|e| e.to_string())?)
    }

    /// Why this directory is older, if an answer shows that.
    fn judge(&self, answer: &Answer) -> Option<String> {
        let Answer::Start { recorded, boot, seen, log, seen_progress } = answer else { return None };
        let identity = self.kv.directory().identity()?;
        let not_passed = |known: &Option<Milestone>| known.filter(|known| !identity.milestones.has_passed(*known));
        if let Some(known) = not_passed(recorded).or_else(|| not_passed(seen)) {
            return Some(format!("a member knows its milestone {}, which is not in it", known.number));
        }
        // A member that records no milestones knows the number of starts alone.
        if recorded.is_none()
            && let Some(boot) = boot.filter(|boot| *boot > identity.boot)
        {
            return Some(format!("a member knows its start number {boot}, and this is number {}", identity.boot));
        }
        let (seen_term, seen_index) = (*seen_progress)?;
        let seen = LogProgress { term: seen_term, index: seen_index };
        let (own_log, own) = self.own_progress()?;
        (*log == Some(own_log) && own.is_behind(seen)).then(|| {
            format!(
                "its metadata log ends with entry {} of term {}, and the leader has seen entry {seen_index} of term \
                 {seen_term} in it",
                own.index, own.term
            )
        })
    }

    fn own_progress(&self) -> Option<(RaftId, LogProgress)> {
        match self.slot.load_full() {
            Some(node) => Some((node.raft_id(), node.progress())),
            None => *self.saved.lock(),
        }
    }

    /// Tells the members that were asked how this node goes on. Those that do not answer learn it
    /// from the metadata, or later.
    pub async fn tell_all(&self) {
        let members: Vec<NodeId> = match self.admission.known.load_full() {
            Some(metadata) => metadata.members().keys().copied().filter(|node| *node != self.id()).collect(),
            None => return,
        };
        let is_told = |node: &&NodeId| self.older().is_some() || self.asked.lock().contains(node);
        futures_util::future::join_all(members.iter().filter(is_told).map(|node| self.tell(*node))).await;
    }

    async fn tell(&self, node: NodeId) {
        if self.is_removed() {
            return;
        }
        let told = match (self.older(), self.newest()) {
            (Some(why), _) => Question::IsOlder { why },
            (None, Some(milestone)) => Question::GoesOn { milestone },
            (None, None) => return,
        };
        // Without an answer, the next one tells it.
        let _ = self.send(node, &told, self.runtime.now() + self.question_max).await;
    }

    pub(super) fn id(&self) -> NodeId {
        self.kv.identity().node_id
    }
}

impl Acquaintance for OwnDirectory {
    fn may_talk(self: Arc<Self>, node: NodeId) -> BoxFuture<'static, bool> {
        Box::pin(async move { Self::may_talk(&self, node).await })
    }
}

impl OwnMilestones for OwnDirectory {
    fn newest(&self) -> Option<Milestone> {
        self.kv.directory().identity()?.milestones.newest()
    }

    fn has_passed(&self, known: Milestone) -> bool {
        self.kv.directory().identity().is_some_and(|identity| identity.milestones.has_passed(known))
    }

    fn found_older(&self, why: &Refusal) {
        self.set_older(why.to_string());
    }
}

/// What an operator reads about a node that takes no part.
fn older_text(why: &str) -> String {
    format!(
        "the data directory of this node is an older copy ({why}); it takes no part. Stop it, and put back its newest \
         directory, or start it with an empty data directory under its name, and let it rejoin ('ombak admin cluster \
         rejoin')"
    )
}

/// What an operator reads about a node that is no member any more.
fn removed_text(why: &str) -> String {
    format!(
        "this node is no member of its cluster any more ({why}); it takes no part, and serves nobody. Stop it. It can \
         join again only with an empty data directory"
    )
}
