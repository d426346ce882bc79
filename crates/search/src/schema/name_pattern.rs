//! Names with a wildcard at one end.

/// Names that begin or end with a text, or all names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// `*`
    All,
    /// `text*`
    Prefix(String),
    /// `*text`
    Suffix(String),
}

impl NamePattern {
    /// Reads a pattern: it has one `*`, at its beginning or its end.
    pub fn read(text: &str) -> Option<Self> {
        let pattern = match (text.strip_prefix('*'), text.strip_suffix('*')) {
            (Some(""), _) => return Some(Self::All),
            (Some(suffix), None) => Self::Suffix(suffix.to_owned()),
            (None, Some(prefix)) => Self::Prefix(prefix.to_owned()),
            _ => return None,
        };
        let (Self::Prefix(rest) | Self::Suffix(rest)) = &pattern else { return None };
        (!rest.contains('*')).then_some(pattern)
    }

    /// What the `*` stands for in a name; `None` if the name does not have this form.
    pub fn matched<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::All => Some(name),
            Self::Prefix(prefix) => name.strip_prefix(prefix.as_str()),
            Self::Suffix(suffix) => name.strip_suffix(suffix.as_str()),
        }
    }

    /// The name in which the `*` stands for a text.
    pub fn with(&self, matched: &str) -> String {
        match self {
            Self::All => matched.to_owned(),
            Self::Prefix(prefix) => format!("{prefix}{matched}"),
            Self::Suffix(suffix) => format!("{matched}{suffix}"),
        }
    }

    /// How long it is, with its `*`. The longest pattern that matches a name counts.
    pub fn length_chars(&self) -> usize {
        match self {
            Self::All => 1,
            Self::Prefix(rest) | Self::Suffix(rest) => rest.chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_its_wildcard_at_one_end() {
        assert_eq!(NamePattern::read("*"), Some(NamePattern::All));
        assert_eq!(NamePattern::read("*_s"), Some(NamePattern::Suffix("_s".into())));
        assert_eq!(NamePattern::read("random_*"), Some(NamePattern::Prefix("random_".into())));
        for text in ["", "a", "a*b", "*a*", "**", "a**", "***"] {
            assert_eq!(NamePattern::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_wildcard_can_stand_for_nothing() {
        let suffix = NamePattern::read("*_s").unwrap();
        assert_eq!(suffix.matched("_s"), Some(""));
        assert_eq!(suffix.matched("a_s"), Some("a"));
        assert_eq!(suffix.matched("a_ss"), None);
        assert_eq!(NamePattern::read("p_*").unwrap().with("a"), "p_a");
    }
}
