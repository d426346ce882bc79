//! A new node, and the peers that its configuration names.
//!
//! A node that starts in an empty directory founds a cluster of its own, and would serve it. Where
//! the directory of a member was lost, its clients would find nothing at its address. So a new node
//! that knows peers asks them first, and serves nobody until that is decided:
//!
//! * A member of a cluster of several nodes says that no member has the name or the address of this
//!   node: it goes on. So it does if all of its peers answer, and all of them are alone.
//! * A member has its name or its address: an operator decides. The node takes the place of that
//!   member ([`MemberNode::rejoin`]), joins as another one, or goes on alone.
//! * Otherwise it waits, and asks again. An operator may let it go on.
//!
//! That it waits is noted on the disk before it founds its cluster, until it is a member or goes on
//! alone.

use super::state::Joining;
use crate::capabilities::NEWCOMERS;
use crate::member::MEMBERS;
use crate::member::error::ClusterError;
use crate::member::member_node::MemberNode;
use crate::member::questions::question::{Answer, Question, SameMember, decode, encode};
use crate::member::questions::who_is::who_is;
use ombak_kv::NoPart;
use ombak_metadata::state::Metadata;
use ombak_peer::IdentifyError;
use ombak_peer::handshake::{HandshakeError, RefusalKind};
use ombak_runtime::{RuntimeExt, within};
use ombak_types::NodeId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tracing::{error, info, warn};

/// Why a member does not say whether it knows a new node.
const WITHOUT_MAJORITY: &str = "it does not reach most members of its cluster";

/// What a peer says to a new node.
#[derive(Debug, PartialEq, Eq)]
enum PeerSaid {
    /// It is this node.
    Myself,
    /// It is alone.
    Alone,
    /// It is a member of a cluster that does not know this node.
    Stranger,
    /// A member of its cluster has the name or the address of this node.
    Known(SameMember),
    /// It does not say.
    Nothing(String),
}

/// What a new node does next.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    GoesOn,
    /// It has the name or the address of a member.
    IsKnown(SameMember),
    /// Too few peers have answered.
    Waits(String),
}

/// What follows from the answers of all peers.
fn verdict(said: Vec<(String, PeerSaid)>) -> Verdict {
    let mut silent = Vec::new();
    let mut is_stranger = false;
    for (peer, said) in said {
        match said {
            PeerSaid::Known(member) => return Verdict::IsKnown(member),
            PeerSaid::Stranger => is_stranger = true,
            PeerSaid::Nothing(why) => silent.push(format!("{peer}: {why}")),
            PeerSaid::Myself | PeerSaid::Alone => {}
        }
    }
    if is_stranger || silent.is_empty() { Verdict::GoesOn } else { Verdict::Waits(silent.join("; ")) }
}

/// Why a new node waits whose peers do not say enough.
fn waits_text(silent: &str) -> String {
    let mut text = format!(
        "not all of its peers have said whether a cluster knows it ({silent}); start them, or let this node go on alone \
         ('ombak admin cluster alone')"
    );
    if silent.contains(WITHOUT_MAJORITY) {
        text += "; a cluster of two members, or one that was never settled, decides nothing without its first member: \
                 if that is the lost one, its peers cannot say more";
    }
    text
}

impl MemberNode {
    /// Why this node serves nobody until its peers or an operator have decided; `None` if it does
    /// not wait for that.
    pub fn awaits(&self) -> Option<String> {
        self.inner.joining.awaits.get()
    }

    /// Waits until the node does not wait for its peers any more. Returns false if it stops before.
    pub async fn until_decided(&self) -> bool {
        self.inner.joining.awaits.wait_for(Option::is_none).await.is_some()
    }

    /// Lets a new node go on as a cluster of its own, whatever its peers say.
    pub async fn go_on_alone(&self) -> Result<(), ClusterError> {
        if self.awaits().is_none() {
            return Err(ClusterError::refused("Failed: this node does not wait for its peers."));
        }
        self.inner.joining.end_waiting();
        self.inner.joining.forget_peers().await;
        Ok(())
    }
}

impl Joining {
    /// Lets a new node ask its peers before it serves. `Metadata` is what the node follows.
    pub(in crate::member) async fn await_peers_if_new(self: &Arc<Self>, state: &Metadata) {
        if self.own_directory.older().is_some() {
            return;
        }
        match self.on_directory(|kv| kv.directory().awaits_peers()).await {
            Ok(None) => return,
            Ok(Some(is_known)) => self.was_known.store(is_known, Ordering::SeqCst),
            Err(why) => error!(why, "it is not known whether this node is new, so it asks its peers"),
        }
        self.is_new.store(true, Ordering::SeqCst);
        if self.seeds.is_empty() {
            return self.forget_peers().await;
        }
        // A node that joins reaches the members already.
        if state.members().len() <= 1 {
            self.await_peers().await;
        }
    }

