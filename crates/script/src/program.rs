//! What a session runs: a function, and libraries that it uses.

use crate::{ErrorKind, ScriptError};
use std::sync::Arc;

/// The maximum length of the source of a function or a library, in bytes.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;

/// A function in JavaScript, with the libraries that are loaded before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(crate) libraries: Vec<Arc<str>>,
    pub(crate) function: Function,
}

/// Where the function of a program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// The name of a built-in function or of one that a library defines, such as `Riak.mapValues`.
    Named(Arc<str>),
    /// The source of a function, such as `function(value) { return [value.key]; }`.
    Source(Arc<str>),
}

impl Program {
    /// Creates a program from the name of a function: names with dots between them.
    pub fn named(name: &str) -> Result<Self, ScriptError> {
        let is_name =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
        if name.len() > 255 || !name.split('.').all(is_name) {
            return Err(ScriptError::new(ErrorKind::UnknownFunction, format!("`{name}` is not a function's name")));
        }
        Ok(Self { libraries: Vec::new(), function: Function::Named(name.into()) })
    }

    /// Creates a program from the source of a function: one expression whose value is a function.
    /// A semicolon may follow it.
    pub fn source(source: &str) -> Result<Self, ScriptError> {
        check_length(source)?;
        let source = source.trim_end().trim_end_matches(';');
        Ok(Self { libraries: Vec::new(), function: Function::Source(source.into()) })
    }

    /// The libraries, in their order.
    pub fn libraries(&self) -> impl ExactSizeIterator<Item = &str> {
        self.libraries.iter().map(|library| &**library)
    }

    /// The source of the function (`true`) or its name (`false`).
    pub fn function_text(&self) -> (bool, &str) {
        match &self.function {
            Function::Named(name) => (false, name),
            Function::Source(source) => (true, source),
        }
    }

    /// Adds a library: a script that is run when a session begins, and whose global functions the
    /// program may use or name. Libraries are run in the order in which they are added.
    pub fn with_library(mut self, source: impl Into<Arc<str>>) -> Result<Self, ScriptError> {
        let source = source.into();
        check_length(&source)?;
        self.libraries.push(source);
        Ok(self)
    }
}

fn check_length(source: &str) -> Result<(), ScriptError> {
    if source.len() > SOURCE_BYTES_MAX {
        let message = format!("the source is longer than {SOURCE_BYTES_MAX} bytes");
        return Err(ScriptError::new(ErrorKind::Syntax, message));
    }
    Ok(())
}
