//! Regular expressions as Lucene 4 reads them, rewritten for Rust's crates `regex` and
//! `regex-syntax`.
//!
//! Lucene's expressions are for a whole term. `.` is any character, `@` any text, `"..."` a text,
//! and `\x` the character x. `^`, `$`, `\d` and `\w` have no meaning of their own there. Its
//! complements (`~`), intersections (`&`), numeric ranges (`<1-9>`) and `#` are refused.

use super::limits::PATTERN_CHARS_MAX;
use super::wildcard::push_literal;
use std::fmt::Write;

/// Characters and classes of an expression after repetitions were written out. An automaton without
/// choices can still have exponentially many states: whoever builds one has to bound it.
const STATES_MAX: usize = 2_000;

/// Parentheses inside each other. `regex-syntax` refuses 250 groups, lists and repetitions.
const DEPTH_MAX: usize = 12;

/// Repetitions of repetitions, such as `(a*)?` without parentheses: `a*?`.
const REPEATED_MAX: usize = 3;

/// A regular expression for a whole term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LuceneRegex {
    source: String,
    rewritten: String,
}

/// A text is no regular expression that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRegex {
    /// A repetition with nothing before it.
    #[error("a repetition needs something before it; write \\ before it if it is meant itself")]
    NothingToRepeat,
    /// A parenthesis or bracket or quote without its partner.
    #[error("{0} has no partner; write \\ before it if it is meant itself")]
    Unbalanced(char),
    /// An empty alternative.
    #[error("| needs something on both sides; write () for an empty text")]
    EmptyAlternative,
    /// No number in braces.
    #[error("a number of repetitions is written {{2}}, {{2,}} or {{2,5}}")]
    BadRepetition,
    /// A range of characters backwards.
    #[error("a range of characters begins with the lower one")]
    BadRange,
    /// What Lucene has and Ombak has not.
    #[error("{0} is not supported in regular expressions; write \\ before it if it is meant itself")]
    Unsupported(char),
    /// Too many states.
    #[error("the repetitions make the regular expression too large (at most {STATES_MAX} characters written out)")]
    TooLarge,
    /// Too many parentheses inside each other, or repetitions of repetitions.
    #[error(
        "a regular expression has at most {DEPTH_MAX} parentheses inside each other, and {REPEATED_MAX} repetitions \
         of the same part"
    )]
    TooDeep,
    /// Too long.
    #[error("a regular expression has at most {PATTERN_CHARS_MAX} characters")]
    TooLong,
}

impl LuceneRegex {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong, and how many bytes lie before it.
    pub fn read(source: &str) -> Result<Self, (usize, BadRegex)> {
        if source.chars().nth(PATTERN_CHARS_MAX).is_some() {
            return Err((0, BadRegex::TooLong));
        }
        let mut rewriter = Rewriter { source, at: 0, out: String::from("(?s)"), depth: 0 };
        let result = rewriter.alternatives().and_then(|states| match rewriter.peek() {
            Some(c) => Err(BadRegex::Unbalanced(c)),
            None if states > STATES_MAX => Err(BadRegex::TooLarge),
            None => Ok(()),
        });
        result.map_err(|bad| (rewriter.at, bad))?;
        Ok(Self { source: source.to_owned(), rewritten: rewriter.out })
    }

    /// The expression as Lucene reads it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The same for the crates `regex` and `regex-syntax`, for a whole term: it has no anchors.
    /// What builds an automaton of it has to bound its states.
    pub fn to_regex(&self) -> &str {
        &self.rewritten
    }
}

struct Rewriter<'a> {
    source: &'a str,
    at: usize,
    out: String,
    depth: usize,
}

