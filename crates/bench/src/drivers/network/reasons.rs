//! Reasons of failures that come from a server.

use crate::drivers::Reason;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest text that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 160;

/// How many different texts a run distinguishes.
const TEXTS_MAX: usize = 64;

/// The error texts that all workers of a driver have seen. A server may put keys into its texts, so
/// their length and number are bounded. Texts beyond the bound count as one common reason.
#[derive(Clone, Debug, Default)]
pub struct Reasons(Arc<Mutex<Vec<String>>>);

impl Reasons {
    /// The reason for an error text of a server.
    pub fn of(&self, text: &[u8]) -> Reason {
        let text = String::from_utf8_lossy(text.get(..TEXT_BYTES_MAX).unwrap_or(text));
        let text = text.trim();
        if text.is_empty() {
            return Cow::Borrowed("error without a text");
        }
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.iter().any(|known| known == text) {
            if seen.len() >= TEXTS_MAX {
                return Cow::Borrowed("another error");
            }
            seen.push(text.to_owned());
        }
        Cow::Owned(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_in_length_and_number() {
        let reasons = Reasons::default();
        assert_eq!(reasons.of(b"overload\n"), "overload");
        assert_eq!(reasons.of(&[b'x'; 1000]).len(), TEXT_BYTES_MAX);
        for n in 0..1000 {
            reasons.of(format!("key {n}").as_bytes());
        }
        assert_eq!(reasons.of(b"key 2000"), "another error");
        assert_eq!(reasons.clone().of(b"overload"), "overload", "what is known stays known, to all workers");
        assert_eq!(reasons.of(b" \n"), "error without a text");
    }
}
