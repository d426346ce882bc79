//! The roles of people who administer a node.

use super::Permission;

/// What somebody may do who administers a node. A role is granted like a permission, on `any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminRole {
    /// Sees what administration shows, but no hash of a password, and changes nothing.
    Observer,
    /// Also changes the node and its cluster.
    Operator,
    /// Also sees and changes users, groups, sources and grants. It is no operator, and can make
    /// itself one.
    Security,
}

impl AdminRole {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Observer, Self::Operator, Self::Security];

    /// The permission with which the role is granted.
    pub const fn permission(self) -> Permission {
        Permission::named(match self {
            Self::Observer => "ombak_admin.observer",
            Self::Operator => "ombak_admin.operator",
            Self::Security => "ombak_admin.security",
        })
    }

    /// The roles that may do what this one may, itself included.
    pub const fn and_above(self) -> &'static [Self] {
        match self {
            Self::Observer => &Self::ALL,
            Self::Operator => &[Self::Operator],
            Self::Security => &[Self::Security],
        }
    }
}
