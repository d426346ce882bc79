//! Parses Erlang terms from text.

use super::Term;
use super::cursor::{Cursor, is_space};
use std::borrow::Cow;

/// How deep tuples, lists and binaries may be nested. Published configurations stay below ten.
pub const DEPTH_MAX: usize = 100;

/// A syntax error with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {what}")]
pub struct SyntaxError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What was found, and what would be right.
    pub what: String,
}

/// A term of a file with the position where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The term.
    pub term: Term,
}

/// Parses a sequence of terms, each followed by a full stop. Bytes that are not UTF-8 are read as
/// Latin-1, as in old Erlang files.
pub fn read(bytes: &[u8]) -> Result<Vec<Placed>, SyntaxError> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect::<String>()),
    };
    let mut reader = Reader { cursor: Cursor::new(&text) };
    let mut terms = Vec::new();
    loop {
        reader.cursor.skip_space();
        if reader.cursor.peek().is_none() {
            return Ok(terms);
        }
        let (line, column) = (reader.cursor.line(), reader.cursor.column());
        let term = reader.term(0)?;
        reader.full_stop()?;
        terms.push(Placed { line, column, term });
    }
}

/// Parses one term. The full stop is optional.
pub fn read_one(text: &str) -> Result<Term, SyntaxError> {
    let mut reader = Reader { cursor: Cursor::new(text) };
    reader.cursor.skip_space();
    let term = reader.term(0)?;
    reader.cursor.skip_space();
    if reader.cursor.peek() == Some('.') {
        reader.full_stop()?;
        reader.cursor.skip_space();
    }
    match reader.cursor.peek() {
        None => Ok(term),
        Some(_) => Err(reader.cursor.wrong(format!("one term is wanted, but {} follows it", reader.cursor.found()))),
    }
}

const BINARY: &str = "a binary is made of strings and of numbers from 0 to 255: <<\"a\",0>>";

struct Reader<'a> {
    cursor: Cursor<'a>,
}

