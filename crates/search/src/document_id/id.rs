//! An id and its text.

use crate::values::STRING_BYTES_MAX;
use std::fmt::Write;

/// Bytes of an id: it is a term of the index.
pub const DOCUMENT_ID_BYTES_MAX: usize = STRING_BYTES_MAX;

/// The version of the form of ids, which begins them.
const VERSION: &str = "1";

const SEPARATOR: char = '*';

/// What a document is of: an object or one of its siblings, in a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentId {
    /// The bucket type; `default` for buckets without one.
    pub bucket_type: Vec<u8>,
    /// The bucket.
    pub bucket: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
    /// The number of the partition (`_yz_pn`).
    pub partition: u32,
    /// The vtag of a sibling; `None` if the object has one value.
    pub vtag: Option<Vec<u8>>,
}

/// A text is no id, or an id has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDocumentId {
    /// It has another form.
    #[error("an id is written 1*type*bucket*key*partition, and perhaps *vtag")]
    Form,
    /// A `%` that begins no escape, or a byte that needs none.
    #[error("in an id % begins %1 (for *), %2 (for %) or %xFF (for a byte that is not UTF-8)")]
    Escape,
    /// The partition is no number.
    #[error("the partition of an id is a number from 0 to 4294967295")]
    Partition,
    /// It is too long.
    #[error("an id has at most {DOCUMENT_ID_BYTES_MAX} bytes")]
    TooLong,
}

impl DocumentId {
    /// The text of the id.
    ///
    /// Names in UTF-8 are written as Riak does. Riak cannot index names that are not: a byte of
    /// those that is not UTF-8 is written as `%xFF` here.
    ///
    /// # Errors
    /// The text is too long for a term of the index.
    pub fn to_text(&self) -> Result<String, BadDocumentId> {
        let mut text = VERSION.to_owned();
        for part in [&self.bucket_type, &self.bucket, &self.key] {
            text.push(SEPARATOR);
            escape(part, &mut text);
            check_length(&text)?;
        }
        text.push(SEPARATOR);
        text.push_str(&self.partition.to_string());
        if let Some(vtag) = &self.vtag {
            // Riak escapes nothing here; its vtags have letters and digits only.
            text.push(SEPARATOR);
            escape(vtag, &mut text);
        }
        check_length(&text)?;
        Ok(text)
    }

    /// Reads the text of an id.
    ///
    /// # Errors
    /// It is none, or it is not written as [`DocumentId::to_text`] does.
    pub fn read(text: &str) -> Result<Self, BadDocumentId> {
        check_length(text)?;
        let parts: Vec<&str> = text.splitn(7, SEPARATOR).collect();
        let (bucket_type, bucket, key, partition, vtag) = match parts[..] {
            [VERSION, bucket_type, bucket, key, partition] => (bucket_type, bucket, key, partition, None),
            [VERSION, bucket_type, bucket, key, partition, vtag] => (bucket_type, bucket, key, partition, Some(vtag)),
            _ => return Err(BadDocumentId::Form),
        };
        Ok(Self {
            bucket_type: unescape(bucket_type)?,
            bucket: unescape(bucket)?,
            key: unescape(key)?,
            partition: read_partition(partition)?,
            vtag: vtag.map(unescape).transpose()?,
        })
    }
}

fn check_length(text: &str) -> Result<(), BadDocumentId> {
    if text.len() > DOCUMENT_ID_BYTES_MAX { Err(BadDocumentId::TooLong) } else { Ok(()) }
}

/// Reads digits without a sign and without zeros before them.
fn read_partition(digits: &str) -> Result<u32, BadDocumentId> {
    let partition: u32 = digits.parse().map_err(|_| BadDocumentId::Partition)?;
    if partition.to_string() == digits { Ok(partition) } else { Err(BadDocumentId::Partition) }
}

/// Writes a part of an id.
fn escape(part: &[u8], text: &mut String) {
    for chunk in part.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                SEPARATOR => text.push_str("%1"),
                '%' => text.push_str("%2"),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a text does not fail.
            let _ = write!(text, "%x{byte:02X}");
        }
    }
}

/// Reads a part of an id.
fn unescape(text: &str) -> Result<Vec<u8>, BadDocumentId> {
    let mut part = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut has_bytes = false;
    while let Some(at) = rest.find('%') {
        part.extend_from_slice(&rest.as_bytes()[..at]);
        let (byte, length) = match rest.as_bytes()[at + 1..] {
            [b'1', ..] => (b'*', 2),
            [b'2', ..] => (b'%', 2),
            [b'x', high, low, ..] => ((digit(high)? << 4) | digit(low)?, 4),
            _ => return Err(BadDocumentId::Escape),
        };
        has_bytes |= length == 4;
        part.push(byte);
        rest = &rest[at + length..];
    }
    part.extend_from_slice(rest.as_bytes());
    if has_bytes {
        // Escaped bytes that are UTF-8 together would give a part a second text.
        let mut canonical = String::with_capacity(text.len());
        escape(&part, &mut canonical);
        if canonical != text {
            return Err(BadDocumentId::Escape);
        }
    }
    Ok(part)
}

