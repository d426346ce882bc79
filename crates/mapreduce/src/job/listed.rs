//! Inputs that a request lists one by one. Each is read alone and kept in a compact form, because
//! there may be millions.

use super::from_json::{bad_inputs, bytes, unrecognized};
use super::{Inputs, JobError, Why};
use crate::input_list::InputListBuilder;
use crate::term::{bytes_as_term, bytes_held};
use crate::{Input, from_json};
use ombak_types::etf::Term;
use ombak_types::json::Json;
use ombak_types::{Bucket, DecodeBudget, TooLarge, allocated};

/// How many elements of a list an error has at most. A text of so many is cut anyway.
const REST_MAX: usize = 65_536;

/// The elements of `inputs` in JSON.
#[derive(Default)]
pub(super) struct ListedJson {
    keys: InputListBuilder,
    count: usize,
    /// The first two elements, as far as they are texts: both together may be a bucket.
    texts: Vec<String>,
    refused: Option<JobError>,
}

impl ListedJson {
    /// Takes the next element.
    pub(super) fn add(&mut self, item: Json, budget: &mut DecodeBudget) -> Result<(), TooLarge> {
        self.count += 1;
        if self.refused.is_none() {
            let bytes = bytes_as_input(&item);
            budget.take(bytes)?;
            match key(&item) {
                Some(input) => self.keys.push(&input, budget)?,
                None => self.refused = Some(unrecognized(&item)),
            }
            budget.give(bytes);
        }
        match item {
            Json::Text(text) if self.count <= 2 => {
                budget.take(allocated(text.len()))?;
                self.texts.push(text);
            }
            _ => {}
        }
        Ok(())
    }

    /// What all elements together are.
    pub(super) fn finish(self) -> Result<Inputs, JobError> {
        match (self.count, self.texts.as_slice(), self.refused) {
            (0, ..) => Err(bad_inputs("No inputs were given.\n".to_owned())),
            (2, [bucket_type, name], _) => {
                let bucket = Bucket::typed(bytes(bucket_type), bytes(name));
                Ok(Inputs::Bucket { bucket, filter: crate::KeyFilter::default() })
            }
            (.., Some(refused)) => Err(refused),
            (.., None) => Ok(Inputs::Keys(self.keys.finish())),
        }
    }
}

/// `[B,K]`, `[B,K,D]` or `[B,K,D,T]`.
fn key(value: &Json) -> Option<Input> {
    let items = value.as_list()?;
    let text = |index: usize| items.get(index).and_then(Json::as_str).map(bytes);
    let bucket = match items.len() {
        2 | 3 => Bucket::untyped(text(0)?),
        4 => Bucket::typed(text(3)?, text(0)?),
        _ => return None,
    };
    Some(Input { bucket, key: text(1)?, key_data: items.get(2).map(from_json) })
}

/// The memory that [`key`] takes.
fn bytes_as_input(value: &Json) -> usize {
    value.as_list().map_or(0, |items| items.iter().take(4).map(bytes_as_term).sum())
}

/// The elements of `inputs` in Erlang's terms.
#[derive(Default)]
pub(super) struct ListedTerms {
    keys: InputListBuilder,
    /// The first element that is no input, and those behind it.
    rest: Vec<Term>,
}

impl ListedTerms {
    /// Takes the next element.
    pub(super) fn add(&mut self, item: Term, budget: &mut DecodeBudget) -> Result<(), TooLarge> {
        let input = match &item {
            Term::Tuple(_) if self.rest.is_empty() => Input::from_term(&item),
            _ => None,
        };
        match input {
            Some(input) => self.keys.push(&input, budget),
            None if self.rest.len() < REST_MAX => {
                budget.take(2 * bytes_held(&item))?;
                budget.push(&mut self.rest, item)
            }
            None => Ok(()),
        }
    }

    /// The inputs. An error has what is left of the list.
    pub(super) fn finish(self) -> Result<Inputs, JobError> {
        if self.rest.is_empty() {
            return Ok(Inputs::Keys(self.keys.finish()));
        }
        let rest = Term::from_list(self.rest);
        Err(JobError::Inputs(Why::about("Inputs target tuples must be {B,K} or {{B,K},KeyData}:", rest)))
    }
}
