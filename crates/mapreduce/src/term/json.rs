//! Terms as JSON and back, as Riak's library (mochijson2) writes and reads them.
//!
//! | JSON | term |
//! | --- | --- |
//! | object | `{struct,[{Name,Value}]}` |
//! | array | list |
//! | string | binary |
//! | `true`, `false`, `null` | atoms |
//!
//! When terms are written, a list that begins with a pair is an object as well, and other atoms are
//! strings. Terms without a JSON form are errors.

use ombak_types::etf::Term;
use ombak_types::json::{self, Json};
use serde_json::Value;
use std::fmt::Write;

/// A term has no JSON form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotJson {
    /// A tuple, map, improper list or infinite number.
    #[error("{{json_encode,{{bad_term,{0}}}}}")]
    BadTerm(String),
    /// A binary that is not UTF-8.
    #[error("bad_utf8_character_code")]
    BadUtf8,
}

/// The maximum length of a term's text in an error.
const TERM_TEXT_CHARS_MAX: usize = 200;

/// The term of a JSON value.
pub fn from_json(value: &Json) -> Term {
    match value {
        Json::Null => Term::atom("null"),
        Json::Bool(true) => Term::atom("true"),
        Json::Bool(false) => Term::atom("false"),
        Json::Int(n) => Term::Int(*n),
        Json::Big(n) => Term::from(n.clone()),
        Json::Float(n) => Term::Float(*n),
        Json::Text(text) => Term::binary(text.as_bytes()),
        Json::List(items) => Term::from_list(items.iter().map(from_json).collect()),
        Json::Object(members) => {
            let pairs = members.iter().map(|(name, value)| Term::pair(Term::binary(name.as_bytes()), from_json(value)));
            Term::pair(Term::atom("struct"), Term::List(pairs.collect()))
        }
    }
}

/// The JSON text of a term.
pub fn to_json(term: &Term) -> Result<String, NotJson> {
    let mut out = String::new();
    write_json(term, &mut out)?;
    Ok(out)
}

/// The JSON text of a list of terms. A list that begins with a pair is an object.
pub(crate) fn list_to_json(items: &[Term]) -> Result<String, NotJson> {
    let mut out = String::new();
    write_list(items, &mut out)?;
    Ok(out)
}

fn write_list(items: &[Term], out: &mut String) -> Result<(), NotJson> {
    match items.first() {
        Some(Term::Tuple(pair)) if pair.len() == 2 && !is_tagged(&pair[0]) => write_object(items, out),
        _ => write_array(items, out),
    }
}

/// Appends the JSON text of a term.
fn write_json(term: &Term, out: &mut String) -> Result<(), NotJson> {
    match term {
        Term::Int(n) => write_display(n, out),
        Term::Big(n) => write_display(n, out),
        Term::Float(n) if n.is_finite() => write_display(&Value::from(*n), out),
        Term::Atom(name) if matches!(&**name, "true" | "false" | "null") => out.push_str(name),
        Term::Atom(name) => write_text(name, out),
        Term::Binary(bytes) => write_text(std::str::from_utf8(bytes).map_err(|_| NotJson::BadUtf8)?, out),
        Term::String(bytes) => write_display(&Value::from(bytes.to_vec()), out),
        Term::List(items) => write_list(items, out)?,
        Term::Tuple(pair) => match pair.as_slice() {
            [Term::Atom(tag), Term::List(members)] if &**tag == "struct" => write_object(members, out)?,
            [Term::Atom(tag), Term::List(items)] if &**tag == "array" => write_array(items, out)?,
            _ => return Err(bad_term(term)),
        },
        Term::Float(_) | Term::ImproperList(..) | Term::Map(_) => return Err(bad_term(term)),
    }
    Ok(())
}

fn is_tagged(first: &Term) -> bool {
    matches!(first.as_atom(), Some("struct" | "array" | "json"))
}

fn bad_term(term: &Term) -> NotJson {
    NotJson::BadTerm(term.to_string().chars().take(TERM_TEXT_CHARS_MAX).collect())
}

fn write_display(value: &dyn std::fmt::Display, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{value}");
}

fn write_text(text: &str, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = json::write_text(text, out);
}

fn write_array(items: &[Term], out: &mut String) -> Result<(), NotJson> {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_json(item, out)?;
    }
    out.push(']');
    Ok(())
}

fn write_object(members: &[Term], out: &mut String) -> Result<(), NotJson> {
    out.push('{');
    for (index, member) in members.iter().enumerate() {
        let [name, value] = member.as_tuple().ok_or_else(|| bad_term(member))?;
        if index > 0 {
            out.push(',');
        }
        match name {
            Term::Atom(name) => write_text(name, out),
            Term::Int(number) => write_text(&number.to_string(), out),
            _ => {
                let bytes = name.as_text().ok_or_else(|| bad_term(member))?;
                write_text(std::str::from_utf8(&bytes).map_err(|_| NotJson::BadUtf8)?, out);
            }
        }
        out.push(':');
        write_json(value, out)?;
    }
    out.push('}');
    Ok(())
}