/// The value of a hexadecimal digit, as they are written here.
fn digit(byte: u8) -> Result<u8, BadDocumentId> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(BadDocumentId::Escape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(bucket_type: &[u8], bucket: &[u8], key: &[u8], partition: u32, vtag: Option<&[u8]>) -> DocumentId {
        DocumentId {
            bucket_type: bucket_type.to_vec(),
            bucket: bucket.to_vec(),
            key: key.to_vec(),
            partition,
            vtag: vtag.map(<[u8]>::to_vec),
        }
    }

    #[test]
    fn ids_are_written_as_in_riak() {
        for (id, text) in [
            (id(b"default", b"cats", b"liono", 37, None), "1*default*cats*liono*37"),
            (id(b"t", b"b", b"k", 0, Some(b"3RVAwLnALBLgvvCbPgdSYt")), "1*t*b*k*0*3RVAwLnALBLgvvCbPgdSYt"),
            (id(b"t", b"a*b", b"100%", u32::MAX, None), "1*t*a%1b*100%2*4294967295"),
            (id(b"t", b"%1", b"%%**", 1, None), "1*t*%21*%2%2%1%1*1"),
            (id("ü".as_bytes(), "大".as_bytes(), b"a b\0\n", 1, None), "1*ü*大*a b\0\n*1"),
            (id(b"t", b"b", b"\xff\xc3(", 1, None), "1*t*b*%xFF%xC3(*1"),
            (id(b"t", b"b", b"%xFF", 1, None), "1*t*b*%2xFF*1"),
            (id(b"", b"", b"", 1, Some(b"*")), "1****1*%1"),
        ] {
            assert_eq!(id.to_text().as_deref(), Ok(text));
            assert_eq!(DocumentId::read(text), Ok(id));
        }
    }

    #[test]
    fn texts_that_are_no_ids_are_refused() {
        for (text, bad) in [
            ("", BadDocumentId::Form),
            ("1*t*b*k", BadDocumentId::Form),
            ("2*t*b*k*1", BadDocumentId::Form),
            ("01*t*b*k*1", BadDocumentId::Form),
            ("1*t*b*k*1*v*w", BadDocumentId::Form),
            ("1*t*b*k*", BadDocumentId::Partition),
            ("1*t*b*k*+1", BadDocumentId::Partition),
            ("1*t*b*k*01", BadDocumentId::Partition),
            ("1*t*b*k*-1", BadDocumentId::Partition),
            ("1*t*b*k*4294967296", BadDocumentId::Partition),
            ("1*t*b*k%*1", BadDocumentId::Escape),
            ("1*t*b*%3*1", BadDocumentId::Escape),
            ("1*t*b*%x*1", BadDocumentId::Escape),
            ("1*t*b*%xF*1", BadDocumentId::Escape),
            ("1*t*b*%xff*1", BadDocumentId::Escape),
            ("1*t*b*%x41*1", BadDocumentId::Escape),
            ("1*t*b*%xC3%xBC*1", BadDocumentId::Escape),
            ("1*t*b*%xé*1", BadDocumentId::Escape),
        ] {
            assert_eq!(DocumentId::read(text), Err(bad), "{text}");
        }
        let long = "k".repeat(DOCUMENT_ID_BYTES_MAX);
        assert_eq!(id(b"t", b"b", long.as_bytes(), 1, None).to_text(), Err(BadDocumentId::TooLong));
        assert_eq!(DocumentId::read(&format!("1*t*b*{long}*1")), Err(BadDocumentId::TooLong));
    }

    /// Bytes of which many mean something in an id, and parts of characters.
    fn part() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![prop::sample::select(&b"*%12xFC3ab\0\x7f\xc3\xbc\xe5\xff!~"[..]), any::<u8>()];
        prop::collection::vec(byte, 0..12)
    }

    fn any_id() -> impl Strategy<Value = DocumentId> {
        (part(), part(), part(), any::<u32>(), prop::option::of(part())).prop_map(
            |(bucket_type, bucket, key, partition, vtag)| DocumentId { bucket_type, bucket, key, partition, vtag },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(id in any_id()) {
            prop_assert_eq!(DocumentId::read(&id.to_text().unwrap()), Ok(id));
        }

        #[test]
        fn what_is_read_is_written_back(text in "1(\\*([a%*\u{fc}12]|%1|%2|%xFF|%xC3|%xBC|%x4A){0,3}){3}\\*[0-9]{1,2}(\\*v)?") {
            if let Ok(id) = DocumentId::read(&text) {
                prop_assert_eq!(id.to_text(), Ok(text));
            }
        }

        #[test]
        fn partitions_do_not_change_the_order_of_objects(a in any_id(), b in any_id(), others in any::<(u32, u32)>()) {
            let is_same = |a: &DocumentId, b: &DocumentId| {
                (&a.bucket_type, &a.bucket, &a.key) == (&b.bucket_type, &b.bucket, &b.key)
            };
            prop_assume!(!is_same(&a, &b));
            let moved = |id: &DocumentId, partition| DocumentId { partition, ..id.clone() };
            let order = a.to_text().unwrap().cmp(&b.to_text().unwrap());
            let (a, b) = (moved(&a, others.0), moved(&b, others.1));
            prop_assert_eq!(a.to_text().unwrap().cmp(&b.to_text().unwrap()), order);
        }
    }
}
