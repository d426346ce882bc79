//! Terms on their way to the library.
//!
//! The library splits texts itself. The terms of a document are made before, so they come as one
//! text that says where each begins: `length position term`, one behind the other.

use std::fmt::Write;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// The last position that a term can have. Terms behind it share it.
const POSITION_MAX: u32 = 1 << 30;

/// Terms of a document.
#[derive(Debug, Default)]
pub(crate) struct EncodedTerms(String);

impl EncodedTerms {
    /// Adds a term, which comes in two pieces.
    pub(crate) fn push(&mut self, position: u32, prefix: &str, rest: &str) {
        let position = position.min(POSITION_MAX);
        // Writing to a text does not fail.
        let _ = write!(self.0, "{} {position} {prefix}{rest}", prefix.len() + rest.len());
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads what [`EncodedTerms`] wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct TermReader;

pub(crate) struct TermStream<'a> {
    rest: &'a str,
    token: Token,
}

impl Tokenizer for TermReader {
    type TokenStream<'a> = TermStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermStream<'a> {
        TermStream { rest: text, token: Token::default() }
    }
}

impl TermStream<'_> {
    fn read(&mut self) -> Option<()> {
        let (length, rest) = self.rest.split_once(' ')?;
        let (position, rest) = rest.split_once(' ')?;
        let (term, rest) = rest.split_at_checked(length.parse().ok()?)?;
        self.token.position = position.parse().ok()?;
        self.token.text.clear();
        self.token.text.push_str(term);
        self.rest = rest;
        Some(())
    }
}

impl TokenStream for TermStream<'_> {
    fn advance(&mut self) -> bool {
        self.read().is_some()
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_come_back_whatever_is_in_them() {
        let mut terms = EncodedTerms::default();
        terms.push(0, "va\0", "x y");
        terms.push(7, "va\0", "");
        terms.push(u32::MAX, "", "3 4 é");
        let mut reader = TermReader;
        let mut stream = reader.token_stream(terms.as_str());
        let mut read = Vec::new();
        while let Some(token) = stream.next() {
            read.push((token.position, token.text.clone()));
        }
        assert_eq!(read, [(0, "va\0x y".into()), (7, "va\0".into()), (1 << 30, "3 4 é".into())]);
    }
}