    /// Serves nobody until peers or an operator have decided. Returns after the first answers.
    pub(in crate::member) async fn await_peers(self: &Arc<Self>) {
        self.kv().refuse_requests(NoPart::AwaitsPeers);
        self.awaits.set(Some("its peers have not answered yet".into()));
        if self.ask_peers_once().await {
            return;
        }
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move {
            loop {
                this.runtime.sleep(this.timing.metadata.maintenance).await;
                if this.is_stopping() || this.awaits.get().is_none() || this.ask_peers_once().await {
                    return;
                }
            }
        }));
    }

    /// Asks all peers. Returns whether this node goes on.
    async fn ask_peers_once(self: &Arc<Self>) -> bool {
        // A question forgets the address of who was asked, and must not do so under a join.
        let Ok(_moving) = self.moving.try_lock() else { return false };
        let peers = self.seeds.look_up().await;
        let deadline = self.question_deadline();
        let asked = peers.into_iter().map(async |(peer, address)| match address {
            Ok(address) => (peer, self.ask_peer(address, deadline).await),
            Err(why) => (peer, PeerSaid::Nothing(why)),
        });
        let verdict = verdict(futures_util::future::join_all(asked).await);
        let why = match verdict {
            // A member that is known no more was removed, perhaps for this node's sake.
            Verdict::GoesOn if !self.was_known.load(Ordering::SeqCst) => {
                if self.awaits.get().is_some() {
                    self.end_waiting();
                    self.forget_peers().await;
                }
                return true;
            }
            Verdict::GoesOn => "a member knew its name or its address, and none does any more; join as another node \
                                ('ombak admin cluster join'), or go on alone ('ombak admin cluster alone')"
                .to_owned(),
            Verdict::IsKnown(member) => {
                self.note_that_it_is_known().await;
                format!(
                    "member '{}' at {} has its name or its address, and another data directory; let this node take its \
                     place ('ombak admin cluster rejoin'), join as another node ('ombak admin cluster join'), or go on \
                     alone ('ombak admin cluster alone')",
                    member.name, member.address
                )
            }
            Verdict::Waits(silent) => waits_text(&silent),
        };
        self.note_why_it_waits(why);
        false
    }

    /// Notes that a member knows this node, also for its next start: that member may be removed
    /// meanwhile, and what was written to it is then lost.
    async fn note_that_it_is_known(&self) {
        if self.was_known.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Err(why) = self.on_directory(|kv| kv.directory().note_awaits_peers(true)).await {
            warn!(why, "the next start of this node will not know that a member knows it");
        }
    }

    /// Says whether a member has a name or an address, if this node knows the newest state of its
    /// cluster. A node that was away knows an older one, in which a member may be missing.
    pub(in crate::member) async fn say_who_it_is(self: &Arc<Self>, peer: NodeId, name: &str, address: &str) -> Answer {
        if let Some(why) = self.own_directory.older() {
            return Answer::Refused { why: self.own_directory.text(&why) };
        }
        let node = self.metadata_node();
        if !node.catch_up(self.question_deadline()).await {
            return Answer::Refused { why: WITHOUT_MAJORITY.into() };
        }
        who_is(&node.metadata(), peer, name, address)
    }

    fn note_why_it_waits(&self, why: String) {
        let _deciding = self.deciding.lock();
        if self.awaits.get().is_some_and(|before| before != why) {
            warn!(why, "this node is new, and serves nobody yet");
            self.awaits.set(Some(why));
        }
    }

    /// Asks a node whether its cluster knows this one.
    async fn ask_peer(self: &Arc<Self>, address: SocketAddr, deadline: Instant) -> PeerSaid {
        let identity = match self.node.transport().identify(address, deadline).await {
            Ok(identity) => identity,
            Err(IdentifyError::Handshake(HandshakeError::RefusedByPeer(refusal)))
                if refusal.kind == RefusalKind::SameNode =>
            {
                return PeerSaid::Myself;
            }
            Err(IdentifyError::Handshake(HandshakeError::Refuses { refusal, .. }))
                if refusal.kind == RefusalKind::SameNode =>
            {
                return PeerSaid::Myself;
            }
            Err(why) => return PeerSaid::Nothing(why.to_string()),
        };
        if !identity.capabilities.contains(NEWCOMERS) {
            return PeerSaid::Nothing("an earlier version of ombak runs there, which cannot say it".into());
        }
        let is_member = || self.metadata_node().metadata().members().contains_key(&identity.node);
        self.node.transport().set_address(identity.node, address);
        let question = Question::WhoIs { name: self.me.name.clone(), address: self.me.peer_address.clone() };
        let outgoing = crate::metadata::question(MEMBERS, encode(&question), deadline);
        let call = self.node.transport().call(identity.node, outgoing);
        let answer = within(&*self.runtime, Some(deadline), call).await;
        if !is_member() {
            self.node.transport().forget_address(identity.node);
        }
        match answer.map(|answer| answer.map(|bytes| decode(&bytes))) {
            Ok(Ok(Ok(Answer::WhoIs { same: Some(member), .. }))) => PeerSaid::Known(member),
            Ok(Ok(Ok(Answer::WhoIs { members: 0 | 1, .. }))) => PeerSaid::Alone,
            Ok(Ok(Ok(Answer::WhoIs { .. }))) => PeerSaid::Stranger,
            Ok(Ok(Ok(_))) => PeerSaid::Nothing("it gave another answer than was asked for".into()),
            Ok(Ok(Err(why))) => PeerSaid::Nothing(why),
            Ok(Err(why)) => PeerSaid::Nothing(why.to_string()),
            Err(_) => PeerSaid::Nothing("it did not answer in time".into()),
        }
    }

    /// The member whose place this node is to take, and through whom it is known.
    pub(in crate::member) async fn find_lost_self(
        self: &Arc<Self>,
        address: Option<SocketAddr>,
    ) -> Result<(SocketAddr, SameMember), ClusterError> {
        let peers = match address {
            Some(address) => vec![(address.to_string(), Ok(address))],
            None => self.seeds.look_up().await,
        };
        if peers.is_empty() {
            let what = "Failed: name the address on which a member listens for other nodes, or set cluster.peers.";
            return Err(ClusterError::refused(what));
        }
        // Nobody else asks meanwhile.
        let _moving = self.moving.lock().await;
        let mut said_else = Vec::new();
        for (peer, address) in peers {
            let address = match address {
                Ok(address) => address,
                Err(why) => {
                    said_else.push(format!("{peer}: {why}"));
                    continue;
                }
            };
            match self.ask_peer(address, self.question_deadline()).await {
                PeerSaid::Known(member) => return Ok((address, member)),
                PeerSaid::Myself => {}
                PeerSaid::Alone => said_else.push(format!("{peer} is alone")),
                PeerSaid::Stranger => said_else.push(format!("the cluster of {peer} has no such member")),
                PeerSaid::Nothing(why) => said_else.push(format!("{peer}: {why}")),
            }
        }
        Err(ClusterError::refused(format!(
            "Failed: no member is known with the name or the address of this node ({}). A node that is new joins \
             ('ombak admin cluster join').",
            said_else.join("; ")
        )))
    }

    /// A member that runs somewhere else is not lost.
    pub(in crate::member) async fn check_does_not_run(&self, lost: &SameMember) -> Result<(), ClusterError> {
        let Ok(address) = lost.address.parse::<SocketAddr>() else { return Ok(()) };
        let found = self.node.transport().identify(address, self.question_deadline()).await;
        match found {
            Ok(identity) if identity.node == lost.node => Err(ClusterError::refused(format!(
                "Failed: '{}' runs at {address}. Stop it first, or give this node a name of its own.",
                lost.name
            ))),
            _ => Ok(()),
        }
    }

    /// Serves from now on.
    pub(in crate::member) fn end_waiting(&self) {
        let _deciding = self.deciding.lock();
        if self.awaits.get().is_some() {
            self.awaits.set(None);
            self.kv().admit_requests();
            info!("this node waits for its peers no longer, and serves");
        }
    }

    /// Forgets that this node is new.
    pub(in crate::member) async fn forget_peers(&self) {
        if !self.is_new.swap(false, Ordering::SeqCst) {
            return;
        }
        if let Err(why) = self.on_directory(|kv| kv.directory().forget_peers()).await {
            warn!(why, "the note that this node is new stays: its next start asks its peers again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_whose_peers_have_no_majority_hears_what_that_can_mean() {
        assert!(!waits_text("10.0.0.1:8099: it is not there").contains("first member"));
        let text = waits_text(&format!("10.0.0.1:8099: {WITHOUT_MAJORITY}"));
        assert!(text.contains("decides nothing without its first member"), "{text}");
    }

    #[test]
    fn a_new_node_goes_on_only_if_a_cluster_does_not_know_it_or_all_peers_are_alone() {
        let member = SameMember { node: NodeId::new(1), name: "n".into(), address: "h:1".into() };
        let known = || PeerSaid::Known(member.clone());
        let silent = || PeerSaid::Nothing("it is not there".into());
        let of = |said: Vec<PeerSaid>| {
            let peers = (1..).map(|number| format!("peer-{number}"));
            verdict(peers.zip(said).collect())
        };
        assert_eq!(of(vec![silent(), PeerSaid::Stranger]), Verdict::GoesOn);
        assert_eq!(of(vec![PeerSaid::Myself, PeerSaid::Alone, PeerSaid::Alone]), Verdict::GoesOn);
        assert_eq!(of(vec![PeerSaid::Myself]), Verdict::GoesOn, "there is nobody to ask");
        assert_eq!(of(vec![PeerSaid::Stranger, known()]), Verdict::IsKnown(member.clone()));
        for said in [vec![silent()], vec![PeerSaid::Myself, silent(), PeerSaid::Alone]] {
            assert!(matches!(of(said), Verdict::Waits(why) if why.contains("it is not there")));
        }
    }
}
