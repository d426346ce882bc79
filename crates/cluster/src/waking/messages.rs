//! Whether a node holds something for the one that asks.
//!
//! ```text
//! question   version u8, fields
//! answer     version u8, holds something u8 (0 or 1), fields
//! ```

use crate::wire::{Malformed, Reader, Writer, no_fields};
use bytes::Bytes;
use ombak_peer::mux::Body;

/// Encodes the question.
pub(crate) fn encode_holdings_question() -> Body {
    let mut out = Writer::of_message();
    out.end_fields();
    out.finish()
}

/// Checks a question.
pub(crate) fn decode_holdings_question(message: &Bytes) -> Result<(), Malformed> {
    let mut reader = Reader::of_message(message)?;
    no_fields(&mut reader)?;
    reader.end()
}

/// Encodes the answer.
pub(crate) fn encode_holdings(has_something: bool) -> Body {
    let mut out = Writer::of_message();
    out.u8(u8::from(has_something));
    out.end_fields();
    out.finish()
}

/// Decodes an answer.
pub(crate) fn decode_holdings(message: &Bytes) -> Result<bool, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let has_something = match reader.u8()? {
        0 => false,
        1 => true,
        _ => return Err(Malformed("it holds neither something nor nothing")),
    };
    no_fields(&mut reader)?;
    reader.end()?;
    Ok(has_something)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::VERSION;

    /// Nodes of this version send these bytes, so they never change.
    #[test]
    fn the_messages_have_these_bytes() {
        assert_eq!(encode_holdings_question().parts().concat(), [VERSION, 0]);
        assert_eq!(encode_holdings(false).parts().concat(), [VERSION, 0, 0]);
        assert_eq!(encode_holdings(true).parts().concat(), [VERSION, 1, 0]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let decoded = |bytes: &[u8]| decode_holdings(&Bytes::copy_from_slice(bytes));
        assert_eq!(decoded(&[VERSION, 1, 0]), Ok(true));
        assert_eq!(decoded(&[VERSION, 0, 0]), Ok(false));
        assert!(decode_holdings_question(&Bytes::from_static(&[VERSION, 0])).is_ok());
        for bytes in [&[][..], &[VERSION], &[VERSION, 2, 0], &[VERSION, 1], &[VERSION, 1, 0, 0], &[VERSION + 1, 1, 0]] {
            assert!(decoded(bytes).is_err(), "{bytes:?}");
        }
        for bytes in [&[][..], &[VERSION], &[VERSION, 0, 0], &[VERSION + 1, 0]] {
            assert!(decode_holdings_question(&Bytes::copy_from_slice(bytes)).is_err(), "{bytes:?}");
        }
    }
}
