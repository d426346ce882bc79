//! Shows text of strangers in messages and tables.

use ombak_types::is_deceptive;

/// The longest text that is shown, in characters.
const CHARS_MAX: usize = 300;

/// A text with its control characters escaped, so that it stays on its line. What is too long ends
/// with an ellipsis.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(CHARS_MAX));
    for (index, c) in text.chars().enumerate() {
        if index == CHARS_MAX {
            out.push('…');
            break;
        }
        push_shown(&mut out, c);
    }
    out
}

/// Adds a character, escaped if a terminal could take it for more than a character.
pub(crate) fn push_shown(out: &mut String, c: char) {
    if is_deceptive(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_stays_on_its_line_and_is_bounded() {
        assert_eq!(shown("a\nb\u{1b}[2J\u{202e}é"), "a\\u{a}b\\u{1b}[2J\\u{202e}é");
        let long = shown(&"x".repeat(100_000));
        assert_eq!(long.chars().count(), CHARS_MAX + 1);
        assert!(long.ends_with('…'));
    }
}
