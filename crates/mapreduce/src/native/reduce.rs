//! Built-in reduce functions.

use super::NativeError;
use crate::Input;
use crate::filter::parse_int;
use crate::term::{add, compare, list_items, order};
use ombak_types::etf::Term;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A built-in reduce function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceFunction {
    /// `reduce_identity`
    Identity,
    /// `reduce_set_union`
    SetUnion,
    /// `reduce_sum`
    Sum,
    /// `reduce_plist_sum`
    PlistSum,
    /// `reduce_sort`
    Sort,
    /// `reduce_string_to_integer`
    StringToInteger,
    /// `reduce_count_inputs`
    CountInputs,
    /// `reduce_index_identity`. Riak 3 does not have it, so no request can name it. Nodes of 0.1.0
    /// do, in parts of their jobs.
    IndexIdentity,
}

impl ReduceFunction {
    /// Whether the function makes one value of each, whatever the others are, and leaves a value
    /// that it has made as it is. Then it need not get the results of its last call again.
    pub(crate) const fn takes_each_alone(self) -> bool {
        matches!(self, Self::Identity | Self::StringToInteger | Self::IndexIdentity)
    }
}

/// A term as the key of a sum, in the order of terms.
#[derive(PartialEq)]
struct Key(Term);

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0, &other.0)
    }
}

impl ReduceFunction {
    /// All functions that a request can name.
    pub const ALL: [Self; 7] = [
        Self::Identity,
        Self::SetUnion,
        Self::Sum,
        Self::PlistSum,
        Self::Sort,
        Self::StringToInteger,
        Self::CountInputs,
    ];

    /// The function with this name. It may be one that only nodes of earlier versions name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::IndexIdentity]).find(|function| function.name() == name)
    }

    /// The function's name in Riak.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "reduce_identity",
            Self::SetUnion => "reduce_set_union",
            Self::Sum => "reduce_sum",
            Self::PlistSum => "reduce_plist_sum",
            Self::Sort => "reduce_sort",
            Self::StringToInteger => "reduce_string_to_integer",
            Self::CountInputs => "reduce_count_inputs",
            Self::IndexIdentity => "reduce_index_identity",
        }
    }

    /// Calls the function, and `rest` between some of its values, so that the caller can let others
    /// work during a long call. Reducing results of earlier calls together with new values gives
    /// what reducing all values at once gives, apart from the order of results that have none. The
    /// one exception is Riak's: [`Self::CountInputs`] adds integers up, and counts all else.
    pub fn call(self, values: Vec<Term>, arg: &Term, rest: fn()) -> Result<Vec<Term>, NativeError> {
        let mut steps = Steps { rest, left: STEPS_EACH };
        match self {
            // These two functions give about as many values as they get. They write the results
            // over the values, so that a large list does not lie in memory twice.
            Self::Identity => values.into_iter().inspect(|_| steps.step()).map(|value| identity(&value)).collect(),
            Self::StringToInteger => {
                let found = values.into_iter().inspect(|_| steps.step()).filter(is_found);
                found.map(|value| to_integer(&value)).collect()
            }
            Self::IndexIdentity => index_identity(&values, arg, &mut steps),
            Self::SetUnion => Ok(set_union(values, &mut steps)),
            Self::Sum => sum(&values, &mut steps),
            Self::PlistSum => plist_sum(&values, &mut steps),
            Self::Sort => {
                let mut values = values;
                values.sort_by(|a, b| steps.after(compare(a, b)));
                Ok(values)
            }
            Self::CountInputs => Ok(vec![count(&values, &mut steps)]),
        }
    }
}

/// How many steps, of less than a microsecond each, are between two rests.
const STEPS_EACH: u32 = 64;

/// Counts steps, and rests after some of them.
struct Steps {
    rest: fn(),
    left: u32,
}

impl Steps {
    fn step(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = STEPS_EACH;
            (self.rest)();
        }
    }

    /// Counts the step that gave this.
    fn after<T>(&mut self, given: T) -> T {
        self.step();
        given
    }
}

/// `[Bucket,Key]` of a key with or without key data. A typed key keeps its type.
fn identity(value: &Term) -> Result<Term, NativeError> {
    let unhandled = || NativeError(format!("{{unhandled_entry,{value}}}"));
    let input = Input::from_term(value).ok_or_else(unhandled)?;
    let is_untyped = input.bucket.is_default_type();
    Ok(Input { key_data: input.key_data.filter(|_| !is_untyped), ..input }.to_json_term())
}

