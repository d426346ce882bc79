//! Prints strings as Erlang does. Riak's error texts quote a client's input in this form.

use std::fmt::Write;

/// A string as Erlang prints it: in quotes if it is Latin-1 text, otherwise as a list of numbers.
pub fn string(bytes: &[u8]) -> String {
    if !bytes.is_empty() && !bytes.iter().all(|&b| is_printable(b)) {
        let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
        return format!("[{}]", numbers.join(","));
    }
    let mut out = String::from('"');
    for &byte in bytes {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            _ => out.push(char::from(byte)),
        }
    }
    out.push('"');
    out
}

/// A binary as Erlang prints it: `<<"text">>`, or `<<1,2>>` if it is not text.
pub fn binary(bytes: &[u8]) -> String {
    if bytes.iter().all(|&b| is_printable(b)) {
        return format!("<<{}>>", string(bytes));
    }
    let mut out = String::from("<<");
    for (i, byte) in bytes.iter().enumerate() {
        let _ = write!(out, "{}{byte}", if i > 0 { "," } else { "" });
    }
    out + ">>"
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0xa0..=0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_and_the_rest_is_numbers() {
        assert_eq!(string(b"foo"), "\"foo\"");
        assert_eq!(string(b"a\"b\\"), "\"a\\\"b\\\\\"");
        assert_eq!(string(b""), "\"\"");
        assert_eq!(string(b"a\x01"), "[97,1]");
        assert_eq!(binary(b"zork"), "<<\"zork\">>");
        assert_eq!(binary(b"\x00\x01"), "<<0,1>>");
    }
}
