//! Describes a configuration in words, for `--dry-run` and for reports.

use super::Planned;
use crate::config::{Config, Mode, words};
use crate::drivers::Plan;
use crate::generators::words::grouped;
use crate::term::Term;

/// Bytes that an object takes in each replica in addition to its value: clock, dates, content type,
/// bucket and key.
const OBJECT_BYTES: f64 = 200.0;

/// Operations that store nothing. Any other operation may store data.
const READS: &[&str] = &[
    "get",
    "get_existing",
    "get_pb",
    "alwaysget_pb",
    "alwaysget_http",
    "get_unique",
    "get_unique_http",
    "del",
    "delete",
    "delete_unique",
    "delete_unique_http",
    "query_postcode",
    "query_dob",
    "postcodequery_http",
    "dobquery_http",
    "listkeys",
    "list_keys",
    "pause_minute",
    "search",
    "search_interval",
    "stat",
];

/// Describes what a run will do, one fact per line. An indented line belongs to the line above it.
pub fn explain(planned: &Planned) -> Vec<String> {
    let Planned { config, changes } = planned;
    let mut lines = vec![format!("driver: {}", driver(config))];
    lines.extend(config.driver.describe().into_iter().map(indented));
    lines.push(workers(config));
    lines.push(length(config));
    lines.push("operations:".to_owned());
    lines.extend(operations(config).into_iter().map(indented));
    lines.push(keys(config));
    lines.push(format!("values: {}", values(config)));
    lines.push("data:".to_owned());
    lines.extend(volume(config).into_iter().map(indented));
    section(&mut lines, "changed by options:", changes);
    section(&mut lines, "warnings:", &config.warnings);
    section(&mut lines, "warnings:", &config.pools.warnings);
    lines
}

fn indented(line: String) -> String {
    format!("  {line}")
}

fn section(lines: &mut Vec<String>, title: &str, entries: &[String]) {
    if !entries.is_empty() {
        if !lines.iter().any(|line| line == title) {
            lines.push(title.to_owned());
        }
        lines.extend(entries.iter().cloned().map(indented));
    }
}

fn driver(config: &Config) -> &str {
    config.settings.get("driver").and_then(Term::as_atom).unwrap_or(Plan::DRIVER_DEFAULT)
}

fn workers(config: &Config) -> String {
    let count = match config.concurrent {
        1 => "1 worker".to_owned(),
        workers => format!("{} workers", grouped(workers as i128)),
    };
    match config.mode {
        Mode::Max => format!("workers: {count}, without a pause between operations"),
        Mode::Rate(rate) => format!(
            "workers: {count}, each with {rate} operations a second at random moments, {} a second together",
            rate * config.concurrent as f64
        ),
    }
}

fn length(config: &Config) -> String {
    let length = config.duration.map_or("until it is interrupted".to_owned(), words::length);
    let end = if config.shutdown_on_error { ", or until the first error" } else { "" };
    format!("length: {length}{end}; a line of results every {}", words::length(config.report_interval))
}

/// The operations with their shares in percent, aligned in columns.
fn operations(config: &Config) -> Vec<String> {
    let all: f64 = config.operations.iter().map(|operation| f64::from(operation.weight)).sum();
    let width = config.operations.iter().map(|operation| operation.label.chars().count()).max().unwrap_or_default();
    let line = |operation: &crate::config::Operation| {
        let share = f64::from(operation.weight) / all * 100.0;
        let share = if share < 0.05 { " < 0.1 %".to_owned() } else { format!("{share:6.1} %") };
        format!("{:width$} {share}", operation.label)
    };
    config.operations.iter().map(line).collect()
}

fn keys(config: &Config) -> String {
    let unused = driver(config) == "basho_bench_driver_nhs"
        && config.operations.iter().filter_map(|operation| name(&operation.term)).all(has_own_keys);
    let note = if unused { "; no operation uses them" } else { "" };
    format!("keys: {}{note}", config.keys.describe())
}

/// Whether an operation of the driver nhs does not use the key generator: it numbers its keys
/// itself, or it needs no key (docs/riak/basho-bench.md §4.2).
fn has_own_keys(name: &str) -> bool {
    name.starts_with("alwaysget_") || name.contains("_unique") || name.contains("query")
}

/// Describes the values. The mean size is left out if all values have the same size.
fn values(config: &Config) -> String {
    let what = config.values.describe();
    let fixed = name(config.values.term()).is_some_and(|name| name.starts_with("fixed_"));
    match config.values.mean_bytes() {
        Some(mean) if !fixed => format!("{what}; {} on average", size(mean)),
        _ => what,
    }
}

