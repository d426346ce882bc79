//! The steps of a key filter.

use super::KeyFilter;
use super::compare::Comparison;
use super::distance::distance;
use bytes::Bytes;
use num_bigint::BigInt;
use ombak_types::etf::{INTEGER_BYTES_MAX, Term};
use std::collections::HashSet;

/// The work on a key has ended because nobody waits for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work with key filters has ended")]
pub struct Over;

/// Why a filter says neither yes nor no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoVerdict {
    /// A step was given a value that it cannot work on.
    Unfit,
    /// Nobody waits for the answer any more.
    Over(Over),
}

impl From<Over> for NoVerdict {
    fn from(over: Over) -> Self {
        Self::Over(over)
    }
}

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    IntToString,
    StringToInt,
    FloatToString,
    StringToFloat,
    ToUpper,
    ToLower,
    /// The characters that separate, and the number of the token, beginning with 1.
    Tokenize(Bytes, usize),
    UrlDecode,
    Compare(Comparison),
    Matches(Box<regex::bytes::Regex>),
    SetMember(HashSet<Bytes>),
    /// A text, and the maximum distance from it.
    SimilarTo(Bytes, usize),
    StartsWith(Bytes),
    EndsWith(Bytes),
    And(Vec<KeyFilter>),
    Or(Vec<KeyFilter>),
    Not(KeyFilter),
}

impl Step {
    /// Whether the step says yes or no.
    pub(super) const fn is_predicate(&self) -> bool {
        !matches!(
            self,
            Self::IntToString
                | Self::StringToInt
                | Self::FloatToString
                | Self::StringToFloat
                | Self::ToUpper
                | Self::ToLower
                | Self::Tokenize(..)
                | Self::UrlDecode
        )
    }

    /// What the step makes of a value. A predicate makes `true` or `false` of it.
    pub(super) fn apply(&self, value: Term, is_over: &dyn Fn() -> bool) -> Result<Term, NoVerdict> {
        let verdict = match self {
            Self::IntToString => return int_to_string(&value).ok_or(NoVerdict::Unfit),
            Self::StringToInt => return parse_int(&text_of(&value)).ok_or(NoVerdict::Unfit),
            Self::FloatToString => match value {
                Term::Float(n) => return Ok(Term::binary(float_text(n).as_bytes())),
                _ => return Err(NoVerdict::Unfit),
            },
            Self::StringToFloat => return parse_float(&text_of(&value)).ok_or(NoVerdict::Unfit),
            Self::ToUpper => return Ok(Term::Binary(text_of(&value).to_ascii_uppercase().into())),
            Self::ToLower => return Ok(Term::Binary(text_of(&value).to_ascii_lowercase().into())),
            Self::Tokenize(separators, number) => return Ok(token(&text_of(&value), separators, *number)),
            Self::UrlDecode => return Ok(Term::Binary(url_decoded(&text_of(&value)).into())),
            Self::Compare(comparison) => comparison.holds(&value),
            Self::Matches(regex) => {
                // Erlang matches texts only.
                let text = value.as_text().ok_or(NoVerdict::Unfit)?;
                regex.is_match(&text)
            }
            Self::SetMember(members) => members.contains(&text_of(&value)),
            Self::SimilarTo(text, distance_max) => distance(&text_of(&value), text, *distance_max, is_over)?.is_some(),
            Self::StartsWith(prefix) => text_of(&value).starts_with(prefix),
            Self::EndsWith(suffix) => text_of(&value).ends_with(suffix),
            Self::And(filters) => all(filters, &value, is_over)?,
            Self::Or(filters) => any(filters, &value, is_over)?,
            Self::Not(filter) => !filter.check(&value, is_over)?,
        };
        Ok(Term::atom(if verdict { "true" } else { "false" }))
    }
}

fn all(filters: &[KeyFilter], value: &Term, is_over: &dyn Fn() -> bool) -> Result<bool, NoVerdict> {
    for filter in filters {
        if !filter.check(value, is_over)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn any(filters: &[KeyFilter], value: &Term, is_over: &dyn Fn() -> bool) -> Result<bool, NoVerdict> {
    for filter in filters {
        if filter.check(value, is_over)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The text that Erlang's filters make of any value.
pub(super) fn text_of(value: &Term) -> Bytes {
    match value {
        Term::Float(n) => Bytes::from(float_text(*n)),
        other => other.as_text().unwrap_or_else(|| Bytes::from(other.to_string())),
    }
}

fn int_to_string(value: &Term) -> Option<Term> {
    match value {
        Term::Int(n) => Some(Term::binary(n.to_string().as_bytes())),
        Term::Big(n) => Some(Term::binary(n.to_string().as_bytes())),
        _ => None,
    }
}

/// Parses an integer as Erlang does: digits after at most one sign.
pub(crate) fn parse_int(text: &[u8]) -> Option<Term> {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let is_int = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) && text.len() <= INTEGER_BYTES_MAX;
    if is_int { BigInt::parse_bytes(text, 10).map(Term::from) } else { None }
}

/// Parses a float as Erlang does: it has a point with digits on both sides.
fn parse_float(text: &[u8]) -> Option<Term> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, rest) = text.split_once('.')?;
    let digits = |part: &str| part.bytes().next().is_some_and(|b| b.is_ascii_digit());
    let starts_well = digits(whole.trim_start_matches(['-', '+'])) && digits(rest);
    let number = if starts_well { text.parse::<f64>().ok()? } else { return None };
    number.is_finite().then_some(Term::Float(number))
}

/// The text that Erlang gives a float: twenty digits and an exponent of at least two digits.
fn float_text(n: f64) -> String {
    let text = format!("{n:.20e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// One of the tokens between separators. Without it, this is the empty list, as in Riak.
fn token(text: &[u8], separators: &[u8], number: usize) -> Term {
    let mut tokens = text.split(|byte| separators.contains(byte)).filter(|token| !token.is_empty());
    tokens.nth(number - 1).map_or_else(Term::nil, Term::binary)
}

/// Decodes `%20` and `+`. It ends at a `&` or `;`, as the value of a query does.
fn url_decoded(text: &[u8]) -> Vec<u8> {
    let hex = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at).filter(|byte| !matches!(byte, b'&' | b';')) {
        match (byte, hex(text.get(at + 1)), hex(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 2;
            }
            (b'+', ..) => out.push(b' '),
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}
