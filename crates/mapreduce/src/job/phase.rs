//! The phases of a job.

use super::{Batching, JobError, Mapper, Reducer, ScriptSource, from_term};
use crate::LinkMatch;
use crate::native::MODULE;
use ombak_types::etf::Term;
use std::sync::Arc;

/// A phase.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Makes values of each object.
    Map {
        /// The function.
        function: Mapper,
        /// What the function gets with each object.
        arg: Arc<Term>,
        /// Whether the client gets the results.
        keep: bool,
    },
    /// Makes values of lists of values.
    Reduce {
        /// The function.
        function: Reducer,
        /// What the function gets with each list.
        arg: Arc<Term>,
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

    /// The function of the phase, if it is one in JavaScript.
    pub const fn script(&self) -> Option<&ScriptSource> {
        match self {
            Self::Map { function: Mapper::Script(source), .. }
            | Self::Reduce { function: Reducer::Script(source), .. } => Some(source),
            Self::Map { .. } | Self::Reduce { .. } | Self::Link { .. } => None,
        }
    }

    /// The phase as a request in Erlang's encoding has it: `{map|reduce,Fun,Arg,Keep}` or
    /// `{link,Bucket,Tag,Keep}`. Nodes send phases to each other in this form.
    pub fn to_term(&self) -> Term {
        let keep = Term::atom(if self.keep() { "true" } else { "false" });
        let items = match self {
            Self::Map { function: Mapper::Native(function), arg, .. } => {
                [Term::atom("map"), native(function.name()), (**arg).clone()]
            }
            Self::Map { function: Mapper::Script(source), arg, .. } => {
                [Term::atom("map"), source.to_term(), (**arg).clone()]
            }
            Self::Reduce { function: Reducer::Native(function), arg, .. } => {
                [Term::atom("reduce"), native(function.name()), (**arg).clone()]
            }
            Self::Reduce { function: Reducer::Script(source), arg, .. } => {
                [Term::atom("reduce"), source.to_term(), (**arg).clone()]
            }
            Self::Link { links, .. } => {
                let any = |field: &Option<bytes::Bytes>| field.clone().map_or_else(|| Term::atom("_"), Term::Binary);
                [Term::atom("link"), any(&links.bucket), any(&links.tag)]
            }
        };
        Term::Tuple(items.into_iter().chain([keep]).collect())
    }

    /// Reads a phase from [`Self::to_term`]. `number` is its number in the job, for errors.
    pub fn from_term(term: &Term, number: usize) -> Result<Self, JobError> {
        from_term::phase(term, number, false)
    }

    /// How a reduce phase is called; the default for other phases.
    pub fn batching(&self) -> Batching {
        match self {
            Self::Reduce { arg, .. } => Batching::of_reduce(arg),
            _ => Batching::default(),
        }
    }
}

fn native(name: &str) -> Term {
    Term::Tuple(vec![Term::atom("modfun"), Term::atom(MODULE), Term::atom(name)])
}
