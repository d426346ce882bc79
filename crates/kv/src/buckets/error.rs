//! Why bucket types or properties cannot be read or changed.

use ombak_types::props::PropErrors;

/// Why a bucket type or the properties of a bucket cannot be read or changed. `Display` gives
/// Riak's word where Riak has one; the command line and HTTP make their sentences from the
/// variants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropsError {
    /// The type does not exist, or is not active although it must be.
    #[error("no_type")]
    NoType,
    /// The type is active and can now only be updated.
    #[error("already_active")]
    AlreadyActive,
    /// The type is not active yet and can only be created again.
    #[error("not_active")]
    NotActive,
    /// The properties of the default type come from the configuration (`buckets.default.*`).
    #[error("no_default_update")]
    DefaultType,
    /// The name is not valid for a type or a bucket. Holds what is wrong.
    #[error("{0}")]
    BadName(&'static str),
    /// The limit for the number of types, or of buckets with properties of their own, is reached.
    /// Holds the limit.
    #[error("no more than {0} of these can be kept")]
    TooMany(usize),
    /// At least one property is wrong; none was applied. `Display` is the Erlang form.
    #[error("{0}")]
    Invalid(PropErrors),
    /// The cluster refuses the change in its present state. Holds the reason.
    #[error("{0}")]
    Refused(String),
    /// The change could not be made durable and has no effect. Holds the cause.
    #[error("{0}")]
    Storage(String),
}

impl From<PropErrors> for PropsError {
    fn from(errors: PropErrors) -> Self {
        Self::Invalid(errors)
    }
}
