//! Patterns with `*` and `?`.

use super::limits::WILDCARDS_MAX;
use super::query_error::QueryProblem;
use std::fmt::Write;

/// A pattern for a whole term. Neighbouring pieces of text are one piece, and so are neighbouring
/// `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard(Vec<WildcardPiece>);

/// A piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WildcardPiece {
    /// These characters.
    Text(String),
    /// `?`: one character.
    One,
    /// `*`: any characters, or none.
    Any,
}

impl Wildcard {
    /// Reads a pattern. `\x` is the character x itself, also if x is `u`: unlike in words, Lucene
    /// knows no numbers of characters here.
    pub(super) fn read(text: &str) -> Result<Self, QueryProblem> {
        let mut pieces = Self(Vec::new());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '*' => pieces.push(WildcardPiece::Any),
                '?' => pieces.push(WildcardPiece::One),
                '\\' => pieces.push_char(chars.next().ok_or(QueryProblem::LoneBackslash)?),
                c => pieces.push_char(c),
            }
        }
        let wildcards = pieces.0.iter().filter(|piece| !matches!(piece, WildcardPiece::Text(_))).count();
        if wildcards > WILDCARDS_MAX { Err(QueryProblem::TooManyWildcards) } else { Ok(pieces) }
    }

    /// The pattern of some pieces.
    pub fn of(pieces: impl IntoIterator<Item = WildcardPiece>) -> Self {
        let mut pattern = Self(Vec::new());
        for piece in pieces {
            match piece {
                WildcardPiece::Text(text) => text.chars().for_each(|c| pattern.push_char(c)),
                wildcard => pattern.push(wildcard),
            }
        }
        pattern
    }

    fn push(&mut self, wildcard: WildcardPiece) {
        if wildcard != WildcardPiece::Any || self.0.last() != Some(&WildcardPiece::Any) {
            self.0.push(wildcard);
        }
    }

    fn push_char(&mut self, c: char) {
        match self.0.last_mut() {
            Some(WildcardPiece::Text(text)) => text.push(c),
            _ => self.0.push(WildcardPiece::Text(c.to_string())),
        }
    }

    /// The pieces, from the beginning of a term to its end.
    pub fn pieces(&self) -> &[WildcardPiece] {
        &self.0
    }

    /// The pattern as a regular expression of the crates `regex` and `regex-syntax`, for a whole
    /// term.
    pub fn to_regex(&self) -> String {
        let mut regex = String::from("(?s)");
        for piece in &self.0 {
            match piece {
                WildcardPiece::Any => regex.push_str(".*"),
                WildcardPiece::One => regex.push('.'),
                WildcardPiece::Text(text) => text.chars().for_each(|c| push_literal(&mut regex, c)),
            }
        }
        regex
    }

    /// Whether a term has this form. It takes at most as many steps as the term has characters for
    /// each piece.
    pub fn matches(&self, term: &str) -> bool {
        let term: Vec<char> = term.chars().collect();
        let mut reached = vec![false; term.len() + 1];
        reached[0] = true;
        for piece in &self.0 {
            let mut next = vec![false; term.len() + 1];
            for (from, _) in reached.iter().enumerate().filter(|(_, is_reached)| **is_reached) {
                match piece {
                    WildcardPiece::Any => {
                        next[from..].fill(true);
                        break;
                    }
                    WildcardPiece::One => next.get_mut(from + 1).into_iter().for_each(|slot| *slot = true),
                    WildcardPiece::Text(text) => {
                        let is_same = text.chars().eq(term[from..].iter().copied().take(text.chars().count()));
                        if is_same {
                            next[from + text.chars().count()] = true;
                        }
                    }
                }
            }
            reached = next;
        }
        reached[term.len()]
    }
}

/// One character as a regular expression.
pub(super) fn push_literal(regex: &mut String, c: char) {
    if c.is_alphanumeric() || c == '_' {
        regex.push(c);
    } else {
        // Every character has a number, so there is no list of special characters to forget one of.
        let _ = write!(regex, "\\x{{{:x}}}", u32::from(c));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_whole_terms() {
        for (pattern, term, is_match) in [
            ("b?t", "bat", true),
            ("b?t", "bt", false),
            ("b*t", "bt", true),
            ("*ryan*", "bryan fink", true),
            ("*ryan*", "brya", false),
            ("?", "é", true),
            ("??", "é", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("*", "", true),
        ] {
            assert_eq!(Wildcard::read(pattern).unwrap().matches(term), is_match, "{pattern} on {term}");
        }
    }

    #[test]
    fn many_wildcards_are_refused_unless_they_are_one() {
        assert_eq!(Wildcard::read(&"*".repeat(100)).unwrap().pieces(), [WildcardPiece::Any]);
        assert_eq!(Wildcard::read(&"*a".repeat(17)), Err(QueryProblem::TooManyWildcards));
        assert_eq!(Wildcard::read(&"?".repeat(17)), Err(QueryProblem::TooManyWildcards));
    }

    #[test]
    fn a_pattern_is_a_regular_expression() {
        assert_eq!(Wildcard::read("a.b?*").unwrap().to_regex(), r"(?s)a\x{2e}b..*");
    }

    proptest! {
        #[test]
        fn the_regular_expression_matches_the_same_terms(pattern in "[ab.*?é\\\\]{0,8}", term in "[ab.é*?]{0,8}") {
            if let Ok(pattern) = Wildcard::read(&pattern) {
                let regex = regex::Regex::new(&format!("^(?:{})$", pattern.to_regex())).unwrap();
                prop_assert_eq!(pattern.matches(&term), regex.is_match(&term));
            }
        }
    }
}