/// Describes how much data will be stored, as far as this can be known: for each kind of data, the
/// highest number of keys and their size.
fn volume(config: &Config) -> Vec<String> {
    let stores = driver(config) != "basho_bench_driver_null";
    let names = config.operations.iter().filter(|_| stores).filter_map(|operation| name(&operation.term));
    let (unique, others): (Vec<&str>, Vec<&str>) =
        names.filter(|name| !READS.contains(name)).partition(|name| name.starts_with("put_unique"));
    let (records, others): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|name| name.starts_with("alwaysget_update"));
    let mut lines = Vec::new();
    if !records.is_empty() {
        let keys = alwaysget_max(config).saturating_mul(config.concurrent as u128);
        lines.push(at_most(&records, Some(keys), config.values.mean_bytes()));
    }
    if !others.is_empty() {
        lines.push(at_most(&others, config.keys.space(), config.values.mean_bytes()));
    }
    if !unique.is_empty() {
        lines.push(format!(
            "{}: a new key each time, {} with every {} of them",
            unique.join(", "),
            size(1_000_000.0 * (unique_bytes(config) + OBJECT_BYTES)),
            grouped(1_000_000)
        ));
    }
    if lines.is_empty() {
        lines.push("nothing is stored".to_owned());
    }
    lines
}

fn at_most(names: &[&str], keys: Option<u128>, mean_bytes: Option<f64>) -> String {
    let names = names.join(", ");
    let Some(keys) = keys else {
        return format!("{names}: without bound, each key may be a new one");
    };
    let count = match keys {
        1 => "1 key".to_owned(),
        keys => format!("{} keys", grouped(i128::try_from(keys).unwrap_or(i128::MAX))),
    };
    match mean_bytes {
        Some(mean) => {
            format!("{names}: at most {count}, {} in each replica", size(keys as f64 * (mean + OBJECT_BYTES)))
        }
        None => format!("{names}: at most {count}"),
    }
}

/// The name of an operation or a generator without its parameters.
fn name(term: &Term) -> Option<&str> {
    term.as_atom().or_else(|| term.as_tuple()?.first()?.as_atom())
}

/// The highest number of records for each worker, from `{alwaysget, {Max, Min, Order}}`.
fn alwaysget_max(config: &Config) -> u128 {
    let max = || u128::try_from(config.settings.get("alwaysget")?.as_tuple()?.first()?.as_integer()?).ok();
    max().unwrap_or(1)
}

/// The size of each document, from `{unique, {Bytes, Order}}`.
fn unique_bytes(config: &Config) -> f64 {
    let bytes = || config.settings.get("unique")?.as_tuple()?.first()?.as_number();
    bytes().unwrap_or(8000.0)
}

