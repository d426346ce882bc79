//! The body of a request of administration, as the audit log shows it: bounded, and without
//! passwords and programs.

use crate::event::Shown;
use crate::line::shortened;
use serde_json::{Map, Value, json};

/// The longest body that is read, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// How many names, numbers and texts of a body are shown.
const VALUES_MAX: usize = 1_024;

/// How deep a body is shown.
const DEPTH_MAX: usize = 8;

/// How many characters of a text are shown. An argument of a command is shorter.
const TEXT_CHARS_MAX: usize = 20_000;

const HIDDEN: &str = "[hidden]";
const CUT: &str = "[cut]";

/// What the log shows of a body. `None` if it is no JSON, or has nothing in it.
pub(crate) fn redacted(body: &[u8], shows: Shown) -> Option<Value> {
    if body.len() > BODY_BYTES_MAX {
        return Some(json!({ "bytes": body.len() }));
    }
    let value: Value = serde_json::from_slice(body).ok()?;
    match (Reader { shows, left: VALUES_MAX }).shown(&value, DEPTH_MAX) {
        Value::Null => None,
        Value::Object(members) if members.is_empty() => None,
        value => Some(value),
    }
}

struct Reader {
    shows: Shown,
    left: usize,
}

impl Reader {
    /// A value, or a sign that it is cut off.
    fn shown(&mut self, value: &Value, depth: usize) -> Value {
        let (Some(left), Some(deeper)) = (self.left.checked_sub(1), depth.checked_sub(1)) else {
            return Value::String(CUT.to_owned());
        };
        self.left = left;
        match value {
            Value::String(text) => Value::String(without_password(text)),
            Value::Array(items) if self.shows == Shown::NamesOfOptions => Value::Array(options(items)),
            Value::Array(items) => self.items(items, deeper),
            Value::Object(members) => Value::Object(self.members(members, deeper)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn items(&mut self, items: &[Value], depth: usize) -> Value {
        let mut shown = Vec::new();
        for (at, item) in items.iter().enumerate() {
            shown.push(self.shown(item, depth));
            if self.left == 0 && at + 1 < items.len() {
                shown.push(Value::String(CUT.to_owned()));
                break;
            }
        }
        Value::Array(shown)
    }

    fn members(&mut self, members: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut shown = Map::new();
        for (name, value) in members {
            let value = match value {
                Value::String(text) if is_program(name) => json!({ "bytes": text.len() }),
                _ if is_program(name) || is_secret(name) => Value::String(HIDDEN.to_owned()),
                value => self.shown(value, depth),
            };
            shown.insert(shortened(name), value);
            if self.left == 0 {
                shown.insert(CUT.to_owned(), Value::Null);
                break;
            }
        }
        shown
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "secret", "token"].iter().any(|word| name.contains(word))
}

/// Sources of functions, and what they are tried with: values of clients.
fn is_program(name: &str) -> bool {
    ["source", "input", "arg"].contains(&name)
}

/// The text of an argument. `password=…` is how commands of security take a password.
fn without_password(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{}={HIDDEN}", shortened(name)),
        _ => cut(text),
    }
}

/// The arguments of a command that takes passwords: whom it is about, its groups, and the names of
/// what else is set.
fn options(items: &[Value]) -> Vec<Value> {
    let shown = |(at, item): (usize, &Value)| {
        let text = item.as_str().unwrap_or_default();
        Value::String(match text.split_once('=') {
            None if at == 0 => cut(text),
            Some(("groups", _)) => cut(text),
            Some((name, _)) => format!("{}={HIDDEN}", shortened(name)),
            None => HIDDEN.to_owned(),
        })
    };
    items.iter().enumerate().map(shown).collect()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}{CUT}", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &Value) -> Option<Value> {
        redacted(value.to_string().as_bytes(), Shown::Values)
    }

    #[test]
    fn passwords_and_programs_are_hidden() {
        let body = json!({
            "arguments": ["alice", "password=se=cret", "Password=x", "groups=a,b"], "token": "t", "source": "function(){}",
            "arg": { "a": 1 }, "value": "info",
        });
        let shown = json!({
            "arguments": ["alice", "password=[hidden]", "Password=[hidden]", "groups=a,b"], "token": "[hidden]",
            "source": { "bytes": 12 }, "arg": "[hidden]", "value": "info",
        });
        assert_eq!(of(&body), Some(shown));
    }

    #[test]
    fn a_command_that_takes_passwords_shows_none_that_was_mistyped() {
        let body = json!({ "arguments": ["alice", "hunter2", "pasword=hunter2", "groups=a", 7] }).to_string();
        let shown = json!({ "arguments": ["alice", "[hidden]", "pasword=[hidden]", "groups=a", "[hidden]"] });
        assert_eq!(redacted(body.as_bytes(), Shown::NamesOfOptions), Some(shown));
        let text = json!({ "arguments": "password=hunter2" }).to_string();
        assert_eq!(redacted(text.as_bytes(), Shown::NamesOfOptions), Some(json!({ "arguments": "password=[hidden]" })));
    }

    #[test]
    fn what_is_long_or_deep_is_cut_off_with_a_sign() {
        assert_eq!(of(&json!(["x".repeat(100_000)])), Some(json!({ "bytes": 100_004 })));
        let text = of(&json!(["x".repeat(50_000)])).unwrap().to_string();
        assert!(text.ends_with("x[cut]\"]") && text.len() < 21_000, "{}", text.len());
        let many = of(&json!(vec![7; 10_000])).unwrap();
        assert_eq!(
            many.as_array().map(|items| (items.len(), items.last().cloned())),
            Some((VALUES_MAX, Some(CUT.into())))
        );
        let deep = (0..40).fold(json!("end"), |inner, _| json!([inner]));
        assert_eq!(of(&deep).unwrap().to_string(), format!("{}\"[cut]\"{}", "[".repeat(8), "]".repeat(8)));
    }

    #[test]
    fn what_is_no_json_or_empty_is_not_shown() {
        for body in [&b""[..], b"function() {}", b"{}", b"null"] {
            assert_eq!(redacted(body, Shown::Values), None);
        }
    }
}
