//! The names of indexes and schemas.

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A name is not valid. `Display` begins with Riak's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// A character of the name of an index, or its length.
    #[error("Invalid character in index name: it has 1 to 255 characters of ASCII, without / and control characters")]
    Index,
    /// A character of the name of a schema, or its length.
    #[error("Invalid character in schema name: it has 1 to 255 characters of ASCII, without / and control characters")]
    Schema,
}

/// Checks the name of an index.
pub(crate) fn check_index_name(name: &str) -> Result<(), NameProblem> {
    if is_name(name) { Ok(()) } else { Err(NameProblem::Index) }
}

/// Checks the name of a schema.
pub(crate) fn check_schema_name(name: &str) -> Result<(), NameProblem> {
    if is_name(name) { Ok(()) } else { Err(NameProblem::Schema) }
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'/' || byte == b' ';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printable_and_not_too_long() {
        for name in ["people", "_yz_default", "a.b-c d:e*", &"n".repeat(255)] {
            assert_eq!(check_index_name(name), Ok(()), "{name}");
        }
        for name in ["", "a/b", "a\nb", "größe", "a\u{7f}", &"n".repeat(256)] {
            assert_eq!(check_index_name(name), Err(NameProblem::Index), "{name}");
            assert_eq!(check_schema_name(name), Err(NameProblem::Schema), "{name}");
        }
    }
}
