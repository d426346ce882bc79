//! The text form of terms: Erlang's `~p`, always on one line.

use super::Term;
use std::fmt::{self, Write};

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            Self::Big(n) => n.fmt(f),
            Self::Float(n) => write!(f, "{n:?}"),
            Self::Atom(name) => fmt_atom(name, f),
            Self::Binary(bytes) => fmt_binary(bytes, f),
            Self::String(bytes) => fmt_char_list(bytes, f),
            Self::Tuple(items) => {
                f.write_char('{')?;
                fmt_separated(items, f)?;
                f.write_char('}')
            }
            Self::List(items) => {
                f.write_char('[')?;
                fmt_separated(items, f)?;
                f.write_char(']')
            }
            Self::ImproperList(items, tail) => {
                f.write_char('[')?;
                fmt_separated(items, f)?;
                write!(f, "|{tail}]")
            }
            Self::Map(pairs) => {
                f.write_str("#{")?;
                for (i, (key, value)) in pairs.iter().enumerate() {
                    write!(f, "{}{key} => {value}", if i > 0 { "," } else { "" })?;
                }
                f.write_char('}')
            }
        }
    }
}

/// Formats bytes as a binary: `<<"text">>`, `<<1,2,3>>` or `<<>>`.
pub struct BinaryText<'a>(pub &'a [u8]);

impl fmt::Display for BinaryText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_binary(self.0, f)
    }
}

/// Formats bytes as a list of characters: `"text"`, `[1,2,3]` or `""`.
pub struct CharListText<'a>(pub &'a [u8]);

impl fmt::Display for CharListText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_char_list(self.0, f)
    }
}

/// Formats a name as an atom, with quotes where Erlang needs them.
pub struct AtomText<'a>(pub &'a str);

impl fmt::Display for AtomText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_atom(self.0, f)
    }
}

/// Formats a text as a string: `"text"`, escaped. Characters beyond ASCII stay unchanged.
pub struct StringText<'a>(pub &'a str);

impl fmt::Display for StringText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.0.chars().try_for_each(|c| fmt_escaped(c, '"', f))?;
        f.write_char('"')
    }
}

fn fmt_separated<T: fmt::Display>(items: &[T], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_char(',')?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

fn fmt_binary(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("<<")?;
    if !bytes.is_empty() && is_printable(bytes) {
        fmt_quoted(bytes, f)?;
    } else {
        fmt_separated(bytes, f)?;
    }
    f.write_str(">>")
}

fn fmt_char_list(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_printable(bytes) {
        return fmt_quoted(bytes, f);
    }
    f.write_char('[')?;
    fmt_separated(bytes, f)?;
    f.write_char(']')
}

/// Whether Erlang treats the bytes as printable Latin-1 text.
pub(in crate::etf) fn is_printable(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| matches!(b, 8..=13 | 27 | 32..=126 | 160..=255))
}

fn fmt_quoted(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    bytes.iter().try_for_each(|&b| fmt_escaped(char::from(b), '"', f))?;
    f.write_char('"')
}

fn fmt_escaped(c: char, quote: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match c {
        '\\' => f.write_str("\\\\"),
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        '\u{8}' => f.write_str("\\b"),
        '\u{b}' => f.write_str("\\v"),
        '\u{c}' => f.write_str("\\f"),
        '\u{1b}' => f.write_str("\\e"),
        c if c == quote => write!(f, "\\{c}"),
        c if c.is_control() => write!(f, "\\x{{{:X}}}", u32::from(c)),
        c => f.write_char(c),
    }
}

const RESERVED: [&str; 29] = [
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case", "catch", "cond", "div",
    "else", "end", "fun", "if", "let", "maybe", "not", "of", "or", "orelse", "receive", "rem", "try", "when", "xor",
];

fn fmt_atom(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let bare = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@')
        && !RESERVED.contains(&name);
    if bare {
        return f.write_str(name);
    }
    f.write_char('\'')?;
    name.chars().try_for_each(|c| fmt_escaped(c, '\'', f))?;
    f.write_char('\'')
}
