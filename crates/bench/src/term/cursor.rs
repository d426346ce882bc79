//! A position in a text, with line and column.

use super::SyntaxError;
use std::str::Chars;

/// A position between two characters.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: Chars<'a>,
    line: usize,
    column: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.chars(), line: 1, column: 1 }
    }

    /// The next character.
    pub fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    /// The character after the next.
    pub fn peek_second(&self) -> Option<char> {
        self.rest.clone().nth(1)
    }

    /// Steps over the next character.
    pub fn bump(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    /// Steps over the next character if it is `wanted`.
    pub fn eat(&mut self, wanted: char) -> bool {
        self.eat_if(|c| c == wanted).is_some()
    }

    /// Steps over the next character if `wanted` accepts it.
    pub fn eat_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        if self.peek().is_some_and(wanted) { self.bump() } else { None }
    }

    /// Steps over the characters of `wanted` if they are next.
    pub fn eat_all(&mut self, wanted: &str) -> bool {
        let found = self.rest.as_str().starts_with(wanted);
        if found {
            for _ in wanted.chars() {
                self.bump();
            }
        }
        found
    }

    /// Steps over white space and comments.
    pub fn skip_space(&mut self) {
        while let Some(c) = self.peek() {
            if c == '%' {
                while self.eat_if(|c| c != '\n').is_some() {}
            } else if is_space(c) {
                self.bump();
            } else {
                return;
            }
        }
    }

    /// Describes the next character for an error message.
    pub fn found(&self) -> String {
        match self.peek() {
            Some(c) => format!("'{}'", c.escape_debug()),
            None => "the end".to_owned(),
        }
    }

    /// An error at this place.
    pub fn wrong(&self, what: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line, column: self.column, what: what.into() }
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

/// Whether Erlang treats the character as white space.
pub fn is_space(c: char) -> bool {
    c <= ' ' || ('\u{80}'..='\u{a0}').contains(&c)
}
