//! Why bucket types, properties or records of namespaces cannot be read or changed.

use super::function_record::HookUser;
use ombak_types::props::PropErrors;
use std::sync::Arc;

/// Why a bucket type, the properties of a bucket or a function cannot be changed. `Display` gives
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
    /// No function with this name is registered.
    #[error("no such function is registered")]
    NoFunction,
    /// A function with this name is registered already.
    #[error("a function with this name is registered already")]
    FunctionExists,
    /// The function cannot be deleted, because hooks name it. Holds whose hooks.
    #[error("hooks name the function")]
    FunctionUsed(Vec<HookUser>),
    /// A hook cannot be set, because the function that it names was deleted at the same moment.
    /// Holds the function's name.
    #[error("the function {0} was deleted at the same moment; set the hook again without it")]
    FunctionGone(Arc<str>),
    /// The function cannot be registered. Holds the reason.
    #[error("{0}")]
    BadFunction(String),
    /// The record of a namespace cannot be set. Holds the reason.
    #[error("{0}")]
    BadRecord(String),
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
