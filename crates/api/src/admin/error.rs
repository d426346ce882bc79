//! Why an administration request failed.

use http::StatusCode;
use serde_json::{Value, json};

/// A refused or failed administration request. The kind is part of the interface, the message is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// The request lacks the header that every one needs, or looks like one of a web page.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The request has no token.
    #[error(
        "administration needs the node's admin token, which is in the file admin.token of the node's data directory: run \
         the command as the node's user and name that directory (--data DIR), or give the token in OMBAK_ADMIN_TOKEN"
    )]
    NoToken,
    /// The token is not this node's.
    #[error(
        "the admin token does not match; it is in the file admin.token of the node's data directory (or give it in \
         OMBAK_ADMIN_TOKEN)"
    )]
    BadToken,
    /// The body is longer than this many bytes.
    #[error("the request body is larger than {0} bytes")]
    TooLarge(usize),
    /// Method and path.
    #[error("there is no administration resource {0}")]
    NoSuchResource(String),
    /// The body is not what the resource takes.
    #[error("{0}")]
    BadRequest(String),
    /// There is no such bucket type. Holds its name.
    #[error("{0} is not an existing bucket type")]
    NoSuchType(String),
    /// The bucket type cannot be created, changed or activated; holds why, in Riak's words where it has some.
    #[error("{0}")]
    Refused(String),
    /// The node could not do it; holds why.
    #[error("{0}")]
    Failed(String),
}

impl AdminError {
    /// The kind, as programs see it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Forbidden(_) => "forbidden",
            Self::NoToken => "no_token",
            Self::BadToken => "bad_token",
            Self::TooLarge(_) => "too_large",
            Self::NoSuchResource(_) => "no_such_resource",
            Self::BadRequest(_) => "bad_request",
            Self::NoSuchType(_) => "no_such_type",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }

    /// The HTTP status that goes with it.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden(_) | Self::NoToken => StatusCode::FORBIDDEN,
            Self::BadToken => StatusCode::UNAUTHORIZED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoSuchResource(_) | Self::NoSuchType(_) => StatusCode::NOT_FOUND,
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
