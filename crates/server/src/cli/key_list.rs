//! The list of configuration keys that begin alike.

use super::config::effect;
use super::failure::Failure;
use super::output::Output;
use crate::config::{self, KeySpec, Meaning};
use serde_json::json;

/// The keys whose names begin with `prefix`, in the order of the registry.
pub fn with_prefix(prefix: &str) -> Vec<&'static KeySpec> {
    config::all_keys().filter(|spec| shown(spec).starts_with(prefix)).collect()
}

/// Whether a user who wrote `key` means the keys that begin with it, although a pattern matches it:
/// `search.solr` is matched by `search.**`, and is the beginning of `search.solr.port`.
pub fn is_meant_as_prefix(key: &str, spec: &KeySpec, begin_alike: &[&KeySpec]) -> bool {
    spec.name.contains('*') && begin_alike.iter().any(|other| other.name != spec.name && shown(other) != key)
}

/// Prints one line for each key: its name, its default, and the first sentence about it.
pub fn print(prefix: &str, keys: &[&'static KeySpec], out: Output) -> Result<(), Failure> {
    let entry = |spec: &&KeySpec| {
        json!({
            "key": shown(spec), "doc": spec.doc, "syntax": spec.kind.describe(), "default": spec.default,
            "effect": effect(spec), "riak": !spec.own,
        })
    };
    let json = json!({"prefix": prefix, "keys": keys.iter().map(entry).collect::<Vec<_>>()});
    out.result(&json, || keys.iter().map(|spec| line(spec)).collect::<Vec<_>>().join("\n"))
}

fn line(spec: &KeySpec) -> String {
    let default = spec.default.map_or_else(|| "not set by default".to_owned(), |default| format!("= {default}"));
    let note = if spec.meaning == Meaning::Works { "" } else { " (no effect)" };
    format!("{} {default}{note}\n    {}", shown(spec), first_sentence(spec.doc))
}

/// The name as a user writes it: a name that somebody chooses is `internal`.
fn shown(spec: &KeySpec) -> String {
    spec.name.replace("$name", "internal")
}

fn first_sentence(doc: &str) -> &str {
    // A word behind the full stop begins with a capital; "e.g. this" would not.
    let mut ends = doc.match_indices(". ").map(|(at, _)| at);
    let end = ends.find(|at| doc[at + 2..].starts_with(char::is_uppercase));
    end.map_or(doc, |at| &doc[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefix: &str) -> Vec<String> {
        with_prefix(prefix).into_iter().map(shown).collect()
    }

    #[test]
    fn a_prefix_finds_all_keys_that_begin_with_it() {
        assert_eq!(names("ssl.cert"), ["ssl.certfile"]);
        assert_eq!(
            names("tls_protocols.tlsv1."),
            ["tls_protocols.tlsv1.1", "tls_protocols.tlsv1.2", "tls_protocols.tlsv1.3"]
        );
        assert_eq!(names("listener.http.int"), ["listener.http.internal"]);
        assert!(names("cluster.").len() > 10 && names("nonsense").is_empty());
        assert_eq!(names("").len(), config::all_keys().count());
    }

    #[test]
    fn a_pattern_does_not_hide_the_keys_that_begin_with_a_name() {
        let is_prefix = |key: &str| config::find_key(key).map(|spec| is_meant_as_prefix(key, spec, &with_prefix(key)));
        assert_eq!(is_prefix("search.solr"), Some(true));
        assert_eq!(is_prefix("search.solr.port"), Some(false));
        assert_eq!(is_prefix("search.something"), Some(false));
        assert_eq!(is_prefix("anti_entropy"), Some(false), "the key itself is explained");
        assert_eq!(is_prefix("listener.http.mine"), Some(false));
    }

    #[test]
    fn a_line_has_the_first_sentence() {
        assert_eq!(first_sentence("One. Two."), "One.");
        assert_eq!(first_sentence("From 0.5 to 1. Then more."), "From 0.5 to 1.");
        assert_eq!(first_sentence("Only one."), "Only one.");
    }
}
