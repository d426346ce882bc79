//! The text of a query. Every clause has its field, and `+` or `-` where it is required or
//! prohibited, so the text means the same whatever the default field is, with the default operator
//! OR.

use super::token::begins_word;
use super::tree::{Clause, Occur, Query};
use super::wildcard::{Wildcard, WildcardPiece};
use std::fmt::{self, Display, Formatter, Write};
use std::ops::Bound;

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*:*"),
            Self::Exists { field } => write!(f, "{}:*", Escaped(field)),
            Self::Term { field, text } => write!(f, "{}:{}", Escaped(field), Escaped(text)),
            Self::Phrase { field, text, slop } => {
                write!(f, "{}:{}", Escaped(field), Quoted(text))?;
                if *slop == 0 { Ok(()) } else { write!(f, "~{slop}") }
            }
            Self::Prefix { field, text } => write!(f, "{}:{}*", Escaped(field), Escaped(text)),
            Self::Wildcard { field, pattern } => write!(f, "{}:{pattern}", Escaped(field)),
            Self::Fuzzy { field, text, edits } => write!(f, "{}:{}~{edits}", Escaped(field), Escaped(text)),
            Self::Regex { field, regex } => write!(f, "{}:/{}/", Escaped(field), regex.source()),
            Self::Range { field, from, to } => {
                let opening = if matches!(from, Bound::Excluded(_)) { '{' } else { '[' };
                let closing = if matches!(to, Bound::Excluded(_)) { '}' } else { ']' };
                write!(f, "{}:{opening}{} TO {}{closing}", Escaped(field), Limit(from), Limit(to))
            }
            Self::Group(clauses) => {
                for (place, clause) in clauses.iter().enumerate() {
                    if place > 0 {
                        f.write_char(' ')?;
                    }
                    write!(f, "{clause}")?;
                }
                Ok(())
            }
            Self::Boosted { query, factor } => write!(f, "{}^{factor}", Inner(query)),
        }
    }
}

impl Display for Clause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.occur {
            Occur::Optional => "",
            Occur::Required => "+",
            Occur::Prohibited => "-",
        })?;
        write!(f, "{}", Inner(&self.query))
    }
}

/// A query inside another one: a group has parentheses there.
struct Inner<'a>(&'a Query);

impl Display for Inner<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Query::Group(_) => write!(f, "({})", self.0),
            other => write!(f, "{other}"),
        }
    }
}

/// A text as a word.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if matches!(self.0, "AND" | "OR" | "NOT" | "&&" | "||") {
            f.write_char('\\')?;
        }
        for c in self.0.chars() {
            if !begins_word(c) {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        Ok(())
    }
}

/// A text in quotes.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

/// A bound of a range.
struct Limit<'a>(&'a Bound<String>);

impl Display for Limit<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Bound::Unbounded => f.write_char('*'),
            Bound::Included(text) | Bound::Excluded(text) => {
                let is_simple = text != "TO" && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_'));
                if is_simple && !text.is_empty() { f.write_str(text) } else { write!(f, "{}", Quoted(text)) }
            }
        }
    }
}

impl Display for Wildcard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.pieces().iter().try_for_each(|piece| match piece {
            WildcardPiece::Any => f.write_char('*'),
            WildcardPiece::One => f.write_char('?'),
            WildcardPiece::Text(text) => write!(f, "{}", Escaped(text)),
        })
    }
}
