//! Reads JSON as leniently as Riak's library, mochijson2.
//!
//! Beyond the standard it takes: a backslash before any other character, of which both stay;
//! control characters in texts; one comma behind the last element or member; and numbers and words
//! as names of members, which become texts. It takes neither comments nor a byte order mark nor
//! anything but white space behind the value. An exponent needs no point, and a point needs digits
//! on both sides. A text is a sequence of characters, so half a surrogate pair is refused.

use super::Json;
use crate::decode_budget::{DecodeBudget, TooLarge, allocated};
use num_bigint::BigInt;
use std::fmt;

/// How deep arrays and objects nest at most.
const DEPTH_MAX: usize = 128;
/// The maximum number of characters of an integer: the time to read one grows with their square.
const INTEGER_CHARS_MAX: usize = 4096;

/// Why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadJson {
    /// What is wrong.
    pub kind: BadJsonKind,
    /// The line in which it is wrong, beginning with 1.
    pub line: usize,
    /// The byte in that line, beginning with 1.
    pub column: usize,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadJsonKind {
    /// The text is not UTF-8.
    NotUtf8,
    /// The text ends before the value does.
    UnexpectedEnd,
    /// There is something else than a value, or what belongs between values.
    Unexpected,
    /// There is something behind the value.
    TrailingText,
    /// A backslash and `u` have no four hexadecimal digits behind them, or name no character.
    BadEscape,
    /// A number has no digits where it needs some.
    BadNumber,
    /// A number is too large for a float, or an integer has more digits than are read.
    NumberTooLarge,
    /// Arrays and objects are nested too deep.
    TooDeep,
    /// The values would take more memory than allowed, in bytes.
    TooLarge {
        /// The number of bytes that were allowed.
        bytes_max: usize,
    },
}

impl From<TooLarge> for BadJsonKind {
    fn from(TooLarge { bytes_max }: TooLarge) -> Self {
        Self::TooLarge { bytes_max }
    }
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            BadJsonKind::NotUtf8 => "invalid UTF-8",
            BadJsonKind::UnexpectedEnd => "unexpected end",
            BadJsonKind::Unexpected => "unexpected character",
            BadJsonKind::TrailingText => "text behind the value",
            BadJsonKind::BadEscape => "bad escape of a character",
            BadJsonKind::BadNumber => "bad number",
            BadJsonKind::NumberTooLarge => "number too large",
            BadJsonKind::TooDeep => "nested too deep",
            BadJsonKind::TooLarge { bytes_max } => {
                return write!(
                    f,
                    "the values take more than {bytes_max} bytes of memory at line {} column {}: many small values \
                     take many times their text, so send fewer of them at once",
                    self.line, self.column
                );
            }
        };
        write!(f, "{what} at line {} column {}", self.line, self.column)
    }
}

impl std::error::Error for BadJson {}

/// Takes the elements of an array one after the other. What it keeps of them it counts itself.
pub type Visit<'a> = dyn FnMut(Json, &mut DecodeBudget) -> Result<(), TooLarge> + 'a;

/// The array whose elements are visited: the value of the first member with this name of the
/// outermost object.
pub(super) struct Visited<'a, 'v> {
    pub(super) name: &'a str,
    pub(super) visit: &'a mut Visit<'v>,
}

