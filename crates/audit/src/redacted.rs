//! The body of a request of administration, as the audit log shows it: bounded, and without
//! passwords.

use crate::line::shortened;
use serde_json::{Map, Value};

/// How many names, numbers and texts of a body are shown.
const VALUES_MAX: usize = 64;

/// How deep a body is shown.
const DEPTH_MAX: usize = 8;

const HIDDEN: &str = "[hidden]";

/// What the log shows of a body. `None` if it is no JSON, or has nothing in it.
pub fn redacted(body: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(body).ok()?;
    match shown(&value, &mut VALUES_MAX.clone(), DEPTH_MAX)? {
        Value::Null => None,
        Value::Object(members) if members.is_empty() => None,
        value => Some(value),
    }
}

/// A value, unless `left` values have been shown already.
fn shown(value: &Value, left: &mut usize, depth: usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    Some(match value {
        Value::String(text) => Value::String(without_password(text)),
        Value::Array(items) => match depth.checked_sub(1) {
            Some(depth) => Value::Array(items.iter().map_while(|item| shown(item, left, depth)).collect()),
            None => Value::String("…".to_owned()),
        },
        Value::Object(members) => match depth.checked_sub(1) {
            Some(depth) => Value::Object(members_shown(members, left, depth)),
            None => Value::String("…".to_owned()),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

fn members_shown(members: &Map<String, Value>, left: &mut usize, depth: usize) -> Map<String, Value> {
    let member = |(name, value): (&String, &Value)| {
        let value = if is_secret(name) { Value::String(HIDDEN.to_owned()) } else { shown(value, left, depth)? };
        Some((shortened(name), value))
    };
    members.iter().map_while(member).collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "secret", "token"].iter().any(|word| name.contains(word))
}

/// The text of an argument. `password=…` is how commands of security take a password.
fn without_password(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{}={HIDDEN}", shortened(name)),
        _ => shortened(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: &Value) -> Option<Value> {
        redacted(value.to_string().as_bytes())
    }

    #[test]
    fn passwords_are_hidden() {
        let body = json!({ "arguments": ["alice", "password=se=cret", "Password=x", "groups=a,b"], "token": "t" });
        let shown = json!({
            "arguments": ["alice", "password=[hidden]", "Password=[hidden]", "groups=a,b"], "token": "[hidden]",
        });
        assert_eq!(of(&body), Some(shown));
    }

    #[test]
    fn what_is_long_or_deep_is_cut_off() {
        let text = of(&json!(["x".repeat(100_000)])).unwrap().to_string();
        assert!(text.len() < 1_000, "{}", text.len());
        let many = of(&json!(vec![7; 10_000])).unwrap();
        assert_eq!(many.as_array().map(Vec::len), Some(VALUES_MAX - 1));
        let deep = (0..40).fold(json!("end"), |inner, _| json!([inner]));
        assert_eq!(of(&deep).unwrap().to_string(), format!("{}\"…\"{}", "[".repeat(8), "]".repeat(8)));
    }

    #[test]
    fn what_is_no_json_or_empty_is_not_shown() {
        for body in [&b""[..], b"function() {}", b"{}", b"null"] {
            assert_eq!(redacted(body), None);
        }
    }
}
