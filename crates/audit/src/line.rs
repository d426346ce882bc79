//! An event as a line of JSON.

use crate::event::AuditEvent;
use crate::redacted::redacted;
use ombak_types::{ShownName, is_deceptive};
use serde_json::{Map, Value};
use std::fmt::{Display, Write};

/// How many characters of an action or of a reason are shown.
const TEXT_CHARS_MAX: usize = 300;

/// The line of an event, with its end. Names of clients are bounded, and what would be a command to
/// a terminal is escaped.
pub(crate) fn of_event(timestamp: &str, event: &AuditEvent<'_>) -> Vec<u8> {
    let mut line = Map::new();
    let mut add = |name: &str, value: Value| drop(line.insert(name.to_owned(), value));
    add("timestamp", timestamp.into());
    add("event", event.kind.name().into());
    add("outcome", event.outcome.name().into());
    add("user", event.user.map(|user| shown(ShownName(user.as_bytes()))).into());
    add("proof", event.proof.into());
    add("peer", shown(event.place.peer).into());
    add("listener", event.place.listener.into());
    add("encrypted", event.place.is_encrypted.into());
    add("action", shortened(event.action).into());
    let (bucket_type, bucket) = event.bucket;
    for (name, value) in [("bucket_type", bucket_type), ("bucket", bucket)] {
        if let Some(value) = value {
            add(name, shown(ShownName(value)).into());
        }
    }
    if let Some(why) = event.outcome.why() {
        add("why", shortened(why).into());
    }
    if let Some(detail) = event.body.and_then(|(body, shows)| redacted(body, shows)) {
        add("detail", detail);
    }
    with_end(Value::Object(line))
}

/// The line that says how many events of each kind were left out since the line before.
pub(crate) fn of_dropped(timestamp: &str, dropped: &[(&'static str, u64)]) -> Vec<u8> {
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), timestamp.into());
    line.insert("event".to_owned(), "dropped".into());
    for (name, count) in dropped {
        line.insert((*name).to_owned(), (*count).into());
    }
    with_end(Value::Object(line))
}

fn with_end(line: Value) -> Vec<u8> {
    let mut line = escaped(line.to_string()).into_bytes();
    line.push(b'\n');
    line
}

/// JSON in which characters that a terminal obeys, or that hide others, are escaped. Such
/// characters stand only in texts. JSON itself escapes those below U+0020.
fn escaped(json: String) -> String {
    if !json.contains(is_deceptive) {
        return json;
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_deceptive(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

fn shown(value: impl Display) -> String {
    value.to_string()
}

/// The beginning of a text, with a sign if more follows.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
