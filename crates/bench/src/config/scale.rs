//! Reduces a run: the number of keys, the duration and the data volume shrink together, so that
//! their ratios stay the same.
//!
//! Weights, rates, the number of workers and the sizes of values do not change.

use super::{ConfigError, Settings, globals, words};
use crate::term::Term;
use std::time::Duration;

/// The shortest duration to which a run is reduced.
const DURATION_MIN: Duration = Duration::from_secs(1);
/// The least number of windows in a reduced run, unless they would become shorter than a second.
const WINDOWS_MIN: u64 = 10;
/// The least number of keys of generators that prefer a fifth of the keys, so that this fifth has a
/// key.
const FIFTHS_MIN: i128 = 5;

/// The settings of a reduced run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// The settings.
    pub settings: Settings,
    /// The changes, in words.
    pub changes: Vec<String>,
}

/// Reduces a run to `factor` (above 0, at most 1) of what is configured. If a length is given, the
/// run has that length instead.
pub fn scale(settings: &Settings, factor: f64, length: Option<Duration>) -> Result<Scaled, ConfigError> {
    if !(factor > 0.0 && factor <= 1.0) {
        return Err(ConfigError::setting("--scale", format!("a number above 0 and at most 1, not {factor}")));
    }
    let mut scaled = Scaled { settings: settings.clone(), changes: Vec::new() };
    let workers = globals::concurrent(settings)? as i128;
    let keys = globals::key_generator(settings);
    scaled.change("key_generator", keys.clone(), keys_scaled(&keys, factor, workers));
    for key in ["alwaysget", "riakc_pb_preloaded_keys"] {
        if let Some(term) = settings.get(key) {
            scaled.change(key, term.clone(), counts_scaled(term, factor));
        }
    }
    let before = globals::duration(settings)?;
    let shrunk = before.map(|before| before.mul_f64(factor).max(DURATION_MIN.min(before)));
    if let Some(after) = length.or(shrunk) {
        scaled.last(before, after)?;
    }
    Ok(scaled)
}

impl Scaled {
    fn change(&mut self, key: &str, before: Term, after: Term) {
        if before != after {
            self.changes.push(format!("{key}: {after} instead of {before}"));
            self.settings.set(key, after);
        }
    }

    /// Sets the duration of the run, and a report interval that fits it.
    fn last(&mut self, before: Option<Duration>, after: Duration) -> Result<(), ConfigError> {
        if before == Some(after) {
            return Ok(());
        }
        let before = before.map_or("no end".to_owned(), words::length);
        self.changes.push(format!("duration: {} instead of {before}", words::length(after)));
        self.settings.set("duration", Term::Float(after.as_secs_f64() / 60.0));
        let window = globals::report_interval(&self.settings)?;
        let narrow = Duration::from_secs((after.as_secs() / WINDOWS_MIN).max(1));
        if narrow < window {
            let (narrow_words, window) = (words::length(narrow), words::length(window));
            self.changes.push(format!("report_interval: {narrow_words} instead of {window}"));
            self.settings.set("report_interval", Term::Integer(narrow.as_secs().into()));
        }
        Ok(())
    }
}

/// A key generator with a smaller key space. A generator that it wraps is scaled recursively. A
/// generator without a space of integers stays unchanged.
fn keys_scaled(term: &Term, factor: f64, workers: i128) -> Term {
    let Term::Tuple(parts) = term else { return term.clone() };
    let Some((head, rest)) = parts.split_first() else { return term.clone() };
    let keys_min = match head.as_atom() {
        Some("uniform_int" | "sequential_int") => Some(1),
        Some("eightytwenty_int" | "pareto_int" | "truncated_pareto_int") => Some(FIFTHS_MIN),
        Some("partitioned_sequential_int") => Some(workers),
        Some("valgen" | "file_line_bin") => return term.clone(),
        _ => None,
    };
    let rest: Vec<Term> = match (keys_min, rest.split_last()) {
        (Some(keys_min), Some((keys, start))) => {
            start.iter().cloned().chain([number_scaled(keys, factor, keys_min)]).collect()
        }
        _ => rest.iter().map(|inner| keys_scaled(inner, factor, workers)).collect(),
    };
    Term::Tuple([head.clone()].into_iter().chain(rest).collect())
}

