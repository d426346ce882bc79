//! What answers tell of a document, as it is stored.
//!
//! ```text
//!  01 (the version)   count u32, then each field: name text, count u32, values
//! ```
//!
//! Fields lie in the order in which they are told: those of the value in the order of their first
//! values, and then `_yz_id`, `_yz_rk`, `_yz_rt` and `_yz_rb`.

use ombak_search::values::{Value, read_text, read_value, take, write_text, write_value};

const VERSION: u8 = 1;

/// Fields with their values.
pub(crate) type Fields = Vec<(String, Vec<Value>)>;

/// The bytes of fields.
pub(crate) fn to_bytes(fields: &[(&str, Vec<&Value>)]) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    write_count(fields.len(), &mut bytes);
    for (name, values) in fields {
        write_text(name, &mut bytes);
        write_count(values.len(), &mut bytes);
        values.iter().for_each(|value| write_value(Some(value), &mut bytes));
    }
    bytes
}

/// A document has far fewer values than fit (`DOCUMENT_VALUES_MAX`).
fn write_count(count: usize, bytes: &mut Vec<u8>) {
    bytes.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

/// The fields of bytes; `None` if they are none.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Fields> {
    let mut rest = bytes;
    let [VERSION] = take(&mut rest)? else { return None };
    let mut fields = Vec::new();
    for _ in 0..u32::from_be_bytes(take(&mut rest)?) {
        let name = read_text(&mut rest)?;
        let mut values = Vec::new();
        for _ in 0..u32::from_be_bytes(take(&mut rest)?) {
            values.push(read_value(&mut rest)??);
        }
        fields.push((name, values));
    }
    rest.is_empty().then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_damage_is_seen() {
        let (one, two) = (Value::Int(7), Value::String("é".into()));
        let bytes = to_bytes(&[("a_is", vec![&one, &one]), ("b_s", vec![&two])]);
        let fields = vec![("a_is".to_owned(), vec![one.clone(), one]), ("b_s".to_owned(), vec![two])];
        assert_eq!(from_bytes(&bytes), Some(fields));
        for end in 0..bytes.len() {
            assert_eq!(from_bytes(&bytes[..end]), None);
        }
        assert_eq!(from_bytes(&[2, 0, 0, 0, 0]), None);
    }
}
