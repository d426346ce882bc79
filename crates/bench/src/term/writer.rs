//! Writes Erlang terms as text.

use super::Term;
use std::fmt::{self, Display, Formatter, Write};

/// Reserved words, which are atoms only in quotes.
const RESERVED: [&str; 29] = [
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case", "catch", "cond", "div",
    "else", "end", "fun", "if", "let", "maybe", "not", "of", "or", "orelse", "receive", "rem", "try", "when", "xor",
];

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write_float(f, *number),
            Self::Atom(name) if is_plain(name) => f.write_str(name),
            Self::Atom(name) => write_quoted(f, name.chars(), '\''),
            Self::Text(text) => write_quoted(f, text.chars(), '"'),
            Self::Binary(bytes) => write_binary(f, bytes),
            Self::Tuple(elements) => write_elements(f, elements, ['{', '}']),
            Self::List(elements) => write_elements(f, elements, ['[', ']']),
        }
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '@'))
        && !RESERVED.contains(&name)
}

/// Writes a float. Erlang demands digits on both sides of the point, also before an exponent.
fn write_float(f: &mut Formatter<'_>, number: f64) -> fmt::Result {
    let text = format!("{number:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => write!(f, "{mantissa}.0e{exponent}"),
        _ => f.write_str(&text),
    }
}

fn write_quoted(f: &mut Formatter<'_>, text: impl Iterator<Item = char>, quote: char) -> fmt::Result {
    f.write_char(quote)?;
    for c in text {
        match c {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c == quote || c == '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\x{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char(quote)
}

fn write_binary(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("<<")?;
    if !bytes.is_empty() && bytes.iter().all(|b| matches!(b, b' '..=b'~')) {
        write_quoted(f, bytes.iter().copied().map(char::from), '"')?;
    } else {
        for (i, byte) in bytes.iter().enumerate() {
            write!(f, "{}{byte}", if i == 0 { "" } else { "," })?;
        }
    }
    f.write_str(">>")
}

fn write_elements(f: &mut Formatter<'_>, elements: &[Term], [open, close]: [char; 2]) -> fmt::Result {
    f.write_char(open)?;
    for (i, element) in elements.iter().enumerate() {
        write!(f, "{}{element}", if i == 0 { "" } else { ", " })?;
    }
    f.write_char(close)
}