pub(super) fn read(text: &[u8], budget: &mut DecodeBudget, visited: Option<Visited<'_, '_>>) -> Result<Json, BadJson> {
    let found = match std::str::from_utf8(text) {
        Err(error) => Err((BadJsonKind::NotUtf8, error.valid_up_to())),
        Ok(utf8) => {
            let mut reader = Reader { text: utf8, at: 0, budget, visited };
            reader.document().map_err(|kind| (kind, reader.at))
        }
    };
    found.map_err(|(kind, at)| {
        let before = &text[..at.min(text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        BadJson { kind, line, column: 1 + before.len() - line_start }
    })
}

struct Reader<'a, 'v> {
    text: &'a str,
    at: usize,
    budget: &'a mut DecodeBudget,
    /// `None` as soon as the array was found.
    visited: Option<Visited<'a, 'v>>,
}

type Read<T> = Result<T, BadJsonKind>;

impl Reader<'_, '_> {
    fn document(&mut self) -> Read<Json> {
        let value = self.value(DEPTH_MAX)?;
        match self.next_token() {
            None => Ok(value),
            Some(_) => Err(BadJsonKind::TrailingText),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space, and returns the byte behind it.
    fn next_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    /// Takes a byte if it is next.
    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.next_token() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn unexpected<T>(&self) -> Read<T> {
        Err(if self.peek().is_some() { BadJsonKind::Unexpected } else { BadJsonKind::UnexpectedEnd })
    }

    fn value(&mut self, depth_left: usize) -> Read<Json> {
        match self.next_token() {
            Some(open @ (b'[' | b'{')) => {
                let Some(depth_left) = depth_left.checked_sub(1) else { return Err(BadJsonKind::TooDeep) };
                self.at += 1;
                if open == b'[' { self.list(depth_left) } else { self.object(depth_left) }
            }
            _ => self.scalar(),
        }
    }

    fn list(&mut self, depth_left: usize) -> Read<Json> {
        let mut items = Vec::new();
        loop {
            if self.takes(b']') {
                return Ok(Json::List(items));
            }
            let item = self.value(depth_left)?;
            self.budget.push(&mut items, item)?;
            if !self.takes(b',') {
                return if self.takes(b']') { Ok(Json::List(items)) } else { self.unexpected() };
            }
        }
    }

    /// Visits the elements of the array that is next.
    fn visit(&mut self, visit: &mut Visit<'_>, depth_left: usize) -> Read<Json> {
        let Some(depth_left) = depth_left.checked_sub(1) else { return Err(BadJsonKind::TooDeep) };
        self.at += 1;
        loop {
            if self.takes(b']') {
                return Ok(Json::List(Vec::new()));
            }
            let before = self.budget.bytes_used();
            let item = self.value(depth_left)?;
            let bytes = self.budget.bytes_used() - before;
            visit(item, self.budget)?;
            self.budget.give(bytes);
            if !self.takes(b',') {
                return if self.takes(b']') { Ok(Json::List(Vec::new())) } else { self.unexpected() };
            }
        }
    }

    /// The value of a member of an object.
    fn member(&mut self, name: &str, depth_left: usize) -> Read<Json> {
        // An object within others has less depth left than the outermost one.
        let is_outermost = depth_left + 1 == DEPTH_MAX;
        match self.visited.take_if(|visited| is_outermost && visited.name == name) {
            Some(visited) if self.next_token() == Some(b'[') => self.visit(visited.visit, depth_left),
            _ => self.value(depth_left),
        }
    }

    fn object(&mut self, depth_left: usize) -> Read<Json> {
        let mut members = Vec::new();
        loop {
            if self.takes(b'}') {
                return Ok(Json::Object(members));
            }
            self.next_token();
            let name = match self.scalar()? {
                Json::Text(name) => name,
                other => {
                    let name = other.to_string();
                    self.budget.take(allocated(name.capacity()))?;
                    name
                }
            };
            if !self.takes(b':') {
                return self.unexpected();
            }
            let value = self.member(&name, depth_left)?;
            self.budget.push(&mut members, (name, value))?;
            if !self.takes(b',') {
                return if self.takes(b'}') { Ok(Json::Object(members)) } else { self.unexpected() };
            }
        }
    }

    /// A text, a number or a word.
    fn scalar(&mut self) -> Read<Json> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.quoted().map(Json::Text)
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let words = [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
                let rest = self.text.get(self.at..).unwrap_or_default();
                match words.into_iter().find(|(word, _)| rest.starts_with(word)) {
                    Some((word, value)) => {
                        self.at += word.len();
                        Ok(value)
                    }
                    None => self.unexpected(),
                }
            }
        }
    }

    /// A text behind its first quote.
    fn quoted(&mut self) -> Read<String> {
        let from = self.at;
        let has_escapes = loop {
            match self.peek() {
                None => return Err(BadJsonKind::UnexpectedEnd),
                Some(b'"') => break false,
                Some(b'\\') => break true,
                Some(_) => self.at += 1,
            }
        };
        // An escape is never shorter than what it stands for.
        let length = if has_escapes { self.length_of_quoted(from) } else { self.at - from };
        self.budget.take(allocated(length))?;
        let mut out = String::with_capacity(length);
        let mut copied = from;
        loop {
            let copy = |end: usize, out: &mut String| out.push_str(self.text.get(copied..end).unwrap_or_default());
            match self.peek() {
                None => return Err(BadJsonKind::UnexpectedEnd),
                Some(b'"') => {
                    copy(self.at, &mut out);
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    copy(self.at, &mut out);
                    self.at += 1;
                    self.escape(&mut out)?;
                    copied = self.at;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// The bytes of a quoted text up to its last quote.
    fn length_of_quoted(&self, from: usize) -> usize {
        let bytes = self.text.as_bytes().get(from..).unwrap_or_default();
        let mut is_escaped = false;
        let end = bytes.iter().position(|byte| {
            let is_end = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            is_end
        });
        // A text without an end may have a bad escape before.
        end.unwrap_or(bytes.len())
    }

    /// What is behind a backslash.
    fn escape(&mut self, out: &mut String) -> Read<()> {
        let char = match self.peek() {
            Some(quoted @ (b'"' | b'\\' | b'/')) => char::from(quoted),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            // With less behind it, Riak does not take it for the number of a character.
            Some(b'u') if self.text.len() - self.at > 4 => {
                self.at += 1;
                out.push(self.numbered()?);
                return Ok(());
            }
            _ => {
                out.push('\\');
                return Ok(());
            }
        };
        self.at += 1;
        out.push(char);
        Ok(())
    }

    /// A character by its number in UTF-16: four digits, or two times four.
    fn numbered(&mut self) -> Read<char> {
        let first = self.hex()?;
        let code = match first {
            0xD800..=0xDBFF => {
                let has_second = self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u"));
                self.at += if has_second { 2 } else { 0 };
                let second = if has_second { self.hex()? } else { 0 };
                match second {
                    0xDC00..=0xDFFF => 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                    _ => return Err(BadJsonKind::BadEscape),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or(BadJsonKind::BadEscape)
    }

    fn hex(&mut self) -> Read<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or(BadJsonKind::BadEscape)?;
        self.at += 4;
        Ok(number)
    }

    fn number(&mut self) -> Read<Json> {
        let from = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => _ = self.digits(),
            _ => return Err(BadJsonKind::BadNumber),
        }
        let whole = self.at;
        let behind = self.text.as_bytes().get(self.at + 1);
        if self.peek() == Some(b'.') && behind.is_some_and(u8::is_ascii_digit) {
            self.at += 1;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(BadJsonKind::BadNumber);
            }
        }
        let text = self.text.get(from..self.at).unwrap_or_default();
        if self.at > whole {
            let float = text.parse::<f64>().ok().filter(|float| float.is_finite());
            return float.map(Json::Float).ok_or(BadJsonKind::NumberTooLarge);
        }
        if let Ok(n) = text.parse() {
            return Ok(Json::Int(n));
        }
        self.budget.take(allocated(text.len()))?;
        let big = if text.len() <= INTEGER_CHARS_MAX { BigInt::parse_bytes(text.as_bytes(), 10) } else { None };
        big.map(Json::Big).ok_or(BadJsonKind::NumberTooLarge)
    }

    /// Skips digits, and counts them.
    fn digits(&mut self) -> usize {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - from
    }
}
