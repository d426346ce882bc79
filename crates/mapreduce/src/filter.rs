//! Key filters: which keys of a bucket are the inputs of a job (docs/riak/http-api.md §7).
//!
//! A filter is a list of steps. Each step gets what the step before has made of the key; the last
//! one says yes or no. Riak's transformations of texts give lists of characters, which equal no
//! text of a request; here they give texts. A key that a step cannot work on is not taken.

mod compare;
mod distance;
mod parse;
mod step;

pub use parse::BadFilter;
use step::NoVerdict;
pub use step::Over;
pub(crate) use step::parse_int;

use ombak_types::etf::Term;
use std::sync::Arc;
use step::Step;

/// A key filter. The empty one takes every key. Cheap to clone: clones share everything.
#[derive(Clone, Debug, Default)]
pub struct KeyFilter {
    steps: Arc<[Step]>,
    /// What the filter was read from. The filters inside of others do not know it.
    source: Option<Arc<Term>>,
}

impl KeyFilter {
    /// Whether a key is taken. A key that a step cannot work on is not, whatever surrounds the
    /// step: `not` does not turn such a key into one that is taken.
    ///
    /// The longest key and the largest filter together can take seconds. The work ends with
    /// [`Over`] soon after `is_over` is true.
    pub fn takes(&self, key: &[u8], is_over: &dyn Fn() -> bool) -> Result<bool, Over> {
        match self.check(&Term::binary(key), is_over) {
            Ok(is_taken) => Ok(is_taken),
            Err(NoVerdict::Unfit) => Ok(false),
            Err(NoVerdict::Over(over)) => Err(over),
        }
    }

    /// What [`Self::parse`] reads the filter from.
    pub fn to_term(&self) -> Term {
        self.source.as_deref().cloned().unwrap_or_else(Term::nil)
    }

    fn check(&self, key: &Term, is_over: &dyn Fn() -> bool) -> Result<bool, NoVerdict> {
        let mut value = key.clone();
        for step in self.steps.iter() {
            if is_over() {
                return Err(Over.into());
            }
            value = step.apply(value, is_over)?;
        }
        // The parser has made sure that the last step is a predicate.
        Ok(self.steps.is_empty() || value.as_atom() == Some("true"))
    }
}

#[cfg(test)]
mod tests;
