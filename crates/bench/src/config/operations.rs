//! The operations of a run and their labels (docs/riak/basho-bench.md §1.1, §6.2).

use super::{ConfigError, Operation, Settings};
use crate::term::Term;

/// The longest label, in bytes. File systems do not accept much longer file names.
const LABEL_BYTES_MAX: usize = 200;

/// The setting `operations`. An operation that is listed twice counts once, with the sum of its
/// weights. An operation with weight 0 is never drawn and is left out.
pub fn operations(settings: &Settings) -> Result<Vec<Operation>, ConfigError> {
    let Some(term) = settings.get("operations") else { return Ok(defaults()) };
    let entries = term.as_list().ok_or_else(|| wrong(format!("a list as in [{{get, 4}}, {{put, 1}}], not {term}")))?;
    let mut operations: Vec<Operation> = Vec::new();
    let mut weights: u32 = 0;
    for entry in entries {
        let operation = operation(entry)?;
        weights = weights.checked_add(operation.weight).ok_or_else(|| wrong("all weights together are too large"))?;
        if operation.weight == 0 {
            continue;
        }
        match operations.iter_mut().find(|other| other.label == operation.label) {
            None => operations.push(operation),
            Some(other) if other.term == operation.term => other.weight += operation.weight,
            Some(other) => {
                return Err(wrong(format!(
                    "{} and {} would both be called {}; give one another label: {{Label, {}, Weight}}",
                    other.term, operation.term, other.label, operation.term
                )));
            }
        }
    }
    if operations.is_empty() { Err(wrong(format!("none of {term} has a weight"))) } else { Ok(operations) }
}

fn defaults() -> Vec<Operation> {
    [("get", 4), ("put", 4), ("delete", 1)]
        .map(|(name, weight)| Operation { label: name.to_owned(), term: Term::atom(name), weight })
        .to_vec()
}

/// Parses `{Op, Weight}` or `{Label, Op, Weight}`.
fn operation(entry: &Term) -> Result<Operation, ConfigError> {
    let (name, term, weight) = match entry.as_tuple() {
        Some([term, weight]) => (term, term, weight),
        Some([label, term, weight]) => (label, term, weight),
        _ => return Err(wrong(format!("an operation is {{Op, Weight}} or {{Label, Op, Weight}}, not {entry}"))),
    };
    let weight = weight
        .as_integer()
        .and_then(|weight| u32::try_from(weight).ok())
        .ok_or_else(|| wrong(format!("the weight of {term} is a whole number, 0 or more, not {weight}")))?;
    let label = label(name);
    if label.is_empty() || label.len() > LABEL_BYTES_MAX {
        return Err(wrong(format!("the label of {term} must have 1 to {LABEL_BYTES_MAX} characters")));
    }
    Ok(Operation { label, term: term.clone(), weight })
}

/// The label of a term, as files use it. Every character that is not an ASCII letter or digit
/// becomes a dash, and the parts of a tuple are joined with dashes.
pub fn label(term: &Term) -> String {
    let plain = |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
    match term {
        Term::Tuple(parts) => parts.iter().map(label).collect::<Vec<_>>().join("-"),
        Term::Atom(name) => plain(name),
        Term::Integer(number) => number.to_string(),
        Term::Binary(bytes) => plain(&String::from_utf8_lossy(bytes)),
        other => match other.as_text() {
            Some(text) => plain(&text),
            None => plain(&other.to_string()),
        },
    }
}

fn wrong(what: impl Into<String>) -> ConfigError {
    ConfigError::setting("operations", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(operations: &str) -> Result<Vec<(String, String, u32)>, String> {
        let settings = Settings::from_text("test", &format!("{{operations, {operations}}}.")).unwrap();
        let read = super::operations(&settings).map_err(|error| error.to_string())?;
        Ok(read.into_iter().map(|op| (op.label, op.term.to_string(), op.weight)).collect())
    }

    fn listed(operations: &[(&str, &str, u32)]) -> Vec<(String, String, u32)> {
        operations.iter().map(|(label, term, weight)| (label.to_string(), term.to_string(), *weight)).collect()
    }

    #[test]
    fn defaults_are_basho_benchs() {
        let expected = Settings::from_text("test", "{operations, [{get, 4}, {put, 4}, {delete, 1}]}.").unwrap();
        assert_eq!(operations(&Settings::default()), operations(&expected));
    }

    #[test]
    fn operations_have_labels_and_weights() {
        assert_eq!(
            read("[{alwaysget_pb, 621}, {{team,player,addition}, 2}, {\"fast reads\", get, 3}, {{query_pb, 10}, 1}]"),
            Ok(listed(&[
                ("alwaysget-pb", "alwaysget_pb", 621),
                ("team-player-addition", "{team, player, addition}", 2),
                ("fast-reads", "get", 3),
                ("query-pb-10", "{query_pb, 10}", 1),
            ]))
        );
        assert_eq!(label(&Term::parse("{search, {\"a b\", -1}, <<\"x_y\">>, 1.5}").unwrap()), "search-a-b--1-x-y-1-5");
    }

    #[test]
    fn equal_operations_are_one_and_those_without_weight_none() {
        assert_eq!(
            read("[{get, 1}, {put, 2}, {get, 3}, {delete, 0}]"),
            Ok(listed(&[("get", "get", 4), ("put", "put", 2)]))
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (operations, message) in [
            ("get", "a list as in [{get, 4}, {put, 1}], not get"),
            ("[get]", "an operation is {Op, Weight} or {Label, Op, Weight}, not get"),
            ("[{get, some}]", "the weight of get is a whole number, 0 or more, not some"),
            ("[{get, -1}]", "the weight of get is a whole number, 0 or more, not -1"),
            ("[{get, 0.5}]", "the weight of get is a whole number, 0 or more, not 0.5"),
            ("[{get, 4294967295}, {put, 1}]", "all weights together are too large"),
            ("[]", "none of [] has a weight"),
            ("[{get, 0}]", "none of [{get, 0}] has a weight"),
            ("[{'', get, 1}]", "the label of get must have 1 to 200 characters"),
            (
                "[{counter_value, 1}, {{counter, value}, 1}]",
                "counter_value and {counter, value} would both be called counter-value; \
                 give one another label: {Label, {counter, value}, Weight}",
            ),
        ] {
            assert_eq!(read(operations), Err(format!("operations: {message}")));
        }
    }
}
