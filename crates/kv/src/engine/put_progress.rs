//! The rest of a write, after this node has stored its copy: what it waits for, and its reply.

use super::commit_hooks::AfterPut;
use super::engine::Engine;
use super::put_run::{AwaitedPut, Others};
use crate::coordination::put::{PutAction, PutActions, PutCore, PutEvent};
use crate::partition::{Partition, is_tombstone};
use crate::requests::PutReply;
use crate::slow::Spent;
use ombak_types::{Error, Object};
use std::sync::Arc;
use std::time::Instant;

/// A write whose write call on this node has returned.
pub(crate) struct PutProgress {
    pub(super) core: PutCore,
    /// What the coordinator has asked for so far.
    pub(super) asked: PutActions,
    pub(super) is_write_once: bool,
    pub(crate) partition: Arc<Partition>,
    /// The storage key.
    pub(super) key: Vec<u8>,
    /// The digest of the version that the key now holds, and the total length of its values.
    pub(super) digest: u64,
    pub(super) value_bytes: u64,
    /// The append that must be durable before the write counts.
    pub(crate) sync_to: Option<u64>,
    /// The result of the wait for that sync.
    pub(crate) synced: Result<(), Error>,
    /// What the post-commit hooks of the bucket get.
    pub(super) after: Option<Box<AfterPut>>,
    pub(super) reply: Option<Object>,
    /// The index of this node among the replicas.
    pub(super) local: usize,
    /// The other replicas, and the version for them; `None` when there are none.
    pub(super) others: Option<Box<Others>>,
}

impl PutProgress {
    /// The reply, now that it is known whether this node's copy counts. Waits for other replicas,
    /// until the deadline, and adds the time of that to `spent`.
    pub(crate) async fn finish(
        self,
        engine: &Arc<Engine>,
        deadline: Option<Instant>,
        spent: &mut Spent,
    ) -> Result<PutReply, Error> {
        let replica = self.local;
        let event = match self.synced {
            Ok(()) => PutEvent::Stored { replica },
            Err(error) => PutEvent::Failed { replica, error },
        };
        match self.others {
            None => only_reply(self.core, event)?,
            Some(mut others) => {
                if matches!(event, PutEvent::Stored { .. }) {
                    others.withheld_from.clear();
                }
                let conflict = others.conflict.clone();
                let is_elsewhere = |action: &PutAction| *action != PutAction::Store { replica };
                let first = self.asked.into_iter().filter(is_elsewhere).collect();
                let (said, of_others) = AwaitedPut::start(engine, self.core, others, (first, event), deadline).await;
                spent.add(&of_others);
                said.map_err(|error| if error == Error::Modified { conflict } else { error })?;
            }
        }
        Ok(PutReply { key: None, object: self.reply })
    }

    /// Takes what the post-commit hooks of the bucket get.
    pub(crate) fn take_after(&mut self) -> Option<Box<AfterPut>> {
        self.after.take()
    }

    /// The storage key and the digest, if the key now holds only a tombstone.
    pub(crate) fn tombstone(&self) -> Option<(Vec<u8>, u64)> {
        is_tombstone(self.digest).then(|| (self.key.clone(), self.digest))
    }

    pub(crate) const fn is_write_once(&self) -> bool {
        self.is_write_once
    }

    pub(crate) const fn value_bytes(&self) -> u64 {
        self.value_bytes
    }
}

/// The reply of a coordinator whose only replica is this node.
fn only_reply(mut core: PutCore, event: PutEvent) -> Result<(), Error> {
    let said = core.on(event).into_iter().find_map(|action| match action {
        PutAction::Reply(said) => Some(said),
        _ => None,
    });
    said.unwrap_or(Err(Error::Timeout))
}
