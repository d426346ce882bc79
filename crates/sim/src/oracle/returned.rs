//! Versions that came back at one primary without anybody's knowledge, and that its sync marks
//! cover for each other primary (docs/design/anti-entropy.md §1, history 2).
//!
//! Nobody else gets such a version. Only what the page admits is excused ("Limits"): another
//! primary may have lost something, too, or the home may change.

use super::copies::{DiskCopy, set_aside_to};
use super::witness::{State, Witness};
use super::{Key, Token, storage_key_of};
use crate::world::HostId;
use ombak_kv::repair_host::PeerStore;
use ombak_kv::{ClassId, Kv};
use ombak_storage::ReadMode;
use ombak_types::NodeId;
use std::collections::BTreeSet;

/// A version that came back.
pub(super) struct Returned {
    host: HostId,
    tokens: BTreeSet<Token>,
    /// The number of the version of its home when its host started.
    home_version: u64,
    /// The stores of all other primaries, each with the token that a mark names.
    marked: Vec<(NodeId, PeerStore)>,
}

impl Witness {
    /// A host whose store may not know what it has lost has started, and holds this copy of a key,
    /// which is not the one that it had.
    pub(super) fn note_returned(&self, host: HostId, key: Key, copy: &DiskCopy) {
        let mut state = self.0.lock();
        state.look();
        let returned = copy.tokens().and_then(|tokens| state.returned(host, key, tokens));
        state.returned.insert(key, returned);
    }
}

impl State {
    fn returned(&self, host: HostId, key: Key, tokens: &BTreeSet<Token>) -> Option<Returned> {
        let home = self.holders.home_of(key)?;
        let (kv, placement) = (self.engines.get(&host)?, self.newest.as_ref()?);
        let (here, placement) = (kv.identity().node_id, placement.home(home));
        let class = ClassId { partition: home, n: key.kind.n };
        let primaries = placement.primaries(class.n);
        if placement.is_changing() || !primaries.contains(&here) {
            return None;
        }
        let store = self.stores.get(&host)?.get(home)?;
        let stored = store.get_with_expired(&storage_key_of(key), ReadMode::Blocking).ok()??;
        if stored.seq <= set_aside_to(Some(kv), home) {
            return None;
        }
        let own_store = store.identity().store_id;
        let mark_for = |node: NodeId| {
            let mark = kv.repair_host().transfers().marks.towards(class, node, own_store)?;
            (mark.seq >= stored.seq).then_some((node, mark.peer))
        };
        let others = primaries.into_iter().filter(|node| *node != here);
        let marked = others.map(mark_for).collect::<Option<Vec<_>>>()?;
        let home_version = placement.version().number;
        let returned = Returned { host, tokens: tokens.clone(), home_version, marked };
        (!returned.marked.is_empty()).then_some(returned)
    }

    /// Whether a host must not get a version, because it is one that came back elsewhere, and the
    /// marks for all other primaries still hold.
    pub(super) fn must_not_get(&self, host: HostId, key: Key, tokens: &BTreeSet<Token>) -> bool {
        let Some(Some(returned)) = self.returned.get(&key) else { return false };
        let Some((home, newest)) = self.holders.home_of(key).zip(self.newest.as_ref()) else { return false };
        let class = ClassId { partition: home, n: key.kind.n };
        let still_holds = |(node, peer): &(NodeId, PeerStore)| {
            let host = self.nodes.get(node).filter(|host| !self.doubtful.contains(host));
            let kv = host.and_then(|host| self.engines.get(host));
            kv.is_some_and(|kv| store_of(kv, class) == Some(*peer))
        };
        host != returned.host
            && returned.tokens == *tokens
            && newest.home(home).version().number == returned.home_version
            && returned.marked.iter().all(still_holds)
    }
}

/// The store of a node for a class, with its fullness token.
fn store_of(kv: &Kv, class: ClassId) -> Option<PeerStore> {
    let host = kv.repair_host();
    let store_id = host.partitions().get(class.partition)?.store().identity().store_id;
    Some(PeerStore { store_id, token: host.transfers().fullness.token(class)? })
}
