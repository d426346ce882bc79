//! Read repair: which replicas are sent the newest version.

use super::actions::{GetAction, GetActions, Lack};
use super::copies::Copies;
use super::copy::{BodyState, CopyState, FoundCopy};
use ombak_types::Object;

impl Copies {
    /// Sends `newest` to every owner that is behind. Fallbacks are not repaired: old copies must
    /// not pass between them (docs/design/replication.md §6).
    pub(super) fn repairs(&self, newest: &Object, newest_digest: u64) -> GetActions {
        let mut actions = GetActions::new();
        for (replica, copy) in self.states.iter().enumerate().filter(|(i, _)| self.replicas[*i].primaries > 0) {
            if let Some(lack) = self.lack(copy, newest, newest_digest) {
                actions.push(GetAction::Repair { replica, object: newest.clone(), lack });
            }
        }
        actions
    }

    /// What an owner has in place of the newest version, if it is behind. An owner that cannot read
    /// its version gets one in its place only if all other replicas have answered: then nothing
    /// that can be read is newer.
    fn lack(&self, copy: &CopyState, newest: &Object, newest_digest: u64) -> Option<Lack> {
        let (lack, is_behind) = match copy {
            CopyState::Found(FoundCopy { body: BodyState::Unreadable, object, .. }) => {
                (Lack::Unreadable, newest.clock.descends(&object.clock))
            }
            CopyState::Found(found) => (Lack::Older, found.digest != newest_digest),
            CopyState::Same { of } => (Lack::Older, self.found(*of).is_some_and(|copy| copy.digest != newest_digest)),
            CopyState::NotFound => (Lack::Missing, true),
            CopyState::Unreadable => (Lack::Unreadable, self.all_have_told()),
            CopyState::Waiting | CopyState::HeldNotFound | CopyState::Failed | CopyState::Late => return None,
        };
        is_behind.then_some(lack)
    }

    /// Whether every replica has told what it has, or that it cannot read it.
    fn all_have_told(&self) -> bool {
        !self
            .states
            .iter()
            .any(|c| matches!(c, CopyState::Waiting | CopyState::HeldNotFound | CopyState::Failed | CopyState::Late))
    }
}
