//! The check of one password, as a thread does it.

use super::failure_brake::GuessPlace;
use super::login::Credentials;
use super::remembered_passwords::RememberedPasswords;
use ombak_security::StoredPassword;
use std::sync::Arc;

/// The check of one password, with all that it needs.
pub(super) struct PasswordCheck {
    user: Box<str>,
    given: Box<[u8]>,
    against: Option<StoredPassword>,
    place: GuessPlace,
    remembered: Arc<RememberedPasswords>,
}

impl PasswordCheck {
    pub(super) fn new(
        credentials: Credentials<'_>,
        against: Option<&StoredPassword>,
        place: GuessPlace,
        remembered: &Arc<RememberedPasswords>,
    ) -> Self {
        let (user, given) = (credentials.user.into(), credentials.password.into());
        Self { user, given, against: against.cloned(), place, remembered: Arc::clone(remembered) }
    }

    /// Whether the password is right. It is counted here, where the client cannot take it back by
    /// going away.
    pub(super) fn run(mut self) -> bool {
        let text = self.against.as_ref().map(StoredPassword::to_text);
        // Another connection may have proved the same meanwhile.
        let is_known = text.as_ref().is_some_and(|text| self.remembered.has(&self.user, &self.given, text));
        if !is_known {
            self.place.looked_at();
        }
        let is_right = is_known || self.against.unwrap_or_else(StoredPassword::decoy).matches(&self.given);
        if is_right && let Some(text) = text {
            self.remembered.note(&self.user, &self.given, &text);
            self.place.was_right();
            return true;
        }
        false
    }
}
