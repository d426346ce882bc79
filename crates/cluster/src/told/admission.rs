//! The admission of a node that tells its peers something first.

use super::words::ToldWords;
use ombak_kv::Kv;
use ombak_peer::handshake::{FirstWords, Refusal, RemotePeer};
use ombak_peer::{Admission, LiveSession};
use ombak_types::NodeId;
use std::sync::Arc;

/// Lets in whom another admission lets in, and tells them what their stores have told.
pub(crate) struct TellingAdmission {
    inner: Arc<dyn Admission>,
    words: Arc<ToldWords>,
}

impl TellingAdmission {
    pub(crate) fn new(inner: Arc<dyn Admission>, kv: Kv) -> Self {
        Self { inner, words: Arc::new(ToldWords(kv)) }
    }
}

impl Admission for TellingAdmission {
    fn admit(&self, peer: &RemotePeer, live: Option<LiveSession>) -> Result<(), Refusal> {
        self.inner.admit(peer, live)
    }

    fn first_words(&self) -> Arc<dyn FirstWords> {
        self.words.clone()
    }

    fn has_said(&self, node: NodeId, capability: &str) -> Option<bool> {
        self.inner.has_said(node, capability)
    }
}
