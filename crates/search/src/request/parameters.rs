//! Parameters by name.

use super::limits::{PARAMETERS_BYTES_MAX, PARAMETERS_MAX};
use super::request_error::{RequestError, RequestProblem, shown};

/// The parameters of a request. There are not many, so they are searched from the first to the
/// last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters<'a> {
    pairs: &'a [(String, String)],
}

impl<'a> Parameters<'a> {
    /// Parameters that are few and short enough.
    pub(super) fn new(pairs: &'a [(String, String)]) -> Result<Self, RequestError> {
        let mut bytes = 0;
        for (count, (name, value)) in pairs.iter().enumerate() {
            if count == PARAMETERS_MAX {
                return Err(RequestProblem::TooMany { most: PARAMETERS_MAX }.of("parameters"));
            }
            bytes += name.len() + value.len();
            if bytes > PARAMETERS_BYTES_MAX {
                return Err(RequestProblem::TooLong { most: PARAMETERS_BYTES_MAX }.of("parameters"));
            }
        }
        Ok(Self { pairs })
    }

    /// All parameters in their order.
    pub(super) fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The values of a parameter.
    pub(super) fn all(self, name: &str) -> impl Iterator<Item = &'a str> {
        self.iter().filter(move |(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The values of a parameter that may be repeated so often.
    pub(super) fn at_most(self, name: &str, most: usize) -> Result<Vec<&'a str>, RequestError> {
        let values: Vec<&str> = self.all(name).take(most + 1).collect();
        if values.len() > most { Err(RequestProblem::TooMany { most }.of(name)) } else { Ok(values) }
    }

    /// The value of a parameter that has one.
    pub(super) fn one(self, name: &str) -> Result<Option<&'a str>, RequestError> {
        let mut values = self.all(name);
        let first = values.next();
        if values.any(|value| Some(value) != first) {
            return Err(RequestProblem::Repeated.of(name));
        }
        Ok(first)
    }

    /// The value of a parameter that has one, if it is not empty.
    pub(super) fn one_not_empty(self, name: &str) -> Result<Option<&'a str>, RequestError> {
        Ok(self.one(name)?.filter(|value| !value.is_empty()))
    }

    /// A boolean; `false` if it is not there.
    pub(super) fn flag(self, name: &str) -> Result<bool, RequestError> {
        match self.one(name)? {
            None => Ok(false),
            Some(text) => flag_of(text).ok_or_else(|| RequestProblem::NotBoolean(shown(text)).of(name)),
        }
    }

    /// A whole number within limits.
    pub(super) fn number(self, name: &str, bounds: Bounds) -> Result<Option<i64>, RequestError> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let Bounds { least, most, hint } = bounds;
        let given =
            text.parse::<i64>().map_err(|_| RequestProblem::NotNumber { given: shown(text), least, most }.of(name))?;
        if (least..=most).contains(&given) {
            Ok(Some(given))
        } else {
            Err(RequestProblem::OutOfRange { given, least, most, hint }.of(name))
        }
    }
}

/// The limits of a number, and what an error says behind them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) hint: &'static str,
}

/// A boolean as Solr reads it.
pub(super) fn flag_of(text: &str) -> Option<bool> {
    let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    if begins(&["true", "on", "yes"]) {
        Some(true)
    } else if begins(&["false", "off"]) || text == "no" {
        Some(false)
    } else {
        None
    }
}
