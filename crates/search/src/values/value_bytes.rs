//! Values as bytes: in the answers of nodes, and in stored documents.
//!
//! ```text
//!  00 missing   01 string: text   02 false   03 true   04 int i32   05 long i64
//!  06 float u32 (its bits)   07 double u64 (its bits)   08 date i64 (ms)
//!  09 text: text   0a bytes: length u32, bytes          text: length u32, UTF-8     all big-endian
//! ```
//!
//! The form has no version of its own: what contains values has one. Reading copies no more bytes
//! than there are.

use super::value::Value;
use crate::dates::Date;

/// Appends a value, or that it is missing.
pub fn write_value(value: Option<&Value>, bytes: &mut Vec<u8>) {
    match value {
        None => bytes.push(0),
        Some(Value::String(text)) => write_tagged(1, text.as_bytes(), bytes),
        Some(Value::Bool(is_true)) => bytes.push(2 + u8::from(*is_true)),
        Some(Value::Int(number)) => write_number(4, &number.to_be_bytes(), bytes),
        Some(Value::Long(number)) => write_number(5, &number.to_be_bytes(), bytes),
        Some(Value::Float(number)) => write_number(6, &number.to_bits().to_be_bytes(), bytes),
        Some(Value::Double(number)) => write_number(7, &number.to_bits().to_be_bytes(), bytes),
        Some(Value::Date(date)) => write_number(8, &date.unix_ms().to_be_bytes(), bytes),
        Some(Value::Text(text)) => write_tagged(9, text.as_bytes(), bytes),
        Some(Value::Bytes(content)) => write_tagged(10, content, bytes),
    }
}

/// Reads a value from the beginning of bytes. The outer `None` is for bytes that are none.
pub fn read_value(rest: &mut &[u8]) -> Option<Option<Value>> {
    let [tag] = take(rest)?;
    Some(Some(match tag {
        0 => return Some(None),
        1 => Value::String(read_text(rest)?),
        2 => Value::Bool(false),
        3 => Value::Bool(true),
        4 => Value::Int(i32::from_be_bytes(take(rest)?)),
        5 => Value::Long(i64::from_be_bytes(take(rest)?)),
        6 => Value::Float(f32::from_bits(u32::from_be_bytes(take(rest)?))),
        7 => Value::Double(f64::from_bits(u64::from_be_bytes(take(rest)?))),
        8 => Value::Date(Date::from_unix_ms(i64::from_be_bytes(take(rest)?))?),
        9 => Value::Text(read_text(rest)?),
        10 => Value::Bytes(read_bytes(rest)?.to_vec()),
        _ => return None,
    }))
}

/// Appends a text: its length and its bytes.
pub fn write_text(text: &str, bytes: &mut Vec<u8>) {
    write_bytes(text.as_bytes(), bytes);
}

/// Reads a text from the beginning of bytes.
pub fn read_text(rest: &mut &[u8]) -> Option<String> {
    Some(std::str::from_utf8(read_bytes(rest)?).ok()?.to_owned())
}

fn write_tagged(tag: u8, content: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(tag);
    write_bytes(content, bytes);
}

fn write_number(tag: u8, number: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(tag);
    bytes.extend(number);
}

/// What is longer than 4 GB is cut: a document has 64 MB at most.
fn write_bytes(content: &[u8], bytes: &mut Vec<u8>) {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_be_bytes());
    bytes.extend(content.iter().take(length as usize));
}

fn read_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u32::from_be_bytes(take(rest)?)).ok()?;
    let (content, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(content)
}

/// Takes bytes from the beginning of others.
pub fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*taken)
}
