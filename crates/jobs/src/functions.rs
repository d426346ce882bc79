//! Functions in JavaScript, as jobs use them.

use ombak_functions::{Catalogue, FunctionPool};
use ombak_script::ScriptError;
use ombak_types::etf::Term;

/// The threads of a node for functions in JavaScript, and where it finds them.
#[derive(Clone)]
pub struct JobFunctions {
    /// The threads.
    pub pool: FunctionPool,
    /// Finds programs by name.
    pub catalogue: Catalogue,
}

/// The text of an error of a function, as Riak tells it.
pub(crate) fn script_error_text(error: &ScriptError) -> String {
    let text = |text: &str| Term::binary(text.as_bytes());
    let members = [
        ("lineno", Term::Int(i64::from(error.line))),
        ("message", text(&error.message)),
        ("source", text(&error.source)),
    ];
    Term::List(members.into_iter().map(|(name, value)| Term::pair(text(name), value)).collect()).to_string()
}
