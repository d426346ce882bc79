//! An error or a warning about a configuration.

use std::fmt;
use std::path::PathBuf;

/// The place where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file and its line, counted from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Environment(String),
    /// An option of the command line.
    CommandLine(&'static str),
    /// No single place: the problem concerns the configuration as a whole.
    Whole,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}: ", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}: "),
            Self::CommandLine(option) => write!(f, "{option}: "),
            Self::Whole => Ok(()),
        }
    }
}

/// An error or a warning about the configuration. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place that the problem is about.
    pub place: Place,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Problem {
    /// A problem at one place.
    pub fn at(place: Place, what: impl Into<String>) -> Self {
        Self { place, what: what.into() }
    }

    /// A problem of the configuration as a whole.
    pub fn whole(what: impl Into<String>) -> Self {
        Self::at(Place::Whole, what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, self.what)
    }
}
