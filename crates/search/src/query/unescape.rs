//! Text without its escapes: `\x` is the character x, and `\u0041` the character of that number.

use super::query_error::QueryProblem;

/// The text without escapes.
///
/// # Errors
/// The problem, and how many bytes lie before it.
pub(super) fn unescape(text: &str) -> Result<String, (usize, QueryProblem)> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let escape = &rest[at..];
        let offset_bytes = text.len() - escape.len();
        let (c, taken_bytes) = one(escape).map_err(|problem| (offset_bytes, problem))?;
        plain.push(c);
        rest = &escape[taken_bytes..];
    }
    plain.push_str(rest);
    Ok(plain)
}

/// The character of an escape at the beginning of a text, and the bytes that the escape takes.
fn one(escape: &str) -> Result<(char, usize), QueryProblem> {
    let c = escape.chars().nth(1).ok_or(QueryProblem::LoneBackslash)?;
    if c != 'u' {
        return Ok((c, 1 + c.len_utf8()));
    }
    let first = code_unit(escape).ok_or(QueryProblem::BadUnicodeEscape)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Ok((c, 6));
    }
    // Java writes a character beyond 16 bits as two code units.
    let second = escape.get(6..).and_then(code_unit).ok_or(QueryProblem::BadUnicodeEscape)?;
    match char::decode_utf16([first, second]).next() {
        Some(Ok(c)) => Ok((c, 12)),
        _ => Err(QueryProblem::BadUnicodeEscape),
    }
}

/// The number of `\uXXXX` at the beginning of a text.
fn code_unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_characters() {
        assert_eq!(unescape(r"a\:b\\c").unwrap(), r"a:b\c");
        assert_eq!(unescape(r"\u0041bc").unwrap(), "Abc");
        assert_eq!(unescape(r"\ud83d\ude00!").unwrap(), "😀!");
        assert_eq!(unescape(r"\é").unwrap(), "é");
    }

    #[test]
    fn the_place_of_a_bad_escape_is_named() {
        assert_eq!(unescape(r"ab\"), Err((2, QueryProblem::LoneBackslash)));
        assert_eq!(unescape(r"é\u00g0"), Err((2, QueryProblem::BadUnicodeEscape)));
        assert_eq!(unescape(r"\ud83d"), Err((0, QueryProblem::BadUnicodeEscape)));
        assert_eq!(unescape(r"\u00"), Err((0, QueryProblem::BadUnicodeEscape)));
        assert_eq!(unescape(r"\u00é0"), Err((0, QueryProblem::BadUnicodeEscape)));
        assert_eq!(unescape(r"\u+041"), Err((0, QueryProblem::BadUnicodeEscape)));
    }
}
