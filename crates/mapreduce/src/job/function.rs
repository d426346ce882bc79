//! The functions of phases.

use super::JobError;
use crate::Input;
use crate::native::{MODULE, MapFunction, ReduceFunction};
use bytes::Bytes;
use ombak_types::Bucket;
use ombak_types::etf::Term;

/// A function in JavaScript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptSource {
    /// A built-in or registered function.
    Named(String),
    /// The source, in the request.
    Source(String),
    /// The source is the value of an object.
    Stored {
        /// The bucket of the object.
        bucket: Bucket,
        /// The key of the object.
        key: Bytes,
    },
}

impl ScriptSource {
    /// The function as a request in Erlang's encoding has it.
    pub(super) fn to_term(&self) -> Term {
        match self {
            Self::Named(name) => Term::pair(Term::atom("jsfun"), Term::binary(name.as_bytes())),
            Self::Source(source) => Term::pair(Term::atom("jsanon"), Term::binary(source.as_bytes())),
            Self::Stored { bucket, key } => {
                Term::pair(Term::atom("jsanon"), Input::new(bucket.clone(), key.clone()).to_term())
            }
        }
    }
}

/// The function of a map phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapper {
    /// A built-in function of Riak's.
    Native(MapFunction),
    /// A function in JavaScript.
    Script(ScriptSource),
}

/// The function of a reduce phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reducer {
    /// A built-in function of Riak's.
    Native(ReduceFunction),
    /// A function in JavaScript.
    Script(ScriptSource),
}

/// Functions of JavaScript whose results may be reduced again with others, in any grouping.
const REGROUPABLE: &[&str] =
    &["Riak.reduceSum", "Riak.reduceMin", "Riak.reduceMax", "Riak.reduceSort", "Riak.reduceNumericSort"];

impl Reducer {
    /// Whether the function need not get the results of its last call again; see
    /// [`ReduceFunction::takes_each_alone`].
    pub(crate) const fn takes_each_alone(&self) -> bool {
        matches!(self, Self::Native(function) if function.takes_each_alone())
    }

    /// Whether reducing parts first is known to give the same result. A user's function may look at
    /// how often it is called, so it is reduced in parts only if somebody asks.
    pub fn is_regroupable(&self) -> bool {
        match self {
            Self::Native(_) => true,
            Self::Script(ScriptSource::Named(name)) => REGROUPABLE.contains(&name.as_str()),
            Self::Script(_) => false,
        }
    }
}

/// A function as a request names it.
pub(super) enum Named {
    Erlang { module: String, function: String },
    Script(ScriptSource),
}

impl Named {
    pub(super) fn mapper(self, phase: usize) -> Result<Mapper, JobError> {
        match self {
            Self::Script(source) => Ok(Mapper::Script(source)),
            Self::Erlang { module, function } => {
                let known = (module == MODULE).then(|| MapFunction::ALL.into_iter().find(|f| f.name() == function));
                known.flatten().map(Mapper::Native).ok_or(JobError::UnknownFunction { phase, module, function })
            }
        }
    }

    pub(super) fn reducer(self, phase: usize) -> Result<Reducer, JobError> {
        match self {
            Self::Script(source) => Ok(Reducer::Script(source)),
            Self::Erlang { module, function } => {
                let known = (module == MODULE).then(|| ReduceFunction::named(&function));
                known.flatten().map(Reducer::Native).ok_or(JobError::UnknownFunction { phase, module, function })
            }
        }
    }
}
