//! Words at changes of case, of letters and digits, and at other characters.

use super::chain::Token;

/// Which parts of words, and which parts together, are words too.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordDelimiter {
    pub(super) has_word_parts: bool,
    pub(super) has_number_parts: bool,
    pub(super) joins_words: bool,
    pub(super) joins_numbers: bool,
    pub(super) joins_all: bool,
    pub(super) keeps_original: bool,
    pub(super) splits_on_case: bool,
    pub(super) splits_on_digits: bool,
    pub(super) strips_possessive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
}

impl WordDelimiter {
    pub(super) fn apply(self, tokens: Vec<Token>) -> Vec<Token> {
        let mut out = Vec::with_capacity(tokens.len());
        // How far the words before have moved what comes behind them.
        let mut shift = 0;
        for token in tokens {
            let parts = self.parts(&token.text);
            let position = token.position + shift;
            if let [(only, _)] = parts[..]
                && only.len() == token.text.len()
            {
                out.push(Token::new(token.text, position));
                continue;
            }
            let from = out.len();
            if self.keeps_original {
                out.push(Token::new(token.text.clone(), position));
            }
            self.push_parts(&parts, position, &mut out);
            out[from..].sort_by_key(|token| token.position);
            shift += u32::try_from(parts.len().saturating_sub(1)).unwrap_or(0);
        }
        out
    }

    fn push_parts(self, parts: &[(&str, Kind)], position: u32, out: &mut Vec<Token>) {
        for ((part, kind), position) in parts.iter().zip(position..) {
            if if *kind == Kind::Word { self.has_word_parts } else { self.has_number_parts } {
                out.push(Token::new((*part).to_owned(), position));
            }
        }
        for (kind, joins) in [(Kind::Word, self.joins_words), (Kind::Number, self.joins_numbers)] {
            let mut at = 0;
            for run in parts.chunk_by(|(_, a), (_, b)| a == b) {
                if joins && run[0].1 == kind && (run.len() > 1 || !self.has(kind)) {
                    let text = run.iter().map(|(part, _)| *part).collect();
                    out.push(Token::new(text, position + at));
                }
                at += u32::try_from(run.len()).unwrap_or(0);
            }
        }
        if self.joins_all && parts.len() > 1 {
            out.push(Token::new(parts.iter().map(|(part, _)| *part).collect(), position));
        }
    }

    fn has(self, kind: Kind) -> bool {
        if kind == Kind::Word { self.has_word_parts } else { self.has_number_parts }
    }

    /// The parts of a word.
    fn parts(self, word: &str) -> Vec<(&str, Kind)> {
        let word = if self.strips_possessive {
            word.strip_suffix("'s").or_else(|| word.strip_suffix("'S")).unwrap_or(word)
        } else {
            word
        };
        let mut parts = Vec::new();
        let mut start = None;
        let mut before: Option<char> = None;
        for (at, c) in word.char_indices() {
            let is_part = c.is_alphanumeric();
            let is_new = match before {
                Some(before) if is_part => self.is_border(before, c),
                _ => false,
            };
            if let Some(from) = start
                && (!is_part || is_new)
            {
                parts.push(part(&word[from..at]));
                start = None;
            }
            if is_part && start.is_none() {
                start = Some(at);
            }
            before = is_part.then_some(c);
        }
        if let Some(from) = start {
            parts.push(part(&word[from..]));
        }
        parts
    }

    fn is_border(self, before: char, c: char) -> bool {
        let is_case = before.is_lowercase() && c.is_uppercase();
        let is_digit = before.is_numeric() != c.is_numeric();
        (is_case && self.splits_on_case) || (is_digit && self.splits_on_digits)
    }
}

fn part(text: &str) -> (&str, Kind) {
    let is_number = text.starts_with(char::is_numeric);
    (text, if is_number { Kind::Number } else { Kind::Word })
}
