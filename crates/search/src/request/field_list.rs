//! Which fields of documents are in an answer.

use super::limits::{FIELD_PATTERN_BYTES_MAX, FIELD_PATTERNS_MAX, FIELDS_MAX};
use super::request_error::{RequestError, RequestProblem, shown};
use std::collections::BTreeSet;

/// Which fields of documents are in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldList {
    /// All fields that are stored.
    pub has_all: bool,
    /// The score.
    pub has_score: bool,
    names: BTreeSet<String>,
    patterns: Vec<String>,
}

impl Default for FieldList {
    /// All fields and no score.
    fn default() -> Self {
        Self { has_all: true, has_score: false, names: BTreeSet::new(), patterns: Vec::new() }
    }
}

impl FieldList {
    /// Reads the values of the parameter `fl`: names and patterns with `*` and `?`, with commas or
    /// spaces between them. Without any, an answer has all fields.
    pub(super) fn read<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, RequestError> {
        let mut list = Self { has_all: false, ..Self::default() };
        let mut count = 0;
        for word in values.into_iter().flat_map(|value| value.split([',', ' ', '\t', '\r', '\n'])) {
            if word.is_empty() {
                continue;
            }
            count += 1;
            if count > FIELDS_MAX {
                return Err(RequestProblem::TooMany { most: FIELDS_MAX }.of("fl"));
            }
            list.add(word).map_err(|problem| problem.of("fl"))?;
        }
        Ok(if count == 0 { Self::default() } else { list })
    }

    fn add(&mut self, word: &str) -> Result<(), RequestProblem> {
        match word {
            "*" => self.has_all = true,
            "score" => self.has_score = true,
            word if word.contains(['(', ')', '[', ']', '{', '}', ':', '\'', '"', '$']) => {
                return Err(RequestProblem::NoFieldName(shown(word)));
            }
            word if word.contains(['*', '?']) => {
                if self.patterns.len() == FIELD_PATTERNS_MAX {
                    return Err(RequestProblem::TooMany { most: FIELD_PATTERNS_MAX });
                }
                if word.len() > FIELD_PATTERN_BYTES_MAX {
                    return Err(RequestProblem::TooLong { most: FIELD_PATTERN_BYTES_MAX });
                }
                self.patterns.push(word.to_owned());
            }
            name => {
                self.names.insert(name.to_owned());
            }
        }
        Ok(())
    }

    /// Whether a field is in the answer, if it is stored. The score is asked for with
    /// [`FieldList::has_score`]. Patterns cost time, so callers with many documents remember the
    /// answer for a name.
    pub fn wants(&self, name: &str) -> bool {
        self.has_all || self.names.contains(name) || self.patterns.iter().any(|pattern| is_match(pattern, name))
    }
}

/// Whether a name has the form of a pattern, in which `*` is any text and `?` one character. After
/// something else than expected only the last `*` is tried again, one character further on.
fn is_match(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let name_before = name.clone();
        let is_one = match (pattern.next(), name.next()) {
            (Some('*'), _) => {
                name = name_before;
                retry = Some((pattern.clone(), name.clone()));
                true
            }
            (None, None) => return true,
            (Some('?'), Some(_)) => true,
            (Some(wanted), Some(found)) => wanted == found,
            _ => false,
        };
        if is_one {
            continue;
        }
        let Some((pattern_again, name_again)) = &mut retry else { return false };
        if name_again.next().is_none() {
            return false;
        }
        (pattern, name) = (pattern_again.clone(), name_again.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, is) in [
            ("*_s", "a_s", true),
            ("*_s", "_s", true),
            ("*_s", "a_ss", false),
            ("a*", "a", true),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "acb", false),
            ("?_s", "é_s", true),
            ("?_s", "_s", false),
            ("a?", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(is_match(pattern, name), is, "{pattern} {name}");
        }
    }

    #[test]
    fn many_wildcards_cost_little() {
        assert!(!is_match(&"*a".repeat(1_000), &"a".repeat(999)));
        assert!(!is_match(&format!("{}b", "*a".repeat(500)), &"a".repeat(2_000)));
    }

    proptest! {
        #[test]
        fn patterns_mean_the_same_as_regular_expressions(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let regex = format!("^{}$", pattern.replace('*', ".*").replace('?', "."));
            prop_assert_eq!(is_match(&pattern, &name), regex::Regex::new(&regex).unwrap().is_match(&name));
        }
    }
}
