//! The specification of one key.

use super::value::Kind;

/// Whether setting a key has an effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// The key does what its documentation says.
    Works,
    /// A key of Riak that has no effect here. The text says why.
    NoEffect(&'static str),
    /// A key of a feature that this version does not have yet. The text names the feature.
    NotSupportedYet(&'static str),
}

/// The specification of one key of the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeySpec {
    /// The name. A segment that starts with `$` stands for any one segment, and a final `**` for
    /// one or more segments.
    pub name: &'static str,
    /// The syntax of the value.
    pub kind: Kind,
    /// The default value, in the form of the file; `None` if the key has no default.
    pub default: Option<&'static str>,
    /// The documentation of the key.
    pub doc: &'static str,
    /// Whether setting the key has an effect.
    pub meaning: Meaning,
    /// Whether this is a key of Ombak that Riak does not have.
    pub own: bool,
}

impl KeySpec {
    /// A key of Riak that works here. An empty `default` means no default.
    pub const fn works(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self { name, kind, default: some_unless_empty(default), doc, meaning: Meaning::Works, own: false }
    }

    /// A key of Ombak that Riak does not have.
    pub const fn own(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self { own: true, ..Self::works(name, kind, default, doc) }
    }

    /// A key of Riak that is accepted without effect, for the reason `why`.
    pub const fn no_meaning(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
        why: &'static str,
    ) -> Self {
        Self { meaning: Meaning::NoEffect(why), ..Self::works(name, kind, default, doc) }
    }

    /// A key of Riak for a `feature` that does not exist here yet.
    pub const fn not_yet(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
        feature: &'static str,
    ) -> Self {
        Self { meaning: Meaning::NotSupportedYet(feature), ..Self::works(name, kind, default, doc) }
    }

    /// Whether `key` is this key or an instance of its pattern.
    pub fn matches(&self, key: &str) -> bool {
        let mut pattern = self.name.split('.');
        let mut segments = key.split('.');
        loop {
            match (pattern.next(), segments.next()) {
                (None, None) => return true,
                (Some("**"), Some(first)) => return !first.is_empty(),
                (Some(p), Some(s)) if p == s || (p.starts_with('$') && !s.is_empty()) => {}
                _ => return false,
            }
        }
    }

    /// Whether the name is a pattern that stands for many keys.
    pub fn is_pattern(&self) -> bool {
        self.name.contains(['$', '*'])
    }

    /// The name with the segments of `key` in place of its `$` segments.
    pub fn filled_from(&self, key: &str) -> String {
        let mut segments = key.split('.');
        let filled = self.name.split('.').map(|p| match segments.next() {
            Some(segment) if p.starts_with('$') => segment,
            _ => p,
        });
        filled.collect::<Vec<_>>().join(".")
    }

    /// Why the key has no effect; `None` if it works.
    pub fn reason(&self) -> Option<String> {
        match self.meaning {
            Meaning::Works => None,
            Meaning::NoEffect(why) => Some(why.to_owned()),
            Meaning::NotSupportedYet(feature) => Some(format!("this version does not have {feature} yet")),
        }
    }

    /// The note for somebody who reads about a key without effect; `None` if the key works.
    pub fn warning(&self) -> Option<String> {
        self.reason().map(|why| format!("has no effect: {why}"))
    }
}

const fn some_unless_empty(text: &'static str) -> Option<&'static str> {
    if text.is_empty() { None } else { Some(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_segments() {
        let listener = KeySpec::works("listener.http.$name", Kind::Address, "", "");
        assert!(listener.matches("listener.http.internal"));
        assert!(!listener.matches("listener.http"));
        assert!(!listener.matches("listener.http."));
        assert!(!listener.matches("listener.http.a.b"));
        let family = KeySpec::works("leveldb.**", Kind::Text, "", "");
        assert!(family.matches("leveldb.block.size") && family.matches("leveldb.x"));
        assert!(!family.matches("leveldb") && !family.matches("leveldbx.y"));
    }
}
