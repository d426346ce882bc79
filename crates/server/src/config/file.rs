//! The file format of riak.conf: lines `key.sub = value`, and comments that start with `#`.
//!
//! A value ends before a `#` that follows whitespace, unless the value is in double quotes. Inside
//! quotes, `\"` stands for a quote and `\\` for a backslash.

use super::problem::{Place, Problem};
use std::path::Path;

/// The largest configuration file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// One assignment of a value to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The key.
    pub key: String,
    /// The value without its quotes and without surrounding whitespace.
    pub value: String,
    /// The line number, counted from 1.
    pub line: usize,
}

/// Splits a file into assignments. A line that is neither assignment nor comment is reported, and
/// the other lines are still used.
pub fn parse(path: &Path, text: &str) -> (Vec<Assignment>, Vec<Problem>) {
    let mut assignments = Vec::new();
    let mut problems = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let content = raw.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        match assignment(content) {
            Ok((key, value)) => assignments.push(Assignment { key, value, line }),
            Err(what) => problems.push(Problem::at(Place::File(path.to_owned(), line), what)),
        }
    }
    (assignments, problems)
}

fn assignment(content: &str) -> Result<(String, String), String> {
    let Some((key, value)) = content.split_once('=') else {
        return Err(if content.starts_with("include ") {
            "include is not supported: put the keys into this file".into()
        } else {
            "not understood; a line is a comment (#) or 'key = value'".into()
        });
    };
    let key = key.trim();
    let valid = |c: char| c.is_ascii_alphanumeric() || "._-$".contains(c);
    if key.is_empty() || !key.chars().all(valid) {
        return Err(format!("'{key}' is not a key; a line is a comment (#) or 'key = value'"));
    }
    Ok((key.to_owned(), unquote(value.trim())?))
}

fn unquote(value: &str) -> Result<String, String> {
    let Some(quoted) = value.strip_prefix('"') else {
        return Ok(without_comment(value).to_owned());
    };
    let mut out = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next() {
            None => return Err("the closing quote is missing".into()),
            Some('"') => break,
            Some('\\') => match chars.next() {
                Some(c @ ('"' | '\\')) => out.push(c),
                _ => return Err("within quotes a backslash stands before a quote or a backslash only".into()),
            },
            Some(c) => out.push(c),
        }
    }
    let rest = chars.as_str().trim_start();
    if rest.is_empty() || rest.starts_with('#') { Ok(out) } else { Err("there is text after the closing quote".into()) }
}

fn without_comment(value: &str) -> &str {
    let mut before = ' ';
    for (at, c) in value.char_indices() {
        if c == '#' && before.is_whitespace() {
            return value[..at].trim_end();
        }
        before = c;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<(String, String), String> {
        let (mut assignments, problems) = parse(Path::new("x.conf"), text);
        match problems.first() {
            Some(problem) => Err(problem.to_string()),
            None => Ok(assignments.pop().map(|a| (a.key, a.value)).unwrap_or_default()),
        }
    }

    #[test]
    fn assignments_lose_blanks_quotes_and_comments() {
        for (text, value) in [
            ("a.b = c", "c"),
            ("  a.b=c  ", "c"),
            ("a.b = c ## why", "c"),
            ("a.b = c#d", "c#d"),
            ("a.b = \"c # d\" # why", "c # d"),
            (r#"a.b = "say \"\\\"""#, r#"say "\""#),
            ("a.b = x=y", "x=y"),
            ("a.b =", ""),
            ("a.b = # nothing", ""),
        ] {
            assert_eq!(one(text), Ok(("a.b".into(), value.into())), "{text}");
        }
    }

    #[test]
    fn lines_are_counted_and_comments_skipped() {
        let (assignments, problems) = parse(Path::new("x.conf"), "# a\r\n\r\n## b\r\nk = v\r\n\tk2 = v2");
        assert!(problems.is_empty());
        assert_eq!(assignments.iter().map(|a| (a.key.as_str(), a.line)).collect::<Vec<_>>(), [("k", 4), ("k2", 5)]);
    }

    #[test]
    fn what_is_no_assignment_is_named_with_its_line() {
        for bad in ["just words", "= v", "a b = c", "k = \"open", "k = \"a\" b", r#"k = "\n""#, "include x.conf"] {
            let error = one(bad).expect_err(bad);
            assert!(error.starts_with("x.conf:1: "), "{error}");
        }
    }
}
