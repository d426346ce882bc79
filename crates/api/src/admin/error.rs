//! The errors of administration requests.

use http::StatusCode;
use serde_json::{Value, json};

/// Why an administration request was refused or failed. The kind is part of the interface; the
/// message is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// The request lacks the header that every administration request needs, or it seems to come
    /// from a web page.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The request has no token.
    #[error(
        "administration needs the node's admin token, which is in the file admin.token of the node's data directory: run \
         the command as the node's user and name that directory (--data DIR), or give the token in OMBAK_ADMIN_TOKEN"
    )]
    NoToken,
    /// The token is not the token of this node.
    #[error(
        "the admin token does not match; it is in the file admin.token of the node's data directory (or give it in \
         OMBAK_ADMIN_TOKEN)"
    )]
    BadToken,
    /// The policy of the node does not allow the request. The text is that of the policy.
    #[error("{0}")]
    NotPermitted(String),
    /// The body is longer than this many bytes.
    #[error("the request body is larger than {0} bytes")]
    TooLarge(usize),
    /// There is no resource with this method and path.
    #[error("there is no administration resource {0}")]
    NoSuchResource(String),
    /// The body is not valid for this resource. The text says why.
    #[error("{0}")]
    BadRequest(String),
    /// There is no bucket type with this name.
    #[error("{0} is not an existing bucket type")]
    NoSuchType(String),
    /// There is no function with this name.
    #[error("no function {0} is registered")]
    NoSuchFunction(String),
    /// Search has no index with this name.
    #[error("there is no index {0}")]
    NoSuchIndex(String),
    /// Search has no schema with this name.
    #[error("there is no schema {0}")]
    NoSuchSchema(String),
    /// The node refuses the request in its current state. The text says why, in Riak's words if
    /// Riak has some.
    #[error("{0}")]
    Refused(String),
    /// The node could not do what was requested. The text says why.
    #[error("{0}")]
    Failed(String),
}

impl AdminError {
    /// The kind, for programs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Forbidden(_) => "forbidden",
            Self::NoToken => "no_token",
            Self::BadToken => "bad_token",
            Self::NotPermitted(_) => "not_permitted",
            Self::TooLarge(_) => "too_large",
            Self::NoSuchResource(_) => "no_such_resource",
            Self::BadRequest(_) => "bad_request",
            Self::NoSuchType(_) => "no_such_type",
            Self::NoSuchFunction(_) => "no_such_function",
            Self::NoSuchIndex(_) => "no_such_index",
            Self::NoSuchSchema(_) => "no_such_schema",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }

    /// The HTTP status for this error.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden(_) | Self::NoToken | Self::NotPermitted(_) => StatusCode::FORBIDDEN,
            Self::BadToken => StatusCode::UNAUTHORIZED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoSuchResource(_)
            | Self::NoSuchType(_)
            | Self::NoSuchFunction(_)
            | Self::NoSuchIndex(_)
            | Self::NoSuchSchema(_) => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The body of the answer.
    pub fn to_json(&self) -> Value {
        json!({"error": {"kind": self.kind(), "message": self.to_string()}})
    }
}
