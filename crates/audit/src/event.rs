//! What the audit log tells of.

use std::net::SocketAddr;

/// Something that somebody did, or was refused.
#[derive(Debug)]
pub struct AuditEvent<'a> {
    /// What it is.
    pub kind: EventKind,
    /// Where it comes from.
    pub place: Place<'a>,
    /// The user: the one who has logged in, or the one whom a refused login names.
    pub user: Option<&'a str>,
    /// How the client has proved who it is, such as `password` or `admin_token`.
    pub proof: &'static str,
    /// What was to be done: a permission, or a method and a path.
    pub action: &'a str,
    /// The bucket type and the bucket, as far as the action is about them.
    pub bucket: (Option<&'a [u8]>, Option<&'a [u8]>),
    /// What became of it.
    pub outcome: Outcome<'a>,
    /// The body of the request, of which the log shows what is no secret ([`Shown`]).
    pub body: Option<(&'a [u8], Shown)>,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The address of the client.
    pub peer: SocketAddr,
    /// The key of the listener in the configuration.
    pub listener: &'a str,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
}

/// What the log shows of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All names and values, but for those whose names say that they are secret.
    Values,
    /// Of the arguments of a command the first one, the groups, and the names of all others. The
    /// command takes passwords, and who mistypes must not find one in the log.
    NamesOfOptions,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A client did not prove that it is the user whom it names.
    LoginRefused,
    /// A client may not do what it asked for.
    Denied,
    /// Somebody changed something by administration.
    Administration,
}

impl EventKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::LoginRefused, Self::Denied, Self::Administration];

    /// The name in lines and in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoginRefused => "login_refused",
            Self::Denied => "denied",
            Self::Administration => "administration",
        }
    }

    /// Those that clients without any right can cause as often as they like.
    pub(crate) const REFUSALS: &[Self] = &[Self::LoginRefused, Self::Denied];
    /// The others.
    pub(crate) const CHANGES: &[Self] = &[Self::Administration];

    /// Whether clients without any right can cause as many as they like.
    pub(crate) fn is_refusal(self) -> bool {
        Self::REFUSALS.contains(&self)
    }
}

/// What became of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It was done.
    Done,
    /// It was refused, for this reason.
    Refused(&'a str),
    /// It was tried, and has failed for this reason.
    Failed(&'a str),
    /// The client went away before it ended. It may have been done.
    Unknown,
}

impl Outcome<'_> {
    /// The name in lines.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// The reason, if there is one.
    pub(crate) const fn why(&self) -> Option<&str> {
        match self {
            Self::Refused(why) | Self::Failed(why) => Some(why),
            Self::Done | Self::Unknown => None,
        }
    }
}
