//! Names as people read them, in log lines and messages: printable and short. A key may have
//! 64 KiB, and a client chooses its bytes.

use crate::Bucket;
use crate::names::split_storage_key;
use std::fmt::{self, Display};

/// The maximum of the bytes of a name that are shown.
const SHOWN_BYTES: usize = 100;

/// A bucket type, a bucket or a key as people read it: as text if it is printable UTF-8, and
/// otherwise in hexadecimal after `0x`. Of a long name the beginning is shown, with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownName<'a>(pub &'a [u8]);

impl Display for ShownName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_cut = self.0.len() > SHOWN_BYTES;
        match str::from_utf8(self.0) {
            Ok(text) if !text.contains(char::is_control) => {
                let most = SHOWN_BYTES.min(text.len());
                let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                f.write_str(&text[..end])?;
            }
            _ => {
                f.write_str("0x")?;
                // Two digits are shown for each byte.
                let shown = &self.0[..self.0.len().min(SHOWN_BYTES / 2)];
                shown.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                return if shown.len() < self.0.len() { write!(f, "… ({} bytes)", self.0.len()) } else { Ok(()) };
            }
        }
        if is_cut { write!(f, "… ({} bytes)", self.0.len()) } else { Ok(()) }
    }
}

/// The names of a key, or of a bucket, as people read them. Every log line that names one of them
/// gets the names here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownKey<'a> {
    /// The bucket type; empty if the bytes are not the storage key of an object.
    pub bucket_type: ShownName<'a>,
    /// The bucket; empty if the bytes are not the storage key of an object.
    pub bucket: ShownName<'a>,
    /// The key within the bucket; empty if a bucket is named. All bytes if they are not the storage
    /// key of an object.
    pub key: ShownName<'a>,
}

impl<'a> ShownKey<'a> {
    /// Takes a storage key apart.
    pub fn of(storage_key: &'a [u8]) -> Self {
        let (bucket_type, bucket, key) = split_storage_key(storage_key).unwrap_or((b"", b"", storage_key));
        Self { bucket_type: ShownName(bucket_type), bucket: ShownName(bucket), key: ShownName(key) }
    }

    /// The names of a key in a bucket.
    pub fn in_bucket(bucket: &'a Bucket, key: &'a [u8]) -> Self {
        let Bucket { bucket_type, name } = bucket;
        Self { bucket_type: ShownName(bucket_type), bucket: ShownName(name), key: ShownName(key) }
    }

    /// The names of a bucket. The key is empty.
    pub fn of_bucket(bucket: &'a Bucket) -> Self {
        Self::in_bucket(bucket, b"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::encode_storage_key;

    fn shown(name: &[u8]) -> String {
        ShownName(name).to_string()
    }

    #[test]
    fn a_name_is_text_or_hexadecimal() {
        assert_eq!(shown(b"big key"), "big key");
        assert_eq!(shown("Zürich".as_bytes()), "Zürich");
        assert_eq!(shown(b"a\nERROR"), "0x610A4552524F52");
        assert_eq!(shown(b"\xff\x00"), "0xFF00");
        assert_eq!(shown("a\u{85}".as_bytes()), "0x61C285", "control characters beyond ASCII");
    }

    #[test]
    fn a_long_name_is_cut_off_between_characters() {
        let long = vec![b'k'; 65_536];
        assert_eq!(shown(&long), format!("{}… (65536 bytes)", "k".repeat(SHOWN_BYTES)));
        assert_eq!(shown(&long[..SHOWN_BYTES]), "k".repeat(SHOWN_BYTES));
        let text = format!("k{}", "ü".repeat(60));
        assert_eq!(shown(text.as_bytes()), format!("k{}… (121 bytes)", "ü".repeat(49)));
        assert_eq!(shown(&[0xff; 60]), format!("0x{}… (60 bytes)", "FF".repeat(50)));
    }

    #[test]
    fn a_storage_key_has_three_names() {
        let mut key = Vec::new();
        encode_storage_key(&Bucket::typed("t", "big"), b"k", &mut key);
        let ShownKey { bucket_type, bucket, key } = ShownKey::of(&key);
        assert_eq!([bucket_type, bucket, key].map(|name| name.to_string()), ["t", "big", "k"]);
        let ShownKey { bucket_type, bucket, key } = ShownKey::of(b"\x07hidden");
        assert_eq!([bucket_type, bucket, key].map(|name| name.to_string()), ["", "", "0x0768696464656E"]);
    }

    #[test]
    fn a_key_has_the_same_names_with_its_bucket_and_as_a_storage_key() {
        let bucket = Bucket::typed("t\n", "big");
        let mut key = Vec::new();
        encode_storage_key(&bucket, b"k", &mut key);
        assert_eq!(ShownKey::in_bucket(&bucket, b"k"), ShownKey::of(&key));
        let ShownKey { bucket_type, bucket, key } = ShownKey::of_bucket(&bucket);
        assert_eq!([bucket_type, bucket, key].map(|name| name.to_string()), ["0x740A", "big", ""]);
    }
}
