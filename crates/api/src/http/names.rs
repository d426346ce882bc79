//! Names of buckets and keys in JSON.
//!
//! Names are bytes, and JSON is text. A name that is valid UTF-8 is written as that text. Any other
//! name is written byte by byte as the characters U+0000 to U+00FF. So no name is lost and no
//! listing fails (Riak answers 500). A client must know about such names to distinguish `é` from
//! the byte E9.

use bytes::Bytes;
use serde_json::Value;

/// A name as JSON text.
pub fn json_name(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.iter().map(|&b| char::from(b)).collect(),
    }
}

/// Names as the elements of a JSON array, without its brackets.
pub fn json_elements(names: &[Bytes]) -> String {
    let mut out = String::new();
    for name in names {
        if !out.is_empty() {
            out.push(',');
        }
        out += &Value::String(json_name(name)).to_string();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_can_be_written() {
        let names = ["é\"".as_bytes(), b"\xe9\x00", b""].map(Bytes::from_static);
        assert_eq!(json_elements(&names), "\"é\\\"\",\"é\\u0000\",\"\"");
    }
}
