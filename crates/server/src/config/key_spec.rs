//! What is known about one key.

use super::value::Kind;

/// Whether setting a key changes anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// It does what its documentation says.
    Works,
    /// A key of Riak that has nothing to act on here; holds why.
    Ignored(&'static str),
    /// A key of a feature that this version does not have; holds the feature.
    NotYet(&'static str),
}

/// One key of the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeySpec {
    /// Its name. A segment that starts with `$` stands for any one segment, a last `**` for any number of them.
    pub name: &'static str,
    /// Its value syntax.
    pub kind: Kind,
    /// Its value when nobody sets it, in the form of the file; `None`: it has none then.
    pub default: Option<&'static str>,
    /// What it is for.
    pub doc: &'static str,
    /// Whether it has an effect.
    pub meaning: Meaning,
    /// Whether Riak does not have it.
    pub own: bool,
}

impl KeySpec {
    /// A key of Riak that works here. An empty default means none.
    pub const fn works(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self { name, kind, default: some_unless_empty(default), doc, meaning: Meaning::Works, own: false }
    }

    /// A key that Riak's file does not have.
    pub const fn own(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self { own: true, ..Self::works(name, kind, default, doc) }
    }

    /// A key of Riak that is accepted and changes nothing, because `why`.
    pub const fn no_meaning(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
        why: &'static str,
    ) -> Self {
        Self { meaning: Meaning::Ignored(why), ..Self::works(name, kind, default, doc) }
    }

    /// A key of Riak whose `feature` does not exist here yet.
    pub const fn not_yet(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
        feature: &'static str,
    ) -> Self {
        Self { meaning: Meaning::NotYet(feature), ..Self::works(name, kind, default, doc) }
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

    /// Whether the name stands for many keys.
    pub fn is_pattern(&self) -> bool {
        self.name.contains(['$', '*'])
    }

    /// The name with the segments of `key` in the place of those that stand for any.
    pub fn filled_from(&self, key: &str) -> String {
        let mut segments = key.split('.');
        let filled = self.name.split('.').map(|p| match segments.next() {
            Some(segment) if p.starts_with('$') => segment,
            _ => p,
        });
        filled.collect::<Vec<_>>().join(".")
    }

    /// What to tell somebody who sets it, when it has no effect.
    pub fn warning(&self) -> Option<String> {
        match self.meaning {
            Meaning::Works => None,
            Meaning::Ignored(why) => Some(format!("has no effect: {why}")),
            Meaning::NotYet(feature) => Some(format!("has no effect: this version does not have {feature} yet")),
        }
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
