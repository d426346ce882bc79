//! Riak's data types, by what clients see of them.

use super::error::ExtractError;
use super::extractor::text_of;
use super::pair::{Extracted, Pair, Pairs, Path};

const SEPARATOR: &str = ".";

/// What clients see of a data type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataTypeValue {
    /// The sum of a counter.
    Counter(i128),
    /// The members of a set.
    Set(Vec<Vec<u8>>),
    /// The members of a set that only grows.
    Gset(Vec<Vec<u8>>),
    /// The estimate of a HyperLogLog.
    Hll(u64),
    /// Whether a flag is set.
    Flag(bool),
    /// The value of a register.
    Register(Vec<u8>),
    /// The fields of a map.
    Map(Vec<(Vec<u8>, DataTypeValue)>),
}

impl DataTypeValue {
    /// The name of the type, which is also the end of the name of a field.
    fn type_name(&self) -> &'static str {
        match self {
            Self::Counter(_) => "counter",
            Self::Set(_) => "set",
            Self::Gset(_) => "gset",
            Self::Hll(_) => "hll",
            Self::Flag(_) => "flag",
            Self::Register(_) => "register",
            Self::Map(_) => "map",
        }
    }
}

/// Reads a data type. One outside of maps has the name of its type. A field of a map has its own
/// name and the name of its type (`name_register`); those of maps inside maps are joined with dots.
///
/// # Errors
/// A name or value is not UTF-8, or the value has more than fits.
pub fn extract_data_type(value: &DataTypeValue) -> Result<Vec<Pair>, ExtractError> {
    let mut pairs = Pairs::default();
    let mut path = Path::default();
    match value {
        DataTypeValue::Map(fields) => visit_map(fields, &mut path, &mut pairs)?,
        value => {
            path.enter("", value.type_name())?;
            visit(value, &mut path, &mut pairs)?;
        }
    }
    Ok(pairs.into_list())
}

fn visit_map(fields: &[(Vec<u8>, DataTypeValue)], path: &mut Path, pairs: &mut Pairs) -> Result<(), ExtractError> {
    for (name, value) in fields {
        let separator = if path.as_str().is_empty() { "" } else { SEPARATOR };
        let before = path.enter(separator, &format!("{}_{}", text_of(name)?, value.type_name()))?;
        visit(value, path, pairs)?;
        path.leave(before);
    }
    Ok(())
}

/// Collects a value under its name. Each map inside a map makes the name longer, so that their
/// number is bounded.
fn visit(value: &DataTypeValue, path: &mut Path, pairs: &mut Pairs) -> Result<(), ExtractError> {
    match value {
        DataTypeValue::Counter(sum) => pairs.push_text(path.as_str(), &sum.to_string()),
        DataTypeValue::Hll(estimate) => pairs.push_text(path.as_str(), &estimate.to_string()),
        DataTypeValue::Flag(is_set) => pairs.push(path.as_str(), Extracted::Bool(*is_set)),
        DataTypeValue::Register(text) => pairs.push_text(path.as_str(), text_of(text)?),
        DataTypeValue::Set(members) | DataTypeValue::Gset(members) => {
            members.iter().try_for_each(|member| pairs.push_text(path.as_str(), text_of(member)?))
        }
        DataTypeValue::Map(fields) => visit_map(fields, path, pairs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(value: &DataTypeValue) -> Vec<(String, Extracted)> {
        extract_data_type(value).unwrap().into_iter().map(|pair| (pair.name, pair.value)).collect()
    }

    fn text(name: &str, value: &str) -> (String, Extracted) {
        (name.to_owned(), Extracted::Text(value.to_owned()))
    }

    #[test]
    fn data_types_outside_of_maps_have_the_name_of_their_type() {
        use DataTypeValue as V;
        assert_eq!(pairs(&V::Counter(-5)), [text("counter", "-5")]);
        assert_eq!(pairs(&V::Hll(7)), [text("hll", "7")]);
        let members = vec![b"Riak".to_vec(), b"Cassandra".to_vec()];
        assert_eq!(pairs(&V::Set(members.clone())), [text("set", "Riak"), text("set", "Cassandra")]);
        assert_eq!(pairs(&V::Gset(members)), [text("gset", "Riak"), text("gset", "Cassandra")]);
        assert!(pairs(&V::Map(Vec::new())).is_empty());
    }

    #[test]
    fn fields_of_maps_have_the_end_of_their_type() {
        use DataTypeValue as V;
        let map = V::Map(vec![
            (b"activated".to_vec(), V::Flag(true)),
            (b"name".to_vec(), V::Register(b"Chris".to_vec())),
            (b"phones".to_vec(), V::Set(vec![b"1".to_vec(), b"2".to_vec()])),
            (b"views".to_vec(), V::Counter(1502)),
            (b"events".to_vec(), V::Map(vec![(b"RICON".to_vec(), V::Register(b"spoke".to_vec()))])),
        ]);
        assert_eq!(
            pairs(&map),
            [
                ("activated_flag".to_owned(), Extracted::Bool(true)),
                text("name_register", "Chris"),
                text("phones_set", "1"),
                text("phones_set", "2"),
                text("views_counter", "1502"),
                text("events_map.RICON_register", "spoke"),
            ]
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let register = DataTypeValue::Map(vec![(b"a".to_vec(), DataTypeValue::Register(vec![0xff]))]);
        assert_eq!(extract_data_type(&register), Err(ExtractError::NotUtf8));
        let name = DataTypeValue::Map(vec![(vec![0xff], DataTypeValue::Flag(true))]);
        assert_eq!(extract_data_type(&name), Err(ExtractError::NotUtf8));
    }

    #[test]
    fn maps_inside_maps_are_bounded() {
        let mut map = DataTypeValue::Map(Vec::new());
        for _ in 0..1_000 {
            map = DataTypeValue::Map(vec![(Vec::new(), map)]);
        }
        assert_eq!(extract_data_type(&map), Err(ExtractError::NameTooLong));
    }
}
