//! Arbitrary bytes as text: a byte that is not printable ASCII, and `%` itself, is `%` and two
//! hexadecimal digits. The file `buckets.json` of earlier versions has the same form.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if (byte == b' ' || byte.is_ascii_graphic()) && byte != b'%' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02x}"));
        }
    }
    out
}

pub(super) fn decode(text: &str) -> Option<Bytes> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
            out.push((digit(bytes.next())? << 4 | digit(bytes.next())?) as u8);
        } else {
            out.push(byte);
        }
    }
    Some(Bytes::from(out))
}

pub(super) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(bytes))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    decode(&text).ok_or_else(|| D::Error::custom(format!("the name {text:?} does not decode")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_survive_as_printable_text(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            let text = encode(&bytes);
            prop_assert!(text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
            prop_assert_eq!(decode(&text), Some(Bytes::from(bytes)));
        }
    }

    #[test]
    fn half_an_escape_is_no_text() {
        assert_eq!((decode("%"), decode("%4"), decode("%4g")), (None, None, None));
    }
}
