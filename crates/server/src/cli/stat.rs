//! The command `ombak admin stat show`: statistics by their names.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use hyper::Method;
use serde_json::{Map, Value};

/// Prints the statistics whose names match one of the patterns; without patterns, all of them. They
/// are those of `GET /stats`.
pub async fn show(patterns: &[String], common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let stats = request(&target, Method::GET, "/stats", "").await.map_err(|e| e.into_failure(&target))?;
    let wanted = |name: &str| patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, name));
    let all = stats.as_object().into_iter().flatten();
    let found: Map<String, Value> =
        all.filter(|(name, _)| wanted(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    if found.is_empty() {
        return Err(Failure::new(format!(
            "no statistic has a name like {}; the names are those of /stats, such as node_gets, and * stands for any \
             characters",
            patterns.join(" ")
        )));
    }
    let line = |(name, value): (&String, &Value)| {
        format!("{name} : {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let text = || found.iter().map(line).collect::<Vec<_>>().join("\n");
    out.result(&Value::Object(found.clone()), text)
}

/// Whether a name matches a pattern, in which each `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            let Some((_, behind)) = rest.split_once(middle) else { return false };
            rest = behind;
        }
    }
    match last {
        Some(end) => rest.ends_with(end),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name) in [
            ("node_gets", "node_gets"),
            ("node_*", "node_gets"),
            ("*gets", "node_gets"),
            ("n*_*s", "node_gets"),
            ("*", ""),
            ("**", "x"),
            ("a*b*b", "abb"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("node_gets", "node_gets_total"), ("node", "node_gets"), ("*puts", "node_gets"), ("a*a", "a"), ("", "x")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
