//! Names in log lines: printable and short. A key may have 64 KiB, and a client chooses it.

use std::fmt::{self, Display};

/// Maximum of the shown bytes of a name.
const SHOWN_BYTES: usize = 100;

/// A name as a log line shows it: bytes that are not printable are escaped, and a long name is cut
/// off.
pub(crate) struct Printable<'a>(pub(crate) &'a [u8]);

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES)];
        write!(f, "{}", shown.escape_ascii())?;
        if shown.len() < self.0.len() { write!(f, "… ({} bytes)", self.0.len()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_off_and_control_characters_are_escaped() {
        assert_eq!(Printable(b"a\n\"\xff").to_string(), "a\\n\\\"\\xff");
        let long = vec![b'k'; 65_536];
        assert_eq!(Printable(&long).to_string(), format!("{}… (65536 bytes)", "k".repeat(SHOWN_BYTES)));
        assert_eq!(Printable(&long[..SHOWN_BYTES]).to_string(), "k".repeat(SHOWN_BYTES));
    }
}
