//! What is wrong with a schema.

use super::limits::{REMARKS_MAX, SCHEMA_BYTES_MAX};
use crate::xml::BadXml;
use std::fmt;

/// Something about a line of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The line, beginning with 1.
    pub line: u32,
    /// What is wrong there, or has another effect than in Solr, and what would be right.
    pub what: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// A schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is too long.
    #[error("a schema has at most {SCHEMA_BYTES_MAX} bytes")]
    TooLong,
    /// It is not UTF-8.
    #[error("a schema is written in UTF-8")]
    NotUtf8,
    /// It is no XML.
    #[error("failed to parse: {0}")]
    Xml(#[from] BadXml),
    /// Its problems, the first [`REMARKS_MAX`] of them by line.
    #[error("{}", lines(.0))]
    Problems(Vec<Remark>),
}

fn lines(problems: &[Remark]) -> String {
    let lines: Vec<String> = problems.iter().map(Remark::to_string).collect();
    lines.join("\n")
}

/// Collects remarks, as many as are told.
#[derive(Debug, Default)]
pub(super) struct Remarks(Vec<Remark>);

impl Remarks {
    pub(super) fn add(&mut self, line: u32, what: impl Into<String>) {
        if self.0.len() < REMARKS_MAX {
            self.0.push(Remark { line, what: what.into() });
        }
    }

    /// The remarks by line.
    pub(super) fn into_list(mut self) -> Vec<Remark> {
        self.0.sort_by_key(|remark| remark.line);
        self.0
    }
}
