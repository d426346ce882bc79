//! Writes numbers in words, and text to buffers.

use std::fmt;
use std::io::Write;

/// Appends text. Nothing is allocated except when the buffer grows.
pub(super) fn print(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = out.write_fmt(text);
}

/// A number with separated thousands, such as `60,000,000`.
pub(crate) fn grouped(n: impl Into<i128>) -> String {
    let n = n.into();
    let digits = n.unsigned_abs().to_string();
    let mut out = String::from(if n < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of bytes in words, such as `1 byte` or `8,000 bytes`.
pub(super) fn bytes(n: usize) -> String {
    match n {
        1 => "1 byte".into(),
        _ => format!("{} bytes", grouped(n as i128)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (-1_234_567, "-1,234,567")] {
            assert_eq!(grouped(n), text);
        }
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(8000), "8,000 bytes");
    }
}
