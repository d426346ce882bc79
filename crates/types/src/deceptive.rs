//! Characters that are not what a reader sees.

/// Whether a character controls how others are shown, or is not seen itself. A terminal could take
/// it for more than a character, so texts of strangers are shown without it.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_or_hides_is_deceptive_and_letters_are_not() {
        for c in ['\n', '\u{7f}', '\u{9b}', '\u{ad}', '\u{202e}', '\u{e0041}'] {
            assert!(is_deceptive(c), "{c:?}");
        }
        for c in ['a', ' ', 'é', 'ユ', '\u{1f600}'] {
            assert!(!is_deceptive(c), "{c:?}");
        }
    }
}
