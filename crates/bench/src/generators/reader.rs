//! Parses the parameters of generators: numbers within limits, and texts. Errors name the place.

use super::words::grouped;
use crate::config::ConfigError;
use crate::term::Term;
use ombak_types::suggest;
use std::ops::RangeInclusive;

/// How deep generators may be nested.
const DEPTH_MAX: usize = 32;

/// The place of a generator within a setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    setting: &'static str,
    /// The form of the generator that is being parsed, as its documentation writes it:
    /// `{uniform_int, Max}`.
    form: &'static str,
    depth: usize,
}

impl Reader {
    /// Starts at the top of a setting.
    pub(super) const fn new(setting: &'static str) -> Self {
        Self { setting, form: "", depth: 0 }
    }

    /// Enters a generator of this form, which may be inside another one.
    pub(super) fn inside(self, form: &'static str) -> Result<Self, ConfigError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error(format!("generators are nested more than {DEPTH_MAX} deep")));
        }
        Ok(Self { form, depth: self.depth + 1, ..self })
    }

    /// An error at this place.
    pub(super) fn error(self, what: impl AsRef<str>) -> ConfigError {
        let what = what.as_ref();
        match self.form {
            "" => ConfigError::setting(self.setting, what),
            form => ConfigError::setting(self.setting, format!("{form}: {what}")),
        }
    }

    /// Parses an integer within limits.
    pub(super) fn integer(self, name: &str, term: &Term, allowed: RangeInclusive<i128>) -> Result<i128, ConfigError> {
        match term {
            Term::Integer(n) if allowed.contains(n) => Ok(*n),
            _ => {
                let (least, most) = (grouped(*allowed.start()), grouped(*allowed.end()));
                Err(self.error(format!("{name} must be an integer from {least} to {most}, not {term}")))
            }
        }
    }

    /// Parses a finite number above 0, which may be an integer or a float.
    pub(super) fn positive(self, name: &str, term: &Term) -> Result<f64, ConfigError> {
        match number(term) {
            Some(n) if n > 0.0 && n.is_finite() => Ok(n),
            _ => Err(self.error(format!("{name} must be a number above 0, not {term}"))),
        }
    }

    /// Parses a number from 0 to 1.
    pub(super) fn probability(self, name: &str, term: &Term) -> Result<f64, ConfigError> {
        match number(term) {
            Some(n) if (0.0..=1.0).contains(&n) => Ok(n),
            _ => Err(self.error(format!("{name} is a probability: it must be a number from 0 to 1, not {term}"))),
        }
    }

    /// The error for an unknown generator.
    pub(super) fn unknown(self, what: &str, term: &Term, forms: &[&'static str]) -> ConfigError {
        let name = head(term);
        let nearest = name.and_then(|name| suggest::nearest(name, forms.iter().map(|form| name_of(form))));
        let (mut known, others): (Vec<_>, Vec<_>) =
            forms.iter().copied().partition(|form| nearest.is_some_and(|nearest| name_of(form) == nearest));
        if nearest.is_some() && nearest == name {
            return self
                .error(format!("{term} does not have the form of the {what} that it names: {}", known.join(" or ")));
        }
        known.extend(others);
        self.error(format!("there is no {what} {term}; there are {}", known.join(", ")))
    }

    /// The error for a generator that is Erlang code.
    pub(super) fn erlang_function(self, parts: &[Term], instead: &str) -> ConfigError {
        let name = match parts {
            [_, Term::Atom(module), Term::Atom(function), ..] => format!("{module}:{function}"),
            _ => "a function".into(),
        };
        self.error(format!("{name} is Erlang code, which is not run here; {instead}"))
    }
}

/// The atom with which a generator begins.
fn head(term: &Term) -> Option<&str> {
    match term {
        Term::Atom(name) => Some(name),
        Term::Tuple(parts) => match parts.first()? {
            Term::Atom(name) => Some(name),
            Term::Tuple(parts) => match parts.first()? {
                Term::Atom(name) => Some(name),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The name in a form: `uniform_int` for `{uniform_int, Max}`.
fn name_of(form: &'static str) -> &'static str {
    let inner = form.trim_start_matches('{');
    inner.split([',', '}']).next().unwrap_or(inner)
}

fn number(term: &Term) -> Option<f64> {
    match term {
        Term::Integer(n) => Some(*n as f64),
        Term::Float(n) => Some(*n),
        _ => None,
    }
}

/// The bytes of an Erlang string: a text, or a list of its characters. `None` if the term is
/// neither, or has a character above 255.
pub(super) fn string_bytes(term: &Term) -> Option<Vec<u8>> {
    match term {
        Term::Text(text) => text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect(),
        Term::List(items) => items
            .iter()
            .map(|item| match item {
                Term::Integer(n) => u8::try_from(*n).ok(),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}
