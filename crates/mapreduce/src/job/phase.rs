//! The phases of a job.

use super::{Batching, Mapper, Reducer};
use crate::LinkMatch;
use ombak_types::etf::Term;

/// A phase.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Makes values of each object.
    Map {
        /// The function.
        function: Mapper,
        /// What the function gets with each object.
        arg: Term,
        /// Whether the client gets the results.
        keep: bool,
    },
    /// Makes values of lists of values.
    Reduce {
        /// The function.
        function: Reducer,
        /// What the function gets with each list.
        arg: Term,
        /// Whether the client gets the results.
        keep: bool,
    },
    /// Makes keys of the links of each object.
    Link {
        /// Which links.
        links: LinkMatch,
        /// Whether the client gets the results.
        keep: bool,
    },
}

impl Phase {
    /// Whether the client gets the results.
    pub const fn keep(&self) -> bool {
        match self {
            Self::Map { keep, .. } | Self::Reduce { keep, .. } | Self::Link { keep, .. } => *keep,
        }
    }

    /// Whether the phase reads objects.
    pub const fn reads_objects(&self) -> bool {
        matches!(self, Self::Map { .. } | Self::Link { .. })
    }

    /// How a reduce phase is called; the default for other phases.
    pub fn batching(&self) -> Batching {
        match self {
            Self::Reduce { arg, .. } => Batching::of_reduce(arg),
            _ => Batching::default(),
        }
    }
}
