//! The small files of a store beside its data files, as an inventory promises them.

use crate::journal::{IDENTITY_NAME, INDEX_MUST_HAVE_SEEN_NAME, LOST_NAME};

/// Each small file and its bit in the stored form.
const FILES: [(u16, &str); 3] = [(1, IDENTITY_NAME), (2, LOST_NAME), (4, INDEX_MUST_HAVE_SEEN_NAME)];

/// A set of small files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SmallFiles(u16);

impl SmallFiles {
    /// Those in a directory that has files of these names.
    pub(crate) fn among(names: &[String]) -> Self {
        let is_there = |name: &str| names.iter().any(|other| other == name);
        let bits = FILES.iter().filter(|(_, name)| is_there(name)).map(|(bit, _)| bit);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// From the stored form. Bits without a meaning are ignored.
    pub(crate) fn from_bits(bits: u16) -> Self {
        Self(FILES.iter().fold(0, |all, (bit, _)| all | bit) & bits)
    }

    /// The stored form.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// The files of both sets.
    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names of the files that are in this set and not in the other one.
    pub(crate) fn names_not_in(self, other: Self) -> impl Iterator<Item = &'static str> {
        FILES.iter().filter(move |(bit, _)| self.0 & !other.0 & bit != 0).map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_comes_back_and_names_what_is_missing() {
        let all = SmallFiles::among(&["x", "lost", "identity", "covered"].map(str::to_owned));
        let one = SmallFiles::among(&["lost".to_owned()]);
        assert_eq!((SmallFiles::from_bits(all.bits()), SmallFiles::from_bits(0xffff)), (all, all));
        assert_eq!(all.names_not_in(one).collect::<Vec<_>>(), ["identity", "covered"]);
        assert_eq!(one.names_not_in(all).count(), 0);
        assert_eq!(one.union(all), all);
        assert_eq!(SmallFiles::default().union(one), one);
    }
}