/// Scales a number, or the numbers in a tuple.
fn counts_scaled(term: &Term, factor: f64) -> Term {
    match term {
        Term::Tuple(parts) => Term::Tuple(parts.iter().map(|part| number_scaled(part, factor, 1)).collect()),
        term => number_scaled(term, factor, 1),
    }
}

/// Scales a number. The result is not lower than `min`, unless the number was lower already.
fn number_scaled(term: &Term, factor: f64, min: i128) -> Term {
    match term {
        Term::Integer(number) => {
            let least = min.min(*number);
            Term::Integer(((*number as f64 * factor).round() as i128).clamp(least, (*number).max(least)))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scaled(text: &str, factor: f64) -> Scaled {
        scale(&Settings::from_text("test", text).unwrap(), factor, None).unwrap()
    }

    fn value(text: &str, factor: f64, key: &str) -> String {
        scaled(text, factor).settings.get(key).map(Term::to_string).unwrap_or_default()
    }

    #[test]
    fn key_spaces_shrink_wherever_they_are_nested() {
        for (generator, smaller) in [
            ("{uniform_int, 10000}", "{uniform_int, 100}"),
            ("{uniform_int, 500, 1000}", "{uniform_int, 500, 10}"),
            ("{eightytwenty_int, 60000000}", "{eightytwenty_int, 600000}"),
            ("{pareto_int, 1000}", "{pareto_int, 10}"),
            ("{truncated_pareto_int, 1000}", "{truncated_pareto_int, 10}"),
            ("{sequential_int, 1000}", "{sequential_int, 10}"),
            ("{partitioned_sequential_int, 7, 1000}", "{partitioned_sequential_int, 7, 10}"),
            ("{{int_to_bin_bigendian, 64}, {uniform_int, 1000}}", "{{int_to_bin_bigendian, 64}, {uniform_int, 10}}"),
            ("{to_binstr, \"~10..0w\", {uniform_int, 1000}}", "{to_binstr, \"~10..0w\", {uniform_int, 10}}"),
            (
                "{concat_binary, <<\"a\">>, {int_to_bin, {uniform_int, 1000}}}",
                "{concat_binary, <<\"a\">>, {int_to_bin, {uniform_int, 10}}}",
            ),
        ] {
            assert_eq!(value(&format!("{{key_generator, {generator}}}."), 0.01, "key_generator"), smaller);
        }
        assert_eq!(value("", 0.01, "key_generator"), "{uniform_int, 1000}");
    }

    #[test]
    fn other_keys_stay() {
        for generator in ["uuid_v4", "<<\"one\">>", "{valgen, {uniform_int, 1000}}", "{file_line_bin, \"keys\"}"] {
            let scaled = scaled(&format!("{{key_generator, {generator}}}. {{duration, infinity}}."), 0.01);
            assert_eq!(scaled.changes, Vec::<String>::new());
            assert_eq!(scaled.settings.get("key_generator").unwrap().to_string(), generator);
        }
    }

    #[test]
    fn nothing_shrinks_to_nothing() {
        for (generator, smallest) in [
            ("{uniform_int, 10}", "{uniform_int, 1}"),
            ("{eightytwenty_int, 10}", "{eightytwenty_int, 5}"),
            ("{eightytwenty_int, 3}", "{eightytwenty_int, 3}"),
            ("{partitioned_sequential_int, 1000}", "{partitioned_sequential_int, 4}"),
        ] {
            let text = format!("{{key_generator, {generator}}}. {{concurrent, 4}}.");
            assert_eq!(value(&text, 1e-9, "key_generator"), smallest);
        }
        assert_eq!(value("{alwaysget, {240000, 1, skew_order}}.", 1e-9, "alwaysget"), "{1, 1, skew_order}");
        assert_eq!(value("{duration, 1440}.", 1e-9, "duration"), Term::Float(1.0 / 60.0).to_string());
    }

    #[test]
    fn a_run_says_what_has_changed() {
        let text = "{duration, 1920}. {key_generator, {eightytwenty_int, 100000000}}. {riakc_pb_preloaded_keys, 500}.
             {alwaysget, {2000000, 700000, skew_order}}. {unique, {6000, key_order}}. {concurrent, 100}.
             {value_generator, {semi_compressible, 10000, 2000, 10, 0.1}}. {operations, [{get, 3}]}.";
        let scaled = scaled(text, 0.001);
        assert_eq!(
            scaled.changes,
            [
                "key_generator: {eightytwenty_int, 100000} instead of {eightytwenty_int, 100000000}",
                "alwaysget: {2000, 700, skew_order} instead of {2000000, 700000, skew_order}",
                "riakc_pb_preloaded_keys: 1 instead of 500",
                "duration: 1 min 55 s instead of 32 h",
            ]
        );
        let before = Settings::from_text("test", text).unwrap();
        for key in ["unique", "concurrent", "value_generator", "operations"] {
            assert_eq!(scaled.settings.get(key), before.get(key));
        }
    }

    #[test]
    fn windows_stay_narrow_enough() {
        assert_eq!(value("{duration, 1000}.", 0.001, "report_interval"), "6");
        assert_eq!(value("{duration, 1000}. {report_interval, 5}.", 0.001, "report_interval"), "5");
        assert_eq!(value("{duration, 1}.", 0.001, "report_interval"), "1");
    }

    #[test]
    fn a_given_length_is_not_scaled() {
        let settings = Settings::from_text("test", "{duration, 60}. {key_generator, {uniform_int, 1000}}.").unwrap();
        let changes = |factor, secs| scale(&settings, factor, Some(Duration::from_secs(secs))).unwrap().changes;
        let keys = "key_generator: {uniform_int, 100} instead of {uniform_int, 1000}";
        assert_eq!(changes(0.1, 30), [keys, "duration: 30 s instead of 1 h", "report_interval: 3 s instead of 10 s"]);
        assert_eq!(changes(1.0, 7200), ["duration: 2 h instead of 1 h"]);
        assert_eq!(changes(1.0, 3600), Vec::<String>::new());
        let endless = Settings::from_text("test", "{duration, infinity}.").unwrap();
        let scaled = scale(&endless, 1.0, Some(Duration::from_secs(90))).unwrap();
        assert_eq!(scaled.settings.get("duration"), Some(&Term::Float(1.5)));
        assert_eq!(scaled.changes, ["duration: 1 min 30 s instead of no end", "report_interval: 9 s instead of 10 s"]);
    }

    #[test]
    fn factors_are_above_0_and_at_most_1() {
        let settings = Settings::from_text("test", "{duration, 7}. {key_generator, {uniform_int, 7}}.").unwrap();
        assert_eq!(scale(&settings, 1.0, None), Ok(Scaled { settings: settings.clone(), changes: vec![] }));
        for factor in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            let error = scale(&settings, factor, None).unwrap_err().to_string();
            assert_eq!(error, format!("--scale: a number above 0 and at most 1, not {factor}"));
        }
    }

    proptest! {
        #[test]
        fn any_number_shrinks_but_not_to_nothing(number in 1i128..=u64::MAX.into(), factor in 1e-12f64..=1.0, min in 1i128..9) {
            let Term::Integer(smaller) = number_scaled(&Term::Integer(number), factor, min) else { panic!() };
            prop_assert!(smaller >= 1 && smaller <= number);
            prop_assert!(smaller >= min.min(number));
            let exact = number as f64 * factor;
            prop_assert!((smaller as f64 - exact).abs() <= min as f64 + exact * 1e-9);
        }
    }
}
