//! The command `ombak config`.

use super::args::{Common, ConfigCommand};
use super::failure::Failure;
use super::output::Output;
use super::{key_list, local_config};
use crate::config::{self, Effective, KeySpec, Meaning, Problem, Settings, Value};
use crate::node::{check_files, config_entries};
use serde_json::json;
use std::fmt::Write;

const EXAMPLE_WIDTH: usize = 100;

pub fn run(command: &ConfigCommand, common: &Common, out: Output) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check => check(common, out),
        ConfigCommand::Describe { key } => describe(key, common, out),
        ConfigCommand::Effective => effective(common, out),
        ConfigCommand::Example => out.line(&example()),
    }
}

fn check(common: &Common, out: Output) -> Result<(), Failure> {
    let loaded = local_config::load(common).and_then(|e| Settings::new(&e).map(|settings| (e, settings)));
    let (errors, warnings) = match &loaded {
        Ok((effective, settings)) => {
            let (errors, of_files) = check_files(settings);
            (errors, [lines(&effective.warnings), settings.backend.warnings(effective), of_files].concat())
        }
        Err(problems) => (lines(problems), lines(&[])),
    };
    for warning in &warnings {
        super::complain(&format!("warning: {warning}"));
    }
    let verdict = json!({"ok": errors.is_empty(), "errors": errors, "warnings": warnings});
    match (out.json, errors.is_empty()) {
        (_, true) => out.result(&verdict, || "config is OK".into()),
        (true, false) => {
            out.document(&verdict)?;
            Err(Failure::already_reported())
        }
        (false, false) => Err(Failure::new(errors.join("\n"))),
    }
}

fn lines(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// Loads the configuration for a command that cannot run without it.
pub fn load(common: &Common) -> Result<Effective, Failure> {
    local_config::load(common).map_err(|problems| Failure::new(lines(&problems).join("\n")))
}

fn effective(common: &Common, out: Output) -> Result<(), Failure> {
    let effective = load(common)?;
    let entries = config_entries(&effective);
    out.result(&json!({ "config": entries, "warnings": lines(&effective.warnings) }), || {
        entries.iter().map(|e| format!("{} = {}", e.key, quoted(&e.value))).collect::<Vec<_>>().join("\n")
    })
}

/// A value in a form that the parser of the configuration file reads back.
fn quoted(value: &str) -> String {
    if value.contains(['#', '"']) || value.trim() != value {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    }
}

fn describe(key: &str, common: &Common, out: Output) -> Result<(), Failure> {
    let begin_alike = key_list::with_prefix(key);
    let Some(spec) = config::find_key(key).filter(|spec| !key_list::is_meant_as_prefix(key, spec, &begin_alike)) else {
        return match begin_alike.is_empty() {
            true => Err(Failure::new(config::unknown_key(key))),
            false => key_list::print(key, &begin_alike, out),
        };
    };
    let effective = local_config::load(common).ok();
    let setting = effective.as_ref().and_then(|e| e.setting(key));
    let value = setting.and_then(|s| s.value.as_ref()).map(Value::to_string);
    let origin = setting.map(|s| s.origin.to_string());
    let json = json!({
        "key": key, "doc": spec.doc, "syntax": spec.kind.describe(), "default": spec.default, "value": value,
        "origin": origin, "variable": variable(key), "effect": effect(spec), "note": spec.warning(), "riak": !spec.own,
    });
    out.result(&json, || description(key, spec, value.as_deref(), origin.as_deref()))
}

/// Whether a key works, for programs.
pub(super) const fn effect(spec: &KeySpec) -> &'static str {
    match spec.meaning {
        Meaning::Works => "works",
        Meaning::NoEffect(_) => "none",
        Meaning::NotSupportedYet(_) => "not yet",
    }
}

fn description(key: &str, spec: &KeySpec, value: Option<&str>, origin: Option<&str>) -> String {
    let mut text = format!("{key}\n");
    for line in wrapped(spec.doc, EXAMPLE_WIDTH) {
        let _ = writeln!(text, "  {line}");
    }
    let mut row = |name: &str, value: &str| {
        let _ = write!(text, "\n  {name:<12}{value}");
    };
    row("value:", &spec.kind.describe());
    row("default:", spec.default.unwrap_or("none"));
    if let (Some(value), Some(origin)) = (value, origin) {
        row("in force:", &format!("{value} ({origin})"));
    }
    row("variable:", &variable(key));
    let below = format!("{key}.");
    match key_list::with_prefix(&below).len() {
        0 => {}
        count => row("see also:", &format!("{count} keys below it ('ombak config describe {below}')")),
    }
    if let Some(warning) = spec.warning() {
        row("note:", &warning);
    } else if spec.own {
        row("note:", "Riak does not have this key");
    }
    text
}

/// The environment variable that overrides a key.
fn variable(key: &str) -> String {
    format!("OMBAK_{}", key.to_ascii_uppercase().replace('.', "__"))
}

fn example() -> String {
    let mut text = String::from(
        "## Settings of Ombak, in the form of riak.conf. Every key that works is here with its default; remove the '#'\n\
         ## in front of those that you change. An environment variable goes before the file: OMBAK_ and the key in\n\
         ## capitals, with __ for each dot. 'ombak config check' checks the file.\n",
    );
    for spec in config::all_keys().filter(|s| s.meaning == Meaning::Works) {
        let name = spec.name.replace("$name", "internal");
        text.push('\n');
        for line in wrapped(spec.doc, EXAMPLE_WIDTH) {
            let _ = writeln!(text, "## {line}");
        }
        let _ = writeln!(text, "## Value: {}", spec.kind.describe());
        let _ = match spec.default {
            Some(default) => writeln!(text, "# {name} = {default}"),
            None => writeln!(text, "## Not set by default.\n# {name} ="),
        };
    }
    text.trim_end().to_owned()
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;
    use std::path::Path;

    #[test]
    fn the_example_with_all_its_keys_set_is_a_valid_file() {
        let active: String = example()
            .lines()
            .map(|line| line.strip_prefix("# ").unwrap_or(line))
            .filter(|line| !line.ends_with('='))
            .map(|line| format!("{line}\n"))
            .collect();
        let effective = Effective::merge(Some((Path::new("example"), &active)), &Overrides::default()).expect("valid");
        assert!(effective.warnings.is_empty(), "{:?}", effective.warnings);
        assert!(effective.setting("bitcask.sync.strategy").is_some_and(|s| s.origin == crate::config::Origin::File));
    }

    #[test]
    fn a_variable_leads_back_to_its_key() {
        assert_eq!(variable("listener.http.internal"), "OMBAK_LISTENER__HTTP__INTERNAL");
    }

    #[test]
    fn long_text_is_wrapped_between_words() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("toolongword x", 3), ["toolongword", "x"]);
    }
}
