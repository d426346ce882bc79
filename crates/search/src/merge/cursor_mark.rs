//! The place of a cursor.

use super::part_answer::Hit;
use super::sort_order::SortOrder;
use crate::request::{RequestError, RequestProblem, SortBy};
use crate::values::{Value, read_value, take, write_value};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The place of a cursor: what its last document has for the keys of an order.
///
/// ```text
///  text: base64, with - and _, of   0x01   order u64   then for each key a value
///  value:  00 missing   01 text: length u32, UTF-8   02 false   03 true   04 int i32   05 long i64
///          06 float u32 (its bits)   07 double u64 (its bits)   08 date i64 (ms)      all big-endian
/// ```
///
/// Solr's marks have another form; clients take no notice of it. These need no escapes in a URL.
#[derive(Clone, Debug, PartialEq)]
pub struct CursorMark {
    values: Vec<Option<Value>>,
}

/// The mark of the beginning.
const BEGINNING: &str = "*";

/// The version of the form.
const VERSION: u8 = 1;

impl CursorMark {
    /// The place behind a hit.
    pub(super) fn of(hit: &Hit) -> Self {
        Self { values: hit.sort_values.clone() }
    }

    /// What the document has for the keys of the order; `None` for a missing value.
    pub fn values(&self) -> &[Option<Value>] {
        &self.values
    }

    /// Whether a hit comes behind the document of the mark. The unique key is one of the keys, so
    /// only that document itself is equal.
    pub fn is_before(&self, hit: &Hit, order: &SortOrder) -> bool {
        order.compare_keys(&self.values, &hit.sort_values).is_lt()
    }

    /// Reads the parameter `cursorMark`; `None` for the beginning.
    ///
    /// # Errors
    /// It is no mark, or one of another order.
    pub fn read(text: &str, order: &SortOrder) -> Result<Option<Self>, RequestError> {
        if text == BEGINNING {
            return Ok(None);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let mark = bytes.and_then(|bytes| Self::decode(&bytes, order));
        mark.map(Some).ok_or_else(|| RequestProblem::BadCursor.of("cursorMark"))
    }

    /// The text of the mark.
    pub fn to_text(&self, order: &SortOrder) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend(fingerprint(order).to_be_bytes());
        for at in 0..order.keys().len() {
            encode(self.values.get(at).and_then(Option::as_ref), &mut bytes);
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn decode(bytes: &[u8], order: &SortOrder) -> Option<Self> {
        let mut rest = bytes;
        if take::<1>(&mut rest)? != [VERSION] || u64::from_be_bytes(take(&mut rest)?) != fingerprint(order) {
            return None;
        }
        let mut values = Vec::with_capacity(order.keys().len());
        for key in order.keys() {
            let value = decode(&mut rest)?;
            if value.as_ref().is_some_and(|value| !key.kind.is_of(value)) {
                return None;
            }
            values.push(value);
        }
        rest.is_empty().then_some(Self { values })
    }
}

/// A number that other orders do not have, or hardly: FNV-1a of the keys and their directions.
fn fingerprint(order: &SortOrder) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for key in order.keys() {
        match &key.by {
            SortBy::Score => add(1),
            SortBy::Field(name) => {
                add(2);
                name.bytes().for_each(&mut add);
            }
        }
        add(u8::from(key.is_descending));
        // No name has this byte.
        add(0xff);
    }
    hash
}

/// A text sorts as a string, and an order has no bytes; see `SortKind`.
fn encode(value: Option<&Value>, bytes: &mut Vec<u8>) {
    match value {
        Some(Value::Text(text)) => write_value(Some(&Value::String(text.clone())), bytes),
        Some(Value::Bytes(_)) => write_value(None, bytes),
        value => write_value(value, bytes),
    }
}

/// Reads a value. The outer `None` is for bytes that [`encode`] does not write.
fn decode(rest: &mut &[u8]) -> Option<Option<Value>> {
    read_value(rest).filter(|value| !matches!(value, Some(Value::Text(_) | Value::Bytes(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_a_string_and_other_values_of_documents_are_refused() {
        let mut bytes = Vec::new();
        encode(Some(&Value::Text("a".into())), &mut bytes);
        encode(Some(&Value::Bytes(vec![1])), &mut bytes);
        assert_eq!(bytes, [1, 0, 0, 0, 1, b'a', 0]);
        let mut rest = &bytes[..];
        assert_eq!(decode(&mut rest), Some(Some(Value::String("a".into()))));
        assert_eq!(decode(&mut rest), Some(None));
        for tag in [9, 10] {
            assert_eq!(decode(&mut &[tag, 0, 0, 0, 0][..]), None, "{tag}");
        }
    }
}
