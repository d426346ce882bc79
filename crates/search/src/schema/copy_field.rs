//! Copies of values to other fields.

use super::name_pattern::NamePattern;

/// Which values are copied, and to where. Copies are not copied again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyField {
    pub(super) source: Name,
    pub(super) dest: Name,
    pub(super) chars_max: Option<usize>,
}

/// A name, or the form of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Exact(String),
    Pattern(NamePattern),
}

impl Name {
    pub(super) fn of(text: &str) -> Option<Self> {
        if text.contains('*') { NamePattern::read(text).map(Self::Pattern) } else { Some(Self::Exact(text.to_owned())) }
    }
}

/// A copy of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The name that the copy has.
    pub name: String,
    /// How many characters of a text are copied.
    pub chars_max: Option<usize>,
}

impl CopyField {
    /// The copy of a value with a name.
    pub(super) fn copied(&self, name: &str) -> Option<Copied> {
        let matched = match &self.source {
            Name::Exact(source) => (source == name).then_some("")?,
            Name::Pattern(pattern) => pattern.matched(name)?,
        };
        let name = match &self.dest {
            Name::Exact(dest) => dest.clone(),
            Name::Pattern(pattern) => pattern.with(matched),
        };
        Some(Copied { name, chars_max: self.chars_max })
    }
}
