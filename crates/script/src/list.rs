//! What map and reduce functions give.

use crate::{ErrorKind, ScriptError};

/// The JSON text of the list that a map or a reduce function gave. The text stays a text, so that
/// whoever reads it decides what becomes of its numbers.
pub fn list_result(result: Option<String>) -> Result<String, ScriptError> {
    let Some(result) = result else {
        return Err(returned("undefined"));
    };
    // The engine writes JSON without white space around it.
    match result.as_bytes().first() {
        Some(b'[') => Ok(result),
        Some(b'{') => Err(returned("an object that is not a list")),
        _ => Err(returned(&result)),
    }
}

fn returned(what: &str) -> ScriptError {
    ScriptError::new(ErrorKind::Result, format!("the function returned {what}, not a list"))
}