impl Rewriter<'_> {
    fn peek(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn takes(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        self.at += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    /// Reads expressions between `|`, and counts their states.
    fn alternatives(&mut self) -> Result<usize, BadRegex> {
        self.out.push_str("(?:");
        let mut states: usize = 0;
        loop {
            let start = self.at;
            while self.peek().is_some_and(|c| !matches!(c, '|' | ')')) {
                states = states.saturating_add(self.repeated()?);
            }
            if self.at == start {
                return Err(BadRegex::EmptyAlternative);
            }
            if !self.takes('|') {
                self.out.push(')');
                return Ok(states);
            }
            self.out.push('|');
        }
    }

    fn repeated(&mut self) -> Result<usize, BadRegex> {
        let start = self.out.len();
        let mut states = self.simple()?;
        let mut count = 0;
        while let Some(sign @ ('?' | '*' | '+' | '{')) = self.peek() {
            count += 1;
            if count > REPEATED_MAX {
                return Err(BadRegex::TooDeep);
            }
            // A second sign would mean something else there, such as "not greedy" in `a*?`.
            self.out.insert_str(start, "(?:");
            self.out.push(')');
            if sign == '{' {
                states = states.saturating_mul(self.repetitions()?);
            } else {
                self.at += 1;
                self.out.push(sign);
            }
            if states > STATES_MAX {
                return Err(BadRegex::TooLarge);
            }
        }
        Ok(states)
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; how often what it repeats is written out.
    fn repetitions(&mut self) -> Result<usize, BadRegex> {
        self.at += 1;
        let least = self.number()?;
        let mut most = Some(least);
        if self.takes(',') {
            most = if self.peek() == Some('}') { None } else { Some(self.number()?) };
        }
        if !self.takes('}') || most.is_some_and(|most| most < least) {
            return Err(BadRegex::BadRepetition);
        }
        let _ = match most {
            None => write!(self.out, "{{{least},}}"),
            Some(most) => write!(self.out, "{{{least},{most}}}"),
        };
        Ok(most.unwrap_or(least).max(1))
    }

    fn number(&mut self) -> Result<usize, BadRegex> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        match &self.source[start..self.at] {
            "" => Err(BadRegex::BadRepetition),
            digits => digits.parse().ok().filter(|n| *n <= STATES_MAX).ok_or(BadRegex::TooLarge),
        }
    }

    fn simple(&mut self) -> Result<usize, BadRegex> {
        let before = self.at;
        let Some(c) = self.next() else { return Err(BadRegex::NothingToRepeat) };
        match c {
            '.' => self.out.push('.'),
            '@' => self.out.push_str("(?:.*)"),
            '(' => return self.parenthesis(before),
            '[' => return self.class(before),
            '"' => return self.quoted(before),
            '?' | '*' | '+' | '{' => {
                self.at = before;
                return Err(BadRegex::NothingToRepeat);
            }
            '~' | '&' | '<' | '#' => {
                self.at = before;
                return Err(BadRegex::Unsupported(c));
            }
            '\\' => {
                let escaped = self.next().ok_or(BadRegex::Unbalanced('\\'))?;
                push_literal(&mut self.out, escaped);
            }
            c => push_literal(&mut self.out, c),
        }
        Ok(1)
    }

    fn parenthesis(&mut self, start: usize) -> Result<usize, BadRegex> {
        if self.takes(')') {
            self.out.push_str("(?:)");
            return Ok(1);
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(BadRegex::TooDeep);
        }
        let states = self.alternatives()?;
        self.depth -= 1;
        if !self.takes(')') {
            self.at = start;
            return Err(BadRegex::Unbalanced('('));
        }
        Ok(states)
    }

    fn quoted(&mut self, start: usize) -> Result<usize, BadRegex> {
        let Some(length) = self.source[self.at..].find('"') else {
            self.at = start;
            return Err(BadRegex::Unbalanced('"'));
        };
        let text = &self.source[self.at..self.at + length];
        self.out.push_str("(?:");
        text.chars().for_each(|c| push_literal(&mut self.out, c));
        self.out.push(')');
        self.at += length + 1;
        Ok(length.max(1))
    }

    /// Reads a class of characters. The first character is one of them, also if it is `]`.
    fn class(&mut self, start: usize) -> Result<usize, BadRegex> {
        self.out.push('[');
        if self.takes('^') {
            self.out.push('^');
        }
        let mut is_first = true;
        while is_first || self.peek() != Some(']') {
            is_first = false;
            let Some(low) = self.class_char() else {
                self.at = start;
                return Err(BadRegex::Unbalanced('['));
            };
            let mut high = low;
            if self.takes('-') {
                if self.peek() == Some(']') {
                    push_literal(&mut self.out, '-');
                } else if let Some(c) = self.class_char() {
                    high = c;
                }
            }
            if high < low {
                return Err(BadRegex::BadRange);
            }
            push_literal(&mut self.out, low);
            self.out.push('-');
            push_literal(&mut self.out, high);
        }
        self.at += 1;
        self.out.push(']');
        Ok(1)
    }

    fn class_char(&mut self) -> Option<char> {
        match self.next()? {
            '\\' => self.next(),
            c => Some(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn expressions_are_rewritten() {
        for (lucene, rust) in [
            ("br.*", "(?s)(?:br(?:.)*)"),
            ("a|b", "(?s)(?:a|b)"),
            ("a*?", "(?s)(?:(?:(?:a)*)?)"),
            ("^a$", r"(?s)(?:\x{5e}a\x{24})"),
            (r"\d", "(?s)(?:d)"),
            ("@x", "(?s)(?:(?:.*)x)"),
            ("\"a.b\"{2}", r"(?s)(?:(?:(?:a\x{2e}b)){2,2})"),
            ("[^a-c-]", r"(?s)(?:[^a-c\x{2d}-\x{2d}])"),
            ("[a-]", r"(?s)(?:[\x{2d}a-a])"),
            ("[]x]", r"(?s)(?:[\x{5d}-\x{5d}x-x])"),
            ("(ab|()){1,}", "(?s)(?:(?:(?:ab|(?:))){1,})"),
        ] {
            assert_eq!(LuceneRegex::read(lucene).unwrap().rewritten, rust, "{lucene}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for (lucene, at, bad) in [
            ("a|*b", 2, BadRegex::NothingToRepeat),
            ("(?i)a", 1, BadRegex::NothingToRepeat),
            ("(a", 0, BadRegex::Unbalanced('(')),
            ("a)", 1, BadRegex::Unbalanced(')')),
            ("[a", 0, BadRegex::Unbalanced('[')),
            ("a||b", 2, BadRegex::EmptyAlternative),
            ("x{a}", 2, BadRegex::BadRepetition),
            ("x{3,2}", 6, BadRegex::BadRepetition),
            ("[b-a]", 4, BadRegex::BadRange),
            ("~a", 0, BadRegex::Unsupported('~')),
            ("((a{100}){100}){100}", 14, BadRegex::TooLarge),
        ] {
            assert_eq!(LuceneRegex::read(lucene), Err((at, bad)), "{lucene}");
        }
        assert_eq!(LuceneRegex::read(&"(".repeat(100)).unwrap_err().1, BadRegex::TooDeep);
        assert_eq!(LuceneRegex::read("a?*+?").unwrap_err(), (4, BadRegex::TooDeep));
    }

    /// The expression of Rust for whole terms.
    fn compiled(source: &str) -> regex::Regex {
        let lucene = LuceneRegex::read(source).unwrap();
        regex::Regex::new(&format!("^(?:{})$", lucene.to_regex())).unwrap_or_else(|error| panic!("{source}: {error}"))
    }

    #[test]
    fn expressions_match_whole_terms_as_in_lucene() {
        for (source, term, is_match) in [
            ("br.*", "bryan", true),
            ("br", "bryan", false),
            (".", "\n", true),
            (".", "é", true),
            ("^a$", "a", false),
            ("^a$", "^a$", true),
            (r"\d+", "ddd", true),
            (r"\d+", "123", false),
            ("[0-9]{2,3}", "1234", false),
            ("[0-9]{2,3}", "123", true),
            ("[0-9]{2,}", "1234", true),
            ("a|bc", "bc", true),
            ("a|bc", "abc", false),
            ("(a|b)c", "bc", true),
            ("@", "", true),
            ("x@", "xyz", true),
            ("\"a.b\"+", "a.ba.b", true),
            ("\"a.b\"+", "axb", false),
            ("[^a-c]", "d", true),
            ("[^a-c]", "b", false),
            ("[]-]+", "]-", true),
            ("[a&&b]", "&", true),
            ("[[a]", "[", true),
            (r"[\]\\]+", "]\\", true),
            ("a()b", "ab", true),
            (r"\/\.\*", "/.*", true),
            ("a*?", "aa", true),
        ] {
            assert_eq!(compiled(source).is_match(term), is_match, "{source} on {term}");
        }
    }

    #[test]
    fn what_is_read_can_be_compiled_at_its_bounds() {
        let deep = format!("{}a|b{}", "(x".repeat(DEPTH_MAX), "|y)?*+".repeat(DEPTH_MAX));
        assert!(compiled(&deep).is_match(""));
        compiled(".{2000}");
        compiled("((é{10}){10}){20}");
    }

    proptest! {
        #[test]
        fn whatever_is_read_can_be_compiled(source in "([abé.()|?*+\\[\\]^&~<>#@\"{}0-9,\\\\-]|\\[[^a-]{1,3}\\]|\\{[0-9],[0-9]\\}){0,12}") {
            if LuceneRegex::read(&source).is_ok() {
                compiled(&source);
            }
        }
    }
}
