//! What an exception of the engine means.

use crate::engine::{FUNCTION_FILE, Watch};
use crate::error::{TEXT_BYTES_MAX, cut};
use crate::{ErrorKind, ScriptError};
use rquickjs::{Ctx, Error, Exception, Type, Value};

/// What the engine was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It read a program.
    Load,
    /// It called the program's function.
    Call,
}

impl Step {
    /// The kind of an error that does not say more.
    const fn error_kind(self) -> ErrorKind {
        match self {
            Self::Load => ErrorKind::Syntax,
            Self::Call => ErrorKind::Exception,
        }
    }
}

/// Takes the pending exception and says what it means. `source` is the text of the function, for
/// the line in which it failed.
pub(crate) fn failure(ctx: &Ctx<'_>, error: &Error, watch: &Watch, step: Step, source: &str) -> ScriptError {
    let thrown = if matches!(error, Error::Exception) { Some(ctx.catch()) } else { None };
    if watch.was_ended() {
        return ScriptError::new(ErrorKind::Time, "the function ran longer than allowed");
    }
    let failure = match (error, thrown) {
        (_, Some(value)) => thrown_failure(ctx, value, step, source),
        (Error::Allocation, None) => out_of_memory(),
        (other, None) => ScriptError::new(step.error_kind(), other.to_string()),
    };
    // Reading the exception can run code of the function, and take too long.
    if watch.was_ended() {
        return ScriptError::new(ErrorKind::Time, "the function ran longer than allowed");
    }
    failure
}

fn out_of_memory() -> ScriptError {
    ScriptError::new(ErrorKind::Memory, "out of memory")
}

fn thrown_failure<'js>(ctx: &Ctx<'js>, value: Value<'js>, step: Step, source: &str) -> ScriptError {
    // Without memory for an error object, the engine throws null, and nothing tells that from a
    // function that throws null itself.
    if value.is_null() {
        return ScriptError::new(ErrorKind::Memory, "out of memory, or the function threw null");
    }
    let Some(exception) = value.as_object().and_then(|object| Exception::from_object(object.clone())) else {
        let message = format!("uncaught exception: {}", described(ctx, &value));
        return ScriptError::new(ErrorKind::Exception, message);
    };
    let name: String = exception.as_object().get("name").unwrap_or_else(|_| "Error".to_owned());
    let text = exception.message().unwrap_or_default();
    let line = line_of(&exception.stack().unwrap_or_default());
    // Reading the error's members can throw again.
    drop(ctx.catch());
    let kind = match (name.as_str(), text.as_str()) {
        ("InternalError", "out of memory" | "string too long") => ErrorKind::Memory,
        ("RangeError", "Maximum call stack size exceeded") | ("InternalError", "stack overflow") => ErrorKind::Stack,
        // A function that parses a text that is not JSON throws a syntax error too.
        ("SyntaxError", _) => step.error_kind(),
        _ => ErrorKind::Exception,
    };
    ScriptError::at(kind, format!("{name}: {text}"), line, source)
}

/// A thrown value that is not an error.
fn described<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    let text = match value.type_of() {
        Type::String => value.as_string().and_then(|text| text.to_string().ok()),
        Type::Undefined => Some("undefined".to_owned()),
        _ => ctx.json_stringify(value.clone()).ok().flatten().and_then(|text| text.to_string().ok()),
    };
    drop(ctx.catch());
    text.unwrap_or_else(|| "a value".to_owned())
}

/// The line of the function's source in the first entry of a stack trace that names it; 0 if there
/// is none.
fn line_of(stack: &str) -> u32 {
    let stack = cut(stack, TEXT_BYTES_MAX * 8);
    let marks = stack.lines().filter_map(|entry| {
        let place = entry.rsplit(['(', ' ']).next()?.trim_end_matches(')');
        let mut parts = place.strip_prefix(FUNCTION_FILE)?.strip_prefix(':')?.split(':');
        parts.next()?.parse().ok()
    });
    marks.into_iter().next().unwrap_or(0)
}