impl Reader<'_> {
    /// Parses the term that begins at the next character.
    fn term(&mut self, depth: usize) -> Result<Term, SyntaxError> {
        if depth > DEPTH_MAX {
            return Err(self.cursor.wrong(format!("terms nest deeper than {DEPTH_MAX}")));
        }
        match self.cursor.peek() {
            Some('{') => self.elements('}', depth).map(Term::Tuple),
            Some('[') => self.elements(']', depth).map(Term::List),
            Some('<') => self.binary(),
            Some('"') => self.strings().map(Term::Text),
            Some('\'') => self.quoted('\'').map(Term::Atom),
            Some('$' | '+' | '-') => self.number(),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some(c) if c.is_lowercase() => Ok(Term::Atom(self.word())),
            Some(c) if c.is_uppercase() || c == '_' => {
                let (start, name) = (self.cursor.clone(), self.word());
                Err(start
                    .wrong(format!("{name} is a variable, and a configuration has none; an atom would be '{name}'")))
            }
            Some('#') => Err(self.cursor.wrong("maps and records are not allowed in a configuration")),
            _ => Err(self.cursor.wrong(format!("a term was expected, not {}", self.cursor.found()))),
        }
    }

    /// Parses the elements between brackets.
    fn elements(&mut self, close: char, depth: usize) -> Result<Vec<Term>, SyntaxError> {
        let open = self.cursor.clone();
        self.cursor.bump();
        self.cursor.skip_space();
        let mut elements = Vec::new();
        if self.cursor.eat(close) {
            return Ok(elements);
        }
        loop {
            elements.push(self.term(depth + 1)?);
            self.cursor.skip_space();
            if self.cursor.eat(close) {
                return Ok(elements);
            }
            if !self.cursor.eat(',') {
                return Err(self.no_comma(close, &open));
            }
            self.cursor.skip_space();
            if self.cursor.peek() == Some(close) {
                return Err(self.cursor.wrong(format!("an element was expected after ',', not '{close}'")));
            }
        }
    }

    fn no_comma(&self, close: char, open: &Cursor<'_>) -> SyntaxError {
        match self.cursor.peek() {
            None => open.wrong(format!("this is never closed with '{close}'")),
            Some('|') if close == ']' => self.cursor.wrong("a list with a tail is not understood; write its elements"),
            Some(_) => self.cursor.wrong(format!("',' or '{close}' was expected, not {}", self.cursor.found())),
        }
    }

    /// Parses a binary `<<…>>`.
    fn binary(&mut self) -> Result<Term, SyntaxError> {
        if !self.cursor.eat_all("<<") {
            return Err(self.cursor.wrong("'<' begins a binary as in <<\"bytes\">>; nothing else does"));
        }
        self.cursor.skip_space();
        let mut bytes = Vec::new();
        if self.cursor.eat_all(">>") {
            return Ok(Term::Binary(bytes));
        }
        loop {
            self.segment(&mut bytes)?;
            self.cursor.skip_space();
            if self.cursor.eat_all(">>") {
                return Ok(Term::Binary(bytes));
            }
            if !self.cursor.eat(',') {
                return Err(self.cursor.wrong(format!("',' or '>>' was expected, not {}", self.cursor.found())));
            }
            self.cursor.skip_space();
        }
    }

    /// Parses a segment of a binary: a string or a number. Erlang keeps the low eight bits of each.
    fn segment(&mut self, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let start = self.cursor.clone();
        let text = match self.cursor.peek() {
            Some('"') => Some(self.strings()?),
            Some(c) if c.is_ascii_digit() || matches!(c, '$' | '+' | '-') => None,
            _ => return Err(start.wrong(BINARY)),
        };
        if text.is_none() {
            bytes.push(self.number()?.as_integer().ok_or_else(|| start.wrong(BINARY))? as u8);
        }
        self.cursor.skip_space();
        let utf8 = match (self.cursor.peek(), &text) {
            (Some(':'), _) => {
                return Err(self.cursor.wrong("segments with a size are not understood; write the bytes"));
            }
            (Some('/'), Some(_)) if self.cursor.eat_all("/utf8") => true,
            (Some('/'), _) => {
                return Err(self
                    .cursor
                    .wrong("of the types of segments only a string's /utf8 is understood; write the bytes"));
            }
            _ => false,
        };
        match text {
            Some(text) if utf8 => bytes.extend(text.bytes()),
            Some(text) => bytes.extend(text.chars().map(|c| c as u32 as u8)),
            None => {}
        }
        Ok(())
    }

    /// Parses one or more strings. Adjacent strings are one string.
    fn strings(&mut self) -> Result<String, SyntaxError> {
        let mut text = String::new();
        while self.cursor.peek() == Some('"') {
            text.push_str(&self.quoted('"')?);
            self.cursor.skip_space();
        }
        Ok(text)
    }

    fn quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let open = self.cursor.clone();
        self.cursor.bump();
        let mut text = String::new();
        loop {
            match self.cursor.peek() {
                None => return Err(open.wrong(format!("this is never closed with {quote}"))),
                Some('\\') => text.push(self.escape()?),
                Some(c) => {
                    self.cursor.bump();
                    if c == quote {
                        return Ok(text);
                    }
                    text.push(c);
                }
            }
        }
    }

    /// Parses an escape sequence.
    fn escape(&mut self) -> Result<char, SyntaxError> {
        let start = self.cursor.clone();
        self.cursor.bump();
        let Some(c) = self.cursor.peek() else {
            return Err(start.wrong("nothing follows the backslash"));
        };
        if c.is_digit(8) {
            let value = self.digits_of(8, 3);
            return char::from_u32(value).ok_or_else(|| start.wrong("this is not a character"));
        }
        self.cursor.bump();
        let control = |code: u8| Ok(char::from(code));
        match c {
            'b' => control(8),
            'd' => control(127),
            'e' => control(27),
            'f' => control(12),
            'n' => control(10),
            'r' => control(13),
            's' => control(32),
            't' => control(9),
            'v' => control(11),
            'x' => self.hexadecimal(&start),
            '^' => match self.cursor.bump() {
                Some(c @ ('@'..='_' | 'a'..='z')) => control(c as u8 & 31),
                Some('?') => control(127),
                _ => Err(start.wrong("a control character is \\^@ to \\^_")),
            },
            itself => Ok(itself),
        }
    }

    /// Parses the rest of `\x41` or `\x{41}`, behind the `x`.
    fn hexadecimal(&mut self, start: &Cursor<'_>) -> Result<char, SyntaxError> {
        let braces = self.cursor.eat('{');
        let digits_max = if braces { 7 } else { 2 };
        let before = self.cursor.column();
        let value = self.digits_of(16, digits_max);
        let digits = self.cursor.column() - before;
        let closed = if braces { digits > 0 && self.cursor.eat('}') } else { digits == 2 };
        char::from_u32(value)
            .filter(|_| closed)
            .ok_or_else(|| start.wrong("a character in hexadecimal is \\x41 or \\x{41}"))
    }

    /// The value of at most `digits_max` digits, which are few enough not to overflow.
    fn digits_of(&mut self, radix: u32, digits_max: usize) -> u32 {
        let mut value = 0;
        for _ in 0..digits_max {
            let Some(digit) = self.cursor.peek().and_then(|c| c.to_digit(radix)) else { break };
            self.cursor.bump();
            value = value * radix + digit;
        }
        value
    }

    /// Parses an atom without quotes, or a variable.
    fn word(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.cursor.eat_if(|c| c.is_alphanumeric() || matches!(c, '_' | '@')) {
            name.push(c);
        }
        name
    }

    /// Parses a number such as `42`, `-1_000`, `16#ff`, `1.0e-3` or `$a`.
    fn number(&mut self) -> Result<Term, SyntaxError> {
        let start = self.cursor.clone();
        let negative = self.cursor.peek() == Some('-');
        if self.cursor.eat_if(|c| matches!(c, '+' | '-')).is_some() {
            self.cursor.skip_space();
        }
        if self.cursor.eat('$') {
            return self.character(negative);
        }
        let mut digits = self.digits(10);
        if digits.is_empty() {
            return Err(self.cursor.wrong(format!("a number was expected, not {}", self.cursor.found())));
        }
        if self.cursor.peek() == Some('.') && self.cursor.peek_second().is_some_and(|c| c.is_ascii_digit()) {
            self.fraction(&mut digits, &start)?;
            let number: f64 = digits.parse().map_err(|_| start.wrong("this is not a number"))?;
            if !number.is_finite() {
                return Err(start.wrong("this number is too large for a float"));
            }
            return Ok(Term::Float(if negative { -number } else { number }));
        }
        let radix = if self.cursor.eat('#') {
            let radix = digits.parse().ok().filter(|radix| (2..=36).contains(radix));
            digits = self.digits(radix.ok_or_else(|| start.wrong("a base is 2 to 36"))?);
            radix.unwrap_or(10)
        } else {
            10
        };
        self.number_ends(&start)?;
        integer(&digits, radix, negative).map(Term::Integer).map_err(|what| start.wrong(what))
    }

    /// Parses the character behind `$`.
    fn character(&mut self, negative: bool) -> Result<Term, SyntaxError> {
        let c = match self.cursor.peek() {
            Some('\\') => self.escape()?,
            Some(c) => {
                self.cursor.bump();
                c
            }
            None => return Err(self.cursor.wrong("'$' is followed by a character, as in $a")),
        };
        let code = i128::from(u32::from(c));
        Ok(Term::Integer(if negative { -code } else { code }))
    }

    /// Parses the point, the digits after it, and the exponent.
    fn fraction(&mut self, digits: &mut String, start: &Cursor<'_>) -> Result<(), SyntaxError> {
        self.cursor.bump();
        digits.push('.');
        digits.push_str(&self.digits(10));
        if self.cursor.eat_if(|c| matches!(c, 'e' | 'E')).is_some() {
            digits.push('e');
            digits.extend(self.cursor.eat_if(|c| matches!(c, '+' | '-')));
            let exponent = self.digits(10);
            if exponent.is_empty() {
                return Err(self.cursor.wrong("an exponent has digits: 1.0e-3"));
            }
            digits.push_str(&exponent);
        }
        self.number_ends(start)
    }

    /// Parses digits and drops the underscores between them.
    fn digits(&mut self, radix: u32) -> String {
        let mut digits = String::new();
        while let Some(c) = self.cursor.peek() {
            let between =
                c == '_' && !digits.is_empty() && self.cursor.peek_second().is_some_and(|c| c.is_digit(radix));
            if c.is_digit(radix) {
                digits.push(c);
            } else if !between {
                break;
            }
            self.cursor.bump();
        }
        digits
    }

    fn number_ends(&self, start: &Cursor<'_>) -> Result<(), SyntaxError> {
        match self.cursor.peek() {
            Some('e' | 'E') => Err(start.wrong("a float has digits on both sides of its point: 1.0e3")),
            Some(c) if c.is_alphanumeric() || c == '_' => {
                Err(self.cursor.wrong(format!("{} cannot be part of this number", self.cursor.found())))
            }
            _ => Ok(()),
        }
    }

    /// Parses the full stop that ends a term in a file. White space, a comment or the end of the
    /// file must follow it.
    fn full_stop(&mut self) -> Result<(), SyntaxError> {
        self.cursor.skip_space();
        if self.cursor.peek() != Some('.') {
            return Err(self.cursor.wrong(format!("'.' was expected after the term, not {}", self.cursor.found())));
        }
        self.cursor.bump();
        match self.cursor.peek() {
            Some(c) if !is_space(c) && c != '%' => {
                Err(self.cursor.wrong(format!("white space was expected after '.', not {}", self.cursor.found())))
            }
            _ => Ok(()),
        }
    }
}

fn integer(digits: &str, radix: u32, negative: bool) -> Result<i128, String> {
    if digits.is_empty() {
        return Err(format!("digits of base {radix} were expected after '#'"));
    }
    let sign = if negative { "-" } else { "" };
    i128::from_str_radix(&format!("{sign}{digits}"), radix).map_err(|_| "this number has more than 127 bits".to_owned())
}
