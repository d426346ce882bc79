//! The words and signs of a query.
//!
//! As in Lucene's grammar the longest token counts, so `a&&b`, `ANDROID` and `a-b` are words, and
//! `a!b` is `a ! b`. An operator that a space follows (`a - b`) stands for itself as a word.

use super::query_error::{QueryError, QueryProblem};

/// A word or sign, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub kind: TokenKind<'a>,
    /// All of it as it is written.
    pub source: &'a str,
    /// How many bytes lie before it.
    pub offset_bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    And,
    Or,
    Not,
    Plus,
    Minus,
    Open,
    Close,
    Colon,
    /// `*` alone.
    Star,
    /// `+`, `-` or `!` before a space.
    BareOperator,
    /// `^` and its number.
    Boost(f32),
    /// `~` and perhaps a number.
    Fuzzy(Option<f32>),
    /// What stands between two quotes, with its escapes.
    Quoted(&'a str),
    /// A word, with its escapes.
    Word,
    /// A word that ends with its only wildcard, a `*`.
    Prefix,
    /// A word with other wildcards.
    Pattern,
    /// What stands between two slashes.
    Regex(&'a str),
    Range(RangeToken<'a>),
}

impl TokenKind<'_> {
    /// Whether it is a clause by itself.
    pub(super) fn is_atom(&self) -> bool {
        matches!(
            self,
            Self::Star
                | Self::BareOperator
                | Self::Quoted(_)
                | Self::Word
                | Self::Prefix
                | Self::Pattern
                | Self::Regex(_)
                | Self::Range(_)
        )
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct RangeToken<'a> {
    pub from: RangeBound<'a>,
    pub to: RangeBound<'a>,
    pub has_from: bool,
    pub has_to: bool,
}

/// A bound of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RangeBound<'a> {
    /// The text with its escapes.
    pub text: &'a str,
    pub is_quoted: bool,
    pub offset_bytes: usize,
}

/// All words and signs of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, QueryError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_spaces();
        let start = lexer.at;
        let Some(first) = lexer.peek() else { return Ok(tokens) };
        let kind = lexer.token(first)?;
        tokens.push(Token { kind, source: &text[start..lexer.at], offset_bytes: start });
    }
}

/// What Lucene takes for a space.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{3000}')
}

/// Whether a word can begin with a character. `+` and `-` can also stand inside a word.
pub(super) fn begins_word(c: char) -> bool {
    !is_space(c) && !"+-!():^[]\"{}~*?\\/".contains(c)
}

