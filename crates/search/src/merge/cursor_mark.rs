//! The place of a cursor.

use super::part_answer::Hit;
use super::sort_order::SortOrder;
use crate::dates::Date;
use crate::request::{RequestError, RequestProblem, SortBy};
use crate::values::Value;
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

fn encode(value: Option<&Value>, bytes: &mut Vec<u8>) {
    match value {
        // An order has no bytes; see `SortKind`.
        None | Some(Value::Bytes(_)) => bytes.push(0),
        Some(Value::String(text) | Value::Text(text)) => {
            // A term has less than 32 KB.
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            bytes.push(1);
            bytes.extend(length.to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        Some(Value::Bool(is_true)) => bytes.push(2 + u8::from(*is_true)),
        Some(Value::Int(number)) => field(bytes, 4, &number.to_be_bytes()),
        Some(Value::Long(number)) => field(bytes, 5, &number.to_be_bytes()),
        Some(Value::Float(number)) => field(bytes, 6, &number.to_bits().to_be_bytes()),
        Some(Value::Double(number)) => field(bytes, 7, &number.to_bits().to_be_bytes()),
        Some(Value::Date(date)) => field(bytes, 8, &date.unix_ms().to_be_bytes()),
    }
}

fn field(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    bytes.push(tag);
    bytes.extend(value);
}

/// Reads a value. The outer `None` is for bytes that are none.
fn decode(rest: &mut &[u8]) -> Option<Option<Value>> {
    let [tag] = take(rest)?;
    Some(Some(match tag {
        0 => return Some(None),
        1 => {
            let length = usize::try_from(u32::from_be_bytes(take(rest)?)).ok()?;
            let (text, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            Value::String(std::str::from_utf8(text).ok()?.to_owned())
        }
        2 => Value::Bool(false),
        3 => Value::Bool(true),
        4 => Value::Int(i32::from_be_bytes(take(rest)?)),
        5 => Value::Long(i64::from_be_bytes(take(rest)?)),
        6 => Value::Float(f32::from_bits(u32::from_be_bytes(take(rest)?))),
        7 => Value::Double(f64::from_bits(u64::from_be_bytes(take(rest)?))),
        8 => Value::Date(Date::from_unix_ms(i64::from_be_bytes(take(rest)?))?),
        _ => return None,
    }))
}

/// Takes bytes from the beginning of a text.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*taken)
}
