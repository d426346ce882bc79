//! What a client says to prove who it is, and why it is refused.

use std::fmt;

/// What a client says to prove who it is.
#[derive(Clone, Copy)]
pub(crate) struct Credentials<'a> {
    /// The name of the user. It is compared exactly.
    pub(crate) user: &'a str,
    /// The password; empty if the client gives none.
    pub(crate) password: &'a [u8],
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a client is not the user whom it names. The client never learns more than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginRefused {
    /// It has not proved it.
    NotProved,
    /// Too many passwords are being checked. It may try again.
    Overload,
    /// The node has failed to check its password.
    Failed,
}

impl LoginRefused {
    /// The reason in the audit log.
    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::NotProved => "the client has not proved that it is this user",
            Self::Overload => "too many passwords are being checked",
            Self::Failed => "the node has failed to check the password",
        }
    }
}