/// Whether a bound of a range without quotes ends before a character.
fn ends_bound(c: char) -> bool {
    matches!(c, ' ' | ']' | '}')
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fail<T>(&self, problem: QueryProblem, offset_bytes: usize) -> Result<T, QueryError> {
        Err(problem.at(self.text, offset_bytes))
    }

    /// Skips the characters that have a property.
    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_skipped).len();
    }

    fn skip_spaces(&mut self) {
        self.skip(is_space);
    }

    fn token(&mut self, first: char) -> Result<TokenKind<'a>, QueryError> {
        let sign = match first {
            '(' => TokenKind::Open,
            ')' => TokenKind::Close,
            ':' => TokenKind::Colon,
            '+' | '-' | '!' => return Ok(self.operator(first)),
            '^' => return self.boost(),
            '~' => return Ok(self.fuzzy()),
            '"' => return self.quoted().map(TokenKind::Quoted),
            '/' => return self.regex(),
            '[' | '{' => return self.range(first),
            ']' | '}' => {
                let wanted = "an opening bracket before it, or \\ if it is part of a word,";
                return self.fail(QueryProblem::Unexpected { found: first.to_string(), wanted }, self.at);
            }
            _ => return self.word(),
        };
        self.at += first.len_utf8();
        Ok(sign)
    }

    fn operator(&mut self, first: char) -> TokenKind<'a> {
        self.at += 1;
        if self.peek().is_some_and(is_space) {
            return TokenKind::BareOperator;
        }
        match first {
            '+' => TokenKind::Plus,
            '-' => TokenKind::Minus,
            _ => TokenKind::Not,
        }
    }

    /// Digits, and perhaps a dot and more digits.
    fn number(&mut self) -> Option<f32> {
        let start = self.at;
        self.skip(|c| c.is_ascii_digit());
        if self.at == start {
            return None;
        }
        let whole_end = self.at;
        if self.peek() == Some('.') {
            self.at += 1;
            self.skip(|c| c.is_ascii_digit());
            if self.at == whole_end + 1 {
                self.at = whole_end;
            }
        }
        self.text[start..self.at].parse().ok()
    }

    fn boost(&mut self) -> Result<TokenKind<'a>, QueryError> {
        let start = self.at;
        self.at += 1;
        match self.number().filter(|factor| factor.is_finite()) {
            Some(factor) => Ok(TokenKind::Boost(factor)),
            None => self.fail(QueryProblem::BadBoost, start),
        }
    }

    fn fuzzy(&mut self) -> TokenKind<'a> {
        self.at += 1;
        TokenKind::Fuzzy(self.number())
    }

    /// What lies between two of the same character; one with a backslash before it does not count.
    fn delimited(&mut self, delimiter: char) -> Result<&'a str, QueryError> {
        let start = self.at;
        let mut is_escaped = false;
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                c if c == delimiter => {
                    self.at = start + at + 1;
                    return Ok(&self.text[start + 1..start + at]);
                }
                _ => {}
            }
        }
        self.fail(QueryProblem::Unclosed(delimiter), start)
    }

    fn quoted(&mut self) -> Result<&'a str, QueryError> {
        self.delimited('"')
    }

    fn regex(&mut self) -> Result<TokenKind<'a>, QueryError> {
        let start = self.at;
        if self.rest().starts_with("/*") {
            return self.fail(QueryProblem::Comment, start);
        }
        match self.delimited('/')? {
            "" => self.fail(QueryProblem::EmptyRegex, start),
            regex => Ok(TokenKind::Regex(regex)),
        }
    }

    fn word(&mut self) -> Result<TokenKind<'a>, QueryError> {
        let start = self.at;
        let (mut wildcards, mut last) = (0, '\0');
        while let Some(c) = self.peek() {
            let is_inside = begins_word(c) || (self.at > start && matches!(c, '+' | '-'));
            if c == '\\' {
                self.at += 1;
                let Some(escaped) = self.peek() else {
                    return self.fail(QueryProblem::LoneBackslash, self.at - 1);
                };
                self.at += escaped.len_utf8();
                last = '\\';
                continue;
            }
            if matches!(c, '*' | '?') {
                wildcards += 1;
            } else if !is_inside {
                break;
            }
            self.at += c.len_utf8();
            last = c;
        }
        Ok(match (&self.text[start..self.at], wildcards) {
            ("AND" | "&&", _) => TokenKind::And,
            ("OR" | "||", _) => TokenKind::Or,
            ("NOT", _) => TokenKind::Not,
            ("*", _) => TokenKind::Star,
            (_, 0) => TokenKind::Word,
            (_, 1) if last == '*' => TokenKind::Prefix,
            _ => TokenKind::Pattern,
        })
    }

    fn range(&mut self, opening: char) -> Result<TokenKind<'a>, QueryError> {
        let start = self.at;
        if self.rest().starts_with("{!") {
            return self.fail(QueryProblem::LocalParameters, start);
        }
        self.at += 1;
        let from = self.bound(opening, start)?;
        self.skip_spaces_of_range();
        // Lucene takes `[a b]` for `[a TO b]`.
        if self.rest().strip_prefix("TO").is_some_and(|after| after.starts_with(ends_bound)) {
            self.at += 2;
        }
        let to = self.bound(opening, start)?;
        self.skip_spaces_of_range();
        let has_to = match self.peek() {
            Some(']') => true,
            Some('}') => false,
            Some(_) => return self.fail(QueryProblem::BadRange, self.at),
            None => return self.fail(QueryProblem::Unclosed(opening), start),
        };
        self.at += 1;
        Ok(TokenKind::Range(RangeToken { from, to, has_from: opening == '[', has_to }))
    }

    /// Skips the spaces between the parts of a range. Another white space than ` ` begins a bound
    /// there, or is part of one, unless it stands alone.
    fn skip_spaces_of_range(&mut self) {
        while let Some(c) = self.peek().filter(|c| is_space(*c)) {
            let behind = &self.rest()[c.len_utf8()..];
            if c != ' ' && !behind.is_empty() && !behind.starts_with(ends_bound) {
                return;
            }
            self.at += c.len_utf8();
        }
    }

    fn bound(&mut self, opening: char, start: usize) -> Result<RangeBound<'a>, QueryError> {
        self.skip_spaces_of_range();
        let offset_bytes = self.at;
        if self.peek().is_none() {
            return self.fail(QueryProblem::Unclosed(opening), start);
        }
        let rest = self.rest();
        let end = offset_bytes + rest.find(ends_bound).unwrap_or(rest.len());
        // The longer token counts: `"a b"` has quotes, and those of `"a"b` are part of it.
        if rest.starts_with('"')
            && let Ok(text) = self.quoted()
            && self.at >= end
        {
            return Ok(RangeBound { text, is_quoted: true, offset_bytes });
        }
        self.at = end;
        match &self.text[offset_bytes..end] {
            "" | "TO" => self.fail(QueryProblem::BadRange, offset_bytes),
            text => Ok(RangeBound { text, is_quoted: false, offset_bytes }),
        }
    }
}
