//! Why bucket types or properties cannot be read or changed.

use ombak_types::props::PropErrors;

/// Why a bucket type or the properties of a bucket cannot be read or changed. `Display` has Riak's word where it has
/// one; the sentences of the command line and of HTTP are made from the variants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropsError {
    /// The type does not exist, or is not active where it has to be.
    #[error("no_type")]
    NoType,
    /// The type is active and can only be updated.
    #[error("already_active")]
    AlreadyActive,
    /// The type is not active yet and can only be created again.
    #[error("not_active")]
    NotActive,
    /// The properties of the default type come from the configuration (`buckets.default.*`).
    #[error("no_default_update")]
    DefaultType,
    /// The name cannot be that of a type or bucket. Holds what is wrong with it.
    #[error("{0}")]
    BadName(&'static str),
    /// There are as many types, or buckets with properties of their own, as there may be. Holds how many.
    #[error("no more than {0} of these can be kept")]
    TooMany(usize),
    /// At least one property is wrong; none was applied. `Display` is the Erlang form.
    #[error("{0}")]
    Invalid(PropErrors),
    /// The change could not be made durable; it has no effect. Holds the cause.
    #[error("{0}")]
    Storage(String),
}

impl From<PropErrors> for PropsError {
    fn from(errors: PropErrors) -> Self {
        Self::Invalid(errors)
    }
}
