//! What a request does, to what, and who decides whether it may.

use super::{AdminRole, Permission, Session};
use std::fmt;

/// What a request does, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<'a> {
    /// The permission that the request needs.
    pub permission: Permission,
    /// The bucket type as the client has named it; `None` means the default type, or no type if the
    /// request is about the node.
    pub bucket_type: Option<&'a [u8]>,
    /// The bucket as the client has named it; `None` if the request is about a whole type or about
    /// the node.
    pub bucket: Option<&'a [u8]>,
    /// Whether the request is about the node or its cluster, so that only a permission for
    /// everything is enough.
    pub is_about_node: bool,
    /// For administration, the role that has the permission.
    pub role: Option<AdminRole>,
}

impl<'a> Access<'a> {
    /// An access to one bucket.
    pub const fn to_bucket(permission: Permission, bucket_type: Option<&'a [u8]>, bucket: &'a [u8]) -> Self {
        Self { permission, bucket_type, bucket: Some(bucket), is_about_node: false, role: None }
    }

    /// An access to a bucket type.
    pub const fn to_type(permission: Permission, bucket_type: Option<&'a [u8]>) -> Self {
        Self { permission, bucket_type, bucket: None, is_about_node: false, role: None }
    }

    /// An access to data of all buckets of the cluster.
    pub const fn to_node(permission: Permission) -> Self {
        Self { permission, bucket_type: None, bucket: None, is_about_node: true, role: None }
    }

    /// An access to the node or its cluster: administration. Who has the role may, too.
    pub const fn to_administration(permission: Permission, role: AdminRole) -> Self {
        Self { role: Some(role), ..Self::to_node(permission) }
    }
}

/// Decides which requests are allowed. Security attaches here.
///
/// The policy is asked on network threads for each request, so it must neither block nor take long.
///
/// It is asked about administration, too, if the caller has proved anything: that it knows the
/// node's admin token, or something else. A policy that lets operators in by the token looks for
/// [`Proof::AdminToken`](super::Proof) in the session. A caller that has proved nothing is refused
/// without asking the policy.
pub trait AccessPolicy: fmt::Debug + Send + Sync {
    /// Whether the policy may refuse requests for data now. Work that would only prepare questions
    /// is left out while it does not.
    fn is_in_force(&self) -> bool {
        true
    }

    /// Allows an access of a client, or refuses it with the text for the client.
    fn check(&self, session: &Session, access: &Access<'_>) -> Result<(), String>;
}
