//! The texts of `RpbErrorResp` (docs/riak/pb-api.md §1.1).

use crate::memory::OutOfMemory;
use ombak_types::Error;
use std::fmt::{self, Display, Write as _};

/// Why a request is refused, as the text of the `RpbErrorResp`. The connection stays open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(String);

impl Refusal {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The refusal of a message that cannot be decoded. Its text begins as Riak's does, up to the
    /// class of the exception, and then says what is wrong.
    pub(super) fn undecodable(message: &str, why: impl Display) -> Self {
        Self(format!("Error processing incoming message: {message} does not decode: {why}"))
    }

    /// The refusal of a listing or of bucket properties whose bucket type is unknown.
    pub(super) fn no_such_type(bucket_type: &[u8]) -> Self {
        Self(format!("No bucket-type named '{}'", String::from_utf8_lossy(bucket_type)))
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        Error::Overload.into()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Displays bytes as an Erlang shell does: `<<"text">>` if they are printable, otherwise
/// `<<1,2,3>>`.
pub(super) struct ErlangBinary<'a>(pub(super) &'a [u8]);

impl Display for ErlangBinary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<<")?;
        if !self.0.is_empty() && self.0.iter().all(|b| matches!(b, b' '..=b'~')) {
            f.write_char('"')?;
            for &byte in self.0 {
                if matches!(byte, b'"' | b'\\') {
                    f.write_char('\\')?;
                }
                f.write_char(char::from(byte))?;
            }
            f.write_char('"')?;
        } else {
            for (at, byte) in self.0.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                write!(f, "{comma}{byte}")?;
            }
        }
        f.write_str(">>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binaries_print_as_erlang_prints_them() {
        assert_eq!(ErlangBinary(b"nonesuch").to_string(), r#"<<"nonesuch">>"#);
        assert_eq!(ErlangBinary(br#"a"b\"#).to_string(), r#"<<"a\"b\\">>"#);
        assert_eq!(ErlangBinary(&[0, 255]).to_string(), "<<0,255>>");
        assert_eq!(ErlangBinary(b"").to_string(), "<<>>");
    }
}
