//! What a pre-commit hook says.

use crate::{ErrorKind, ScriptError};
use serde_json::Value;

/// What a pre-commit hook says about a put.
#[derive(Clone, Debug, PartialEq)]
pub enum PreCommit {
    /// The put goes on with this object.
    Put(Value),
    /// The put fails. The reason is what the hook said, if it said something.
    Fail(Option<Value>),
}

impl PreCommit {
    /// Reads the JSON text of what a hook returned; `None` for what JSON cannot express.
    pub fn from_text(result: Option<&str>) -> Result<Self, ScriptError> {
        match result {
            Some(result) => Self::from_result(parsed(result)?),
            None => Err(bad_result("undefined")),
        }
    }

    /// Reads what a hook returned: an object, `"fail"`, or `{"fail": reason}`.
    fn from_result(result: Value) -> Result<Self, ScriptError> {
        match result {
            Value::String(word) if word == "fail" => Ok(Self::Fail(None)),
            Value::Object(mut members) => match members.remove("fail") {
                Some(reason) if members.is_empty() => Ok(Self::Fail(Some(reason))),
                Some(_) => Err(bad_result("an object with `fail` and other members")),
                None => Ok(Self::Put(Value::Object(members))),
            },
            Value::Null => Err(bad_result("null")),
            Value::Array(_) => Err(bad_result("an array")),
            other => Err(bad_result(&other.to_string())),
        }
    }
}

fn parsed(result: &str) -> Result<Value, ScriptError> {
    // The engine writes JSON; what can fail is the nesting, which the parser limits.
    serde_json::from_str(result)
        .map_err(|error| ScriptError::new(ErrorKind::Result, format!("the result cannot be read: {error}")))
}

fn bad_result(what: &str) -> ScriptError {
    let message = format!("a pre-commit hook returns an object, \"fail\" or {{\"fail\": reason}}; it returned {what}");
    ScriptError::new(ErrorKind::Result, message)
}