/// A size such as `950 bytes`, `30.4 kB` or `1.8 TB`.
fn size(bytes: f64) -> String {
    if bytes < 1000.0 {
        return format!("{bytes:.0} bytes");
    }
    let units = ["kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", units.get(unit).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(text: &str, changes: &[&str]) -> Vec<String> {
        let changes = changes.iter().map(|change| change.to_string()).collect();
        explain(&Planned { config: Config::from_text(text).unwrap(), changes })
    }

    /// The lines below a title, without their indentation.
    fn below(lines: &[String], title: &str) -> Vec<String> {
        let rest = lines.iter().skip_while(|line| *line != title).skip(1);
        rest.take_while(|line| line.starts_with("  ")).map(|line| line.trim_start().to_owned()).collect()
    }

    fn data(text: &str) -> Vec<String> {
        below(&explained(text, &[]), "data:")
    }

    #[test]
    fn a_configuration_is_told_in_words() {
        let lines = explained(
            "{mode, max}. {duration, 1440}. {concurrent, 100}. {driver, basho_bench_driver_riakc_pb}. {log_level, info}.
             {key_generator, {eightytwenty_int, 60000000}}. {value_generator, {semi_compressible, 8000, 8000, 10, 0.1}}.
             {operations, [{get, 5}, {update, 1}]}. {sequential_int_state_dir, \"here\"}.",
            &["concurrent: 100 instead of 3"],
        );
        assert_eq!(lines[0], "driver: basho_bench_driver_riakc_pb");
        assert!(lines[1].starts_with("  ") && lines[1].contains("127.0.0.1:8087"), "{lines:#?}");
        for line in
            ["workers: 100 workers, without a pause between operations", "length: 24 h; a line of results every 10 s"]
        {
            assert!(lines.iter().any(|other| other == line), "{line} is not in {lines:#?}");
        }
        assert_eq!(below(&lines, "operations:"), ["get      83.3 %", "update   16.7 %"]);
        assert!(lines.iter().any(|line| line.starts_with("keys: ") && line.contains("60,000,000")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("values: ") && line.ends_with("30.4 kB on average")));
        assert_eq!(below(&lines, "data:"), ["update: at most 60,000,000 keys, 1.8 TB in each replica"]);
        assert_eq!(below(&lines, "changed by options:"), ["concurrent: 100 instead of 3"]);
        let warnings = below(&lines, "warnings:");
        assert!(warnings[0].starts_with("log_level") && warnings[1].starts_with("sequential_int_state_dir"));
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn defaults_are_told_too() {
        let lines = explained("", &[]);
        assert_eq!(lines[0], "driver: basho_bench_driver_http_raw");
        for line in [
            "workers: 3 workers, each with 5 operations a second at random moments, 15 a second together",
            "length: 5 min; a line of results every 10 s",
        ] {
            assert!(lines.iter().any(|other| other == line), "{line} is not in {lines:#?}");
        }
        assert_eq!(below(&lines, "operations:"), ["get      44.4 %", "put      44.4 %", "delete   11.1 %"]);
        assert_eq!(below(&lines, "data:"), ["put: at most 100,000 keys, 30.0 MB in each replica"]);
        assert!(!lines.iter().any(|line| line == "warnings:" || line == "changed by options:"));
        let endless = explained("{duration, infinity}. {shutdown_on_error, true}. {concurrent, 1}. {mode, max}.", &[]);
        assert!(endless.contains(
            &"length: until it is interrupted, or until the first error; a line of results every 10 s".into()
        ));
        assert!(endless.contains(&"workers: 1 worker, without a pause between operations".into()));
    }

    #[test]
    fn what_is_plain_is_not_said_twice() {
        let line =
            |text: &str, start: &str| explained(text, &[]).into_iter().find(|line| line.starts_with(start)).unwrap();
        assert!(!line("{value_generator, {fixed_bin, 50}}.", "values: ").contains("average"));
        assert!(line("{value_generator, {uniform_bin, 10, 30}}.", "values: ").ends_with("; 20 bytes on average"));
        let nhs = |operations| format!("{{driver, basho_bench_driver_nhs}}. {{operations, [{operations}]}}.");
        assert!(line(&nhs("{get_unique, 1}, {alwaysget_pb, 1}"), "keys: ").ends_with("; no operation uses them"));
        assert!(!line(&nhs("{get_unique, 1}, {get_pb, 1}"), "keys: ").contains("no operation"));
    }

    #[test]
    fn small_shares_are_not_nothing() {
        let lines = explained("{operations, [{get, 1}, {put, 5000}]}.", &[]);
        assert_eq!(below(&lines, "operations:"), ["get  < 0.1 %", "put  100.0 %"]);
    }

    #[test]
    fn volumes_are_estimated_where_they_are_bounded() {
        let nhs = "{driver, basho_bench_driver_nhs}. {concurrent, 100}. {alwaysget, {2000000, 700000, skew_order}}.
             {unique, {6000, key_order}}. {value_generator, {semi_compressible, 10000, 2000, 10, 0.1}}.";
        assert_eq!(
            data(&format!(
                "{nhs} {{operations, [{{alwaysget_pb, 1}}, {{alwaysget_updatewith2i, 1}}, {{put_unique, 1}}]}}."
            )),
            [
                "alwaysget_updatewith2i: at most 200,000,000 keys, 4.6 TB in each replica",
                "put_unique: a new key each time, 6.2 GB with every 1,000,000 of them",
            ]
        );
        assert_eq!(data("{operations, [{get, 1}, {delete, 1}]}."), ["nothing is stored"]);
        assert_eq!(
            data("{driver, basho_bench_driver_null}. {operations, [{do_something, 1}]}."),
            ["nothing is stored"]
        );
        assert_eq!(data("{key_generator, uuid_v4}."), ["put: without bound, each key may be a new one"]);
        assert_eq!(data("{value_generator, {uniform_int, 9}}."), ["put: at most 100,000 keys"]);
        assert_eq!(data("{key_generator, <<\"one\">>}."), ["put: at most 1 key, 300 bytes in each replica"]);
    }

    #[test]
    fn sizes_have_units() {
        for (bytes, words) in [
            (0.0, "0 bytes"),
            (999.0, "999 bytes"),
            (30_400.0, "30.4 kB"),
            (999_960.0, "1.0 MB"),
            (1.84e12, "1.8 TB"),
            (5e18, "5000.0 PB"),
        ] {
            assert_eq!(size(bytes), words);
        }
    }
}
