//! Why a home does not go on.

use ombak_types::NodeId;

/// Why a home does not go on in a change of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// The member does not report.
    Silent(NodeId),
    /// The member has not confirmed the last step.
    Unconfirmed(NodeId),
    /// The member has not confirmed the last step, and its disk is full or a store is broken.
    CannotNote(NodeId),
    /// The member of the old set has not proved the home.
    Unproved(NodeId),
    /// The member that is new in the home cannot take copies.
    TakesNoCopies(NodeId),
    /// The member of the new set would not be full.
    NotFull(NodeId),
    /// Every member of the old set that was full may be among those that are marked as down.
    NeedsDown {
        /// A member that is marked as down.
        node: NodeId,
        /// The n of the class.
        n: u32,
    },
}

impl Obstacle {
    /// The member that the home waits for.
    pub const fn node(&self) -> NodeId {
        match *self {
            Self::Silent(node)
            | Self::Unconfirmed(node)
            | Self::CannotNote(node)
            | Self::Unproved(node)
            | Self::TakesNoCopies(node)
            | Self::NotFull(node)
            | Self::NeedsDown { node, .. } => node,
        }
    }

    /// The words for the operator.
    pub fn text(&self, name_of: impl Fn(NodeId) -> String) -> String {
        let name = name_of(self.node());
        match *self {
            Self::Silent(_) => format!("waits for '{name}' to answer"),
            Self::Unconfirmed(_) => format!("waits for '{name}' to end the requests that began before the last step"),
            Self::CannotNote(_) => format!(
                "waits for '{name}' to note the last step: its disk is full, or a store is broken (see its log)"
            ),
            Self::Unproved(_) => format!("waits for '{name}' to hand over what it holds"),
            Self::TakesNoCopies(_) => {
                format!("waits for '{name}' to take copies: its disk is full, or a store is broken (see its log)")
            }
            Self::NotFull(_) => format!("waits for '{name}' to hold everything again, because its store lost data"),
            Self::NeedsDown { n, .. } => format!(
                "waits for '{name}', which is marked as down: nobody else is known to hold everything with n_val {n}"
            ),
        }
    }
}
