//! A change of the members, as an operator asks for it.

/// A change of the members that an operator asks for. Nodes are given by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// The member hands over what it owns, and leaves.
    Leave(String),
    /// The member is removed, and nobody gets its data.
    ForceRemove(String),
    /// The node that joins gets exactly the partitions of the member, which leaves.
    Replace {
        /// The member.
        node: String,
        /// The node that joins.
        with: String,
    },
    /// As [`Self::Replace`], and nobody gets the data of the member.
    ForceReplace {
        /// The member.
        node: String,
        /// The node that joins.
        with: String,
    },
    /// Says where a member, or a node that joins, is.
    SetLocation {
        /// The node.
        node: String,
        /// The name of its location.
        location: String,
    },
}
