//! Errors in a configuration.

/// An error in a configuration, in words for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: {what}")]
    File {
        /// The path of the file.
        file: String,
        /// Why it cannot be read.
        what: String,
    },
    /// The file is not a sequence of Erlang terms.
    #[error("{file}:{line}:{column}: {what}")]
    Syntax {
        /// The path of the file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What was found, and what would be right.
        what: String,
    },
    /// A setting has a value that is invalid or has no meaning here.
    #[error("{key}: {what}")]
    Setting {
        /// The name of the setting.
        key: String,
        /// What is wrong, and what would be right.
        what: String,
    },
}

impl ConfigError {
    /// An error in the value of a setting.
    pub fn setting(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Setting { key: key.into(), what: what.into() }
    }
}
