//! What is wrong, or worth a warning, in a configuration.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, counted from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Environment(String),
    /// An option of the command line.
    CommandLine(&'static str),
    /// No single place.
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
    /// Where.
    pub place: Place,
    /// What is wrong and what would be right.
    pub what: String,
}

impl Problem {
    /// At a place.
    pub fn at(place: Place, what: impl Into<String>) -> Self {
        Self { place, what: what.into() }
    }

    /// Of the configuration as a whole.
    pub fn whole(what: impl Into<String>) -> Self {
        Self::at(Place::Whole, what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, self.what)
    }
}
