//! The names of nodes, for log lines that have their numbers.

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many numbers are remembered at most. A member has two, and those of members that have left
/// stay.
const NUMBERS_MAX: usize = 4096;

/// The names that belong to the numbers of nodes and of their metadata logs. A member adds what it
/// learns, and the log reads it. Names of members that have left stay, because lines about them
/// come later.
#[derive(Debug, Default)]
pub struct NodeNames(RwLock<BTreeMap<u64, Arc<str>>>);

impl NodeNames {
    /// Remembers the name that belongs to a number. Names that would need an escape in JSON are
    /// left out, and so are new numbers if there are too many.
    pub fn learn(&self, number: u64, name: &str) {
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
        if name.is_empty() || !name.chars().all(is_plain) || self.name_of(number).as_deref() == Some(name) {
            return;
        }
        let mut names = self.0.write();
        if names.len() < NUMBERS_MAX || names.contains_key(&number) {
            names.insert(number, name.into());
        }
    }

    /// The name that belongs to a number.
    pub fn name_of(&self, number: u64) -> Option<Arc<str>> {
        self.0.read().get(&number).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_remembered_up_to_a_bound_and_change() {
        let names = NodeNames::default();
        (0..5000).for_each(|number| names.learn(number, "a@h"));
        assert_eq!((names.name_of(4095).as_deref(), names.name_of(4096)), (Some("a@h"), None));
        names.learn(7, "b@h");
        assert_eq!(names.name_of(7).as_deref(), Some("b@h"));
        for odd in ["", "a\"b", "a\\b", "a b", "a\n"] {
            names.learn(8, odd);
        }
        assert_eq!(names.name_of(8).as_deref(), Some("a@h"));
    }
}
