//! The names of users and groups.

use crate::bounds::NAME_BYTES_MAX;
use ombak_types::is_deceptive;

/// Names that mean something in commands.
const RESERVED: [&str; 5] = ["all", "on", "to", "from", "any"];

/// A name as it is stored. Riak changes the capital letters of Latin-1 to small ones, and no
/// others.
pub(crate) fn stored(name: &str) -> String {
    let small = |c: char| match c {
        'A'..='Z' | 'À'..='Ö' | 'Ø'..='Þ' => char::from_u32(c as u32 + 32).unwrap_or(c),
        other => other,
    };
    name.chars().map(small).collect()
}

/// Whether a stored name has a meaning in commands.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Whether a stored name has only characters that a name can have, at least one of them. Beyond
/// what Riak refuses, characters that cannot be seen are refused: two names would look the same.
pub(crate) fn is_legal(name: &str) -> bool {
    let is_illegal =
        |c: char| matches!(u32::from(c), 0..=44 | 58..=63 | 127..=191) || c.is_whitespace() || is_deceptive(c);
    !name.is_empty() && !name.chars().any(is_illegal)
}

/// Checks the name of a record.
pub(crate) fn check(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the name has more than {NAME_BYTES_MAX} bytes"));
    }
    if !is_legal(name) || is_reserved(name) || stored(name) != name {
        return Err("the name is none that a user or a group can have".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stored_as_riak_stores_them() {
        assert_eq!(stored("ALICE"), "alice");
        assert_eq!(stored("JÜRGEN×"), "jürgen×");
        assert_eq!(stored("ΣΩ"), "ΣΩ", "letters outside of Latin-1 stay");
    }

    #[test]
    fn names_have_no_characters_that_mean_something_or_cannot_be_seen() {
        for legal in ["alice", "a@b", "a.b-c_d/e", "cert_user", "ユーザ", "100%"] {
            // A percent sign is among the first 44.
            assert_eq!(is_legal(legal), legal != "100%", "{legal}");
        }
        for illegal in ["", "a b", "a,b", "a:b", "a=b", "a\nb", "\u{80}", "¿", "a\u{202e}b", "a\u{3000}b", "a\u{200b}"]
        {
            assert!(!is_legal(illegal), "{illegal:?}");
        }
        for refused in ["all", "Alice", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert!(check(refused).is_err(), "{refused}");
        }
        assert_eq!(check(&"x".repeat(NAME_BYTES_MAX)), Ok(()));
    }
}
