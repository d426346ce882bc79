//! Which terms of a field a pattern means.

use super::fuzzy::Fuzzy;
use super::limits::REGEX_BYTES_MAX;
use crate::error::IndexError;
use ombak_search::query::{LuceneRegex, Wildcard, WildcardPiece};
use regex::{Regex, RegexBuilder};
use std::ops::Bound;

/// Which terms of a field a pattern means.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    /// Terms with this beginning.
    Prefix(String),
    /// Terms between bounds, by the bytes of UTF-8.
    Range(Bound<String>, Bound<String>),
    /// Terms that an expression matches as a whole, and what all of them begin with.
    Regex(Regex, String),
    /// Terms like a word.
    Fuzzy(Fuzzy),
}

impl Matcher {
    pub(crate) fn of_regex(regex: &LuceneRegex) -> Result<Self, IndexError> {
        let built = whole_term(regex.to_regex()).map_err(|_| {
            let text = format!(
                "the regular expression /{}/ makes an automaton of more than {REGEX_BYTES_MAX} bytes, which is the most; \
                 write it with fewer repetitions",
                regex.source()
            );
            IndexError::TooCostly(text)
        });
        Ok(Self::Regex(built?, literal_beginning(regex.source())))
    }

    /// Terms with a form.
    pub(crate) fn of_wildcard(pattern: &Wildcard) -> Result<Self, IndexError> {
        let built = whole_term(&pattern.to_regex()).map_err(|_| {
            let text =
                format!("the pattern makes an automaton of more than {REGEX_BYTES_MAX} bytes, which is the most");
            IndexError::TooCostly(text)
        });
        let beginning = match pattern.pieces().first() {
            Some(WildcardPiece::Text(text)) => text.clone(),
            _ => String::new(),
        };
        Ok(Self::Regex(built?, beginning))
    }

    /// Whether a term is meant that lies between [`Matcher::bounds`].
    pub(crate) fn is_match(&self, term: &str) -> bool {
        match self {
            Self::Prefix(_) | Self::Range(..) => true,
            Self::Regex(regex, _) => regex.is_match(term),
            Self::Fuzzy(fuzzy) => fuzzy.is_match(term),
        }
    }

    /// Whether all terms between the bounds are meant.
    pub(crate) fn is_range(&self) -> bool {
        matches!(self, Self::Prefix(_) | Self::Range(..))
    }

    /// The bounds of the terms that can be meant, with what begins all terms of the field.
    pub(crate) fn bounds(&self, prefix: &str) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let whole = |rest: &str| format!("{prefix}{rest}").into_bytes();
        let beginning = match self {
            Self::Range(from, to) => {
                let from = match from {
                    Bound::Unbounded => Bound::Included(whole("")),
                    Bound::Included(from) => Bound::Included(whole(from)),
                    Bound::Excluded(from) => Bound::Excluded(whole(from)),
                };
                let to = match to {
                    Bound::Unbounded => behind(whole("")),
                    Bound::Included(to) => Bound::Included(whole(to)),
                    Bound::Excluded(to) => Bound::Excluded(whole(to)),
                };
                return (from, to);
            }
            Self::Prefix(beginning) | Self::Regex(_, beginning) => beginning.as_str(),
            Self::Fuzzy(_) => "",
        };
        (Bound::Included(whole(beginning)), behind(whole(beginning)))
    }
}

/// The automaton of an expression for a whole term.
fn whole_term(expression: &str) -> Result<Regex, regex::Error> {
    let anchored = format!("^(?:{expression})$");
    RegexBuilder::new(&anchored).size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX).build()
}

/// The bound behind everything that begins with a text.
fn behind(mut beginning: Vec<u8>) -> Bound<Vec<u8>> {
    while let Some(last) = beginning.pop() {
        if last < u8::MAX {
            beginning.push(last + 1);
            return Bound::Excluded(beginning);
        }
    }
    Bound::Unbounded
}

/// What everything begins with that an expression matches. It can be shorter than it could be.
fn literal_beginning(source: &str) -> String {
    if source.contains('|') {
        return String::new();
    }
    let mut literal: String = source.chars().take_while(|c| c.is_alphanumeric()).collect();
    if matches!(source.chars().nth(literal.chars().count()), Some('?' | '*' | '+' | '{')) {
        literal.pop();
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_expression_is_literal() {
        for (source, literal) in [
            ("br.*", "br"),
            ("bra?", "br"),
            ("a|b", ""),
            ("abc", "abc"),
            ("a{0,2}b", ""),
            (".a", ""),
            ("a(b|c)", ""),
            ("éx+", "é"),
        ] {
            assert_eq!(literal_beginning(source), literal, "{source}");
        }
    }

    #[test]
    fn an_expression_with_too_large_an_automaton_is_refused() {
        let regex = LuceneRegex::read("(.{40}x){40}").unwrap();
        let error = Matcher::of_regex(&regex).unwrap_err();
        assert!(matches!(&error, IndexError::TooCostly(text) if text.contains("1048576 bytes")), "{error}");
    }

    #[test]
    fn the_bound_behind_a_beginning_is_the_next_text() {
        assert_eq!(behind(b"ab".to_vec()), Bound::Excluded(b"ac".to_vec()));
        assert_eq!(behind(b"a\xff".to_vec()), Bound::Excluded(b"b".to_vec()));
        assert_eq!(behind(b"\xff".to_vec()), Bound::Unbounded);
    }
}
