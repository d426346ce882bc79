//! What is wrong with a configuration.

/// What is wrong with a configuration, in words for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: {what}")]
    File {
        /// The file.
        file: String,
        /// Why not.
        what: String,
    },
    /// The file is no sequence of Erlang terms.
    #[error("{file}:{line}:{column}: {what}")]
    Syntax {
        /// The file.
        file: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What was found and what would be right.
        what: String,
    },
    /// A setting has a value that it cannot have, or one that means nothing here.
    #[error("{key}: {what}")]
    Setting {
        /// The setting.
        key: String,
        /// What is wrong and what would be right.
        what: String,
    },
}

impl ConfigError {
    /// A setting that cannot be.
    pub fn setting(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Setting { key: key.into(), what: what.into() }
    }
}
