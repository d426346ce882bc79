//! The rules for names and text of metrics that `promtool check metrics` checks, and some rules of
//! the format itself.
//!
//! Rules: <https://prometheus.io/docs/practices/naming/> and
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::{BTreeMap, BTreeSet};

/// Abbreviations of units. A name must write out its unit.
const ABBREVIATIONS: [&str; 14] = ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];
/// Units that are multiples or fractions of base units. The base units are seconds, bytes, ratio,
/// meters and degrees Celsius.
const SCALED_UNITS: [&str; 16] = [
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "minutes",
    "hours",
    "days",
    "weeks",
    "kilobytes",
    "megabytes",
    "gigabytes",
    "terabytes",
    "petabytes",
    "kibibytes",
    "mebibytes",
    "bits",
    "percent",
];
const TYPES: [&str; 5] = ["counter", "gauge", "summary", "histogram", "untyped"];

#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    samples: usize,
}

/// All violations of the rules in a text of metrics, one line each.
pub fn violations(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut series = BTreeSet::new();
    let mut last = String::new();
    if !text.ends_with('\n') {
        out.push("the text does not end with a line feed".to_owned());
    }
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
            let family = families.entry(name.to_owned()).or_default();
            if !family.help.is_empty() || help.trim().is_empty() {
                out.push(format!("{name}: HELP is empty, or there are two"));
            }
            family.help = help.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            let family = families.entry(name.to_owned()).or_default();
            if !family.kind.is_empty() || family.samples > 0 || !TYPES.contains(&kind) {
                out.push(format!("{name}: TYPE {kind} is unknown, comes twice, or after a sample"));
            }
            family.kind = kind.to_owned();
        } else {
            let (id, value) = line.rsplit_once(' ').unwrap_or((line, ""));
            let name = id.split('{').next().unwrap_or_default();
            let family_name = family_of(name, &families);
            if !series.insert(id.to_owned()) {
                out.push(format!("{id}: two samples"));
            }
            if value.parse::<f64>().is_err() {
                out.push(format!("{id}: the value '{value}' is no number"));
            }
            match families.get_mut(&family_name) {
                Some(family) if family.samples > 0 && last != family_name => {
                    out.push(format!("{family_name}: its samples do not follow each other"));
                }
                Some(family) => {
                    family.samples += 1;
                    if id.contains("quantile=") && family.kind != "summary" {
                        out.push(format!("{name}: 'quantile' is a label of summaries"));
                    }
                }
                None => out.push(format!("{name}: a sample without HELP and TYPE before it")),
            }
            last = family_name;
        }
    }
    out.extend(families.iter().flat_map(|(name, family)| of_family(name, family)));
    out
}

/// The family that a sample belongs to: a summary has two names more than its own.
fn family_of(name: &str, families: &BTreeMap<String, Family>) -> String {
    let stem = name.strip_suffix("_sum").or_else(|| name.strip_suffix("_count")).unwrap_or(name);
    let is_summary = families.get(stem).is_some_and(|family| family.kind == "summary");
    if is_summary { stem.to_owned() } else { name.to_owned() }
}

fn of_family(name: &str, family: &Family) -> Vec<String> {
    let mut out = Vec::new();
    let mut broken = |what: &str| out.push(format!("{name}: {what}"));
    if family.help.is_empty() || family.kind.is_empty() {
        broken("HELP or TYPE is missing");
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
        broken("the name has other characters than lower-case letters, digits and _");
    }
    if (family.kind == "counter") != name.ends_with("_total") {
        broken("counters end in _total, and nothing else does");
    }
    if ["_count", "_sum", "_bucket"].iter().any(|suffix| name.ends_with(suffix)) {
        broken("_count, _sum and _bucket are parts of summaries and histograms");
    }
    for word in name.split('_') {
        if ABBREVIATIONS.contains(&word) {
            broken(&format!("'{word}' may be the abbreviation of a unit"));
        }
        if SCALED_UNITS.contains(&word) {
            broken(&format!("'{word}' is no base unit"));
        }
        if TYPES.contains(&word) {
            broken(&format!("'{word}' is a type and does not belong into a name"));
        }
    }
    out
}

#[test]
fn each_rule_is_noticed() {
    let well = "# HELP x_total What.\n# TYPE x_total counter\nx_total 1\n# HELP y_seconds What.\n\
                # TYPE y_seconds summary\ny_seconds{quantile=\"1\"} NaN\ny_seconds_sum 1\ny_seconds_count 2\n";
    assert_eq!(violations(well), Vec::<String>::new());
    for (broken, words) in [
        ("# HELP x What.\n# TYPE x counter\nx 1\n", "_total"),
        ("# HELP x_total What.\n# TYPE x_total gauge\nx_total 1\n", "_total"),
        ("# HELP x_count What.\n# TYPE x_count gauge\nx_count 1\n", "_count"),
        ("# HELP pb_x What.\n# TYPE pb_x gauge\npb_x 1\n", "'pb'"),
        ("# HELP x_milliseconds What.\n# TYPE x_milliseconds gauge\nx_milliseconds 1\n", "base unit"),
        ("# HELP x_gauge What.\n# TYPE x_gauge gauge\nx_gauge 1\n", "is a type"),
        ("# HELP xY What.\n# TYPE xY gauge\nxY 1\n", "characters"),
        ("# HELP x What.\n# TYPE x gauge\nx 1\nx 2\n", "two samples"),
        ("# HELP x What.\n# TYPE x gauge\nx much\n", "is no number"),
        ("# TYPE x gauge\nx 1\n", "HELP"),
        ("# HELP x What.\n# TYPE x gauge\n# TYPE x gauge\nx 1\n", "twice"),
        ("x 1\n", "without HELP"),
        ("# HELP x What.\n# TYPE x gauge\nx{quantile=\"1\"} 1\n", "quantile"),
        ("# HELP x What.\n# TYPE x gauge\nx{a=\"1\"} 1\n# HELP z What.\n# TYPE z gauge\nz 1\nx{a=\"2\"} 1\n", "follow"),
        ("# HELP x What.\n# TYPE x gauge\nx 1", "line feed"),
    ] {
        let found = violations(broken);
        assert!(found.iter().any(|line| line.contains(words)), "{words}: {found:?}");
    }
}