/// Keys pass, with the terms that the query found with them, and all else is left out. With an
/// argument, keys pass that have a term of this name. The argument is the name, or a list of
/// options that has it as `{args,Name}`.
///
/// Riak takes each call one list apart, so that lists within lists come apart with the next call.
/// Here they come apart at once.
fn index_identity(values: &[Term], arg: &Term, steps: &mut Steps) -> Result<Vec<Term>, NativeError> {
    let is_args = |option: &Term| option.as_tuple::<2>().is_some_and(|[name, _]| name.as_atom() == Some("args"));
    let name = match list_items(arg) {
        Some(options) => {
            let args = options.iter().find(|option| is_args(option)).and_then(Term::as_tuple::<2>);
            args.map(|[_, name]| name.clone()).ok_or_else(|| NativeError::new("badarg"))?
        }
        None => arg.clone(),
    };
    let wants_all = matches!(name.as_atom(), Some("none" | "undefined"));
    let mut entries = Vec::new();
    flatten(values, &mut entries, steps);
    Ok(entries
        .into_iter()
        .inspect(|_| steps.step())
        .filter(|entry| entry_passes(entry, (!wants_all).then_some(&name)))
        .map(without_data)
        .collect())
}

/// Whether a value is a key, and one with a term of this name.
fn entry_passes(entry: &Term, name: Option<&Term>) -> bool {
    let (Some([key, terms]), Some(name)) = (entry.as_tuple::<2>(), name) else {
        return name.is_none() && entry.as_tuple::<2>().is_some();
    };
    let has_name = |term: &Term| matches!(term, Term::Tuple(items) if items.first() == Some(name));
    key.as_tuple::<2>().is_some() && list_items(terms).is_some_and(|terms| terms.iter().any(has_name))
}

/// A key whose data is `undefined` stands alone, apart from a typed one ([`Input::to_term`]).
fn without_data(entry: Term) -> Term {
    match entry.as_tuple::<2>() {
        Some([Term::Tuple(_), data]) if data.as_atom() == Some("undefined") => {
            Input::from_term(&entry).map_or(entry, |input| input.to_term())
        }
        _ => entry,
    }
}

fn set_union(mut values: Vec<Term>, steps: &mut Steps) -> Vec<Term> {
    values.sort_by(|a, b| steps.after(order(a, b)));
    values.dedup_by(|a, b| steps.after(a == b));
    values
}

/// Not an input that was not found.
fn is_found(value: &Term) -> bool {
    !matches!(value, Term::Tuple(items) if matches!(items.len(), 2 | 3) && items[0].as_atom() == Some("not_found"))
}

fn sum(values: &[Term], steps: &mut Steps) -> Result<Vec<Term>, NativeError> {
    let found = values.iter().inspect(|_| steps.step()).filter(|value| is_found(value));
    let sum = found.into_iter().try_fold(Term::Int(0), |sum, value| add(&sum, value));
    sum.map(|sum| vec![sum]).ok_or_else(|| NativeError::new("badarith"))
}

fn plist_sum(values: &[Term], steps: &mut Steps) -> Result<Vec<Term>, NativeError> {
    let mut sums = BTreeMap::new();
    let mut pairs = Vec::new();
    flatten(values, &mut pairs, steps);
    for pair in pairs {
        steps.step();
        let Term::Tuple(items) = pair else { return Err(NativeError::new("function_clause")) };
        let [name, value] = items.as_slice() else { return Err(NativeError::new("function_clause")) };
        let so_far = sums.entry(Key(name.clone())).or_insert(Term::Int(0));
        *so_far = add(so_far, value).ok_or_else(|| NativeError::new("badarith"))?;
    }
    Ok(sums.into_iter().map(|(name, sum)| Term::pair(name.0, sum)).collect())
}

/// Takes the elements out of lists within lists.
fn flatten(values: &[Term], out: &mut Vec<Term>, steps: &mut Steps) {
    for value in values {
        steps.step();
        match list_items(value) {
            Some(items) => flatten(&items, out, steps),
            None => out.push(value.clone()),
        }
    }
}

fn to_integer(value: &Term) -> Result<Term, NativeError> {
    if matches!(value, Term::Int(_) | Term::Big(_)) {
        return Ok(value.clone());
    }
    let text = value.as_text().ok_or_else(|| NativeError::new("function_clause"))?;
    parse_int(&text).ok_or_else(|| NativeError(format!("{{badarg,{value}}}")))
}

fn count(values: &[Term], steps: &mut Steps) -> Term {
    values.iter().fold(Term::Int(0), |count, value| {
        steps.step();
        let is_count = matches!(value, Term::Int(_) | Term::Big(_));
        let more = if is_count { value.clone() } else { Term::Int(1) };
        add(&count, &more).unwrap_or(count)
    })
}
